// Whole networks in static 8 bits: XNNPACK gives the integers of our kernels, and both are as right
// as PyTorch's reference was (integer_nets.json of the golden data).
#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "delegated.h"
#include "taper/tests/exporter/quantize_static/labelled.h"
#include "taper/tests/support/data.h"

namespace taper::delegates::xnnpack {
namespace {

/// A network, its pictures, and what was recorded for the first of them.
struct Network {
  std::string name;
  quantize::Classifier tested, calibrated;

  nlohmann::json recorded() const {
    return nlohmann::json::parse(
        std::ifstream(tests::golden_data("quant/integer_nets.json")))[name];
  }
};

/// The program with static integers, for the kernels or for XNNPACK.
std::vector<std::byte> program_of(const Network& n, const std::string& backend) {
  pt2::Model model = pt2::Model::load(n.tested.model);
  ExportOptions options;
  options.exact = false, options.backend = backend;
  options.before_passes = [&](const std::vector<ir::Graph*>& graphs) {
    ir::Graph& graph = *graphs[0];
    quantize::prepare_static(graph);
    quantize::quantize_static(graph,
                              quantize::calibrate(graph, n.calibrated.batches(0, 128, 32), {}), {});
  };
  Exporter exporter;
  {
    const eager::NoGrad guard;
    exporter.method("forward", model.function(), model.input_specs(), model.output_names());
  }
  emit::Report report;
  std::vector<std::byte> program = exporter.write(options, &report);
  for (const char* product : {"taper::conv2d_q8", "taper::linear_q8"})
    EXPECT_EQ(report.methods[0].operators[product] > 0, backend.empty()) << product;
  return program;
}

/// The results of the first `count` pictures.
std::vector<float> results_of(const std::vector<std::byte>& program, const Network& n,
                              int64_t count) {
  ModuleOptions options;
  options.backends = {&backend()};
  Result<Module> module = Module::load(program, options);
  if (!module.ok()) return ADD_FAILURE(), std::vector<float>();
  std::vector<float> results;
  const quantize::Examples batches = n.tested.batches(0, count, 100);
  for (size_t i = 0; i < batches.count; ++i)
    for (const float x : call(module.value(), batches.at(i)[0])) results.push_back(x);
  return results;
}

/// How far apart the results of our kernels and of XNNPACK are.
struct Difference {
  double most = 0;
  int64_t results = 0, different = 0;
};
/// Both give all pictures the same class, and are as right as the reference was.
Difference difference_of(const Network& n) {
  const nlohmann::json recorded = n.recorded();
  const int64_t count = recorded["images"];
  const std::vector<float> ours = results_of(program_of(n, ""), n, count),
                           theirs = results_of(program_of(n, delegate().name()), n, count);
  Difference d;
  EXPECT_EQ(ours.size(), static_cast<size_t>(10 * count));
  EXPECT_EQ(theirs.size(), ours.size());
  if (theirs.size() != ours.size()) return d;
  for (size_t i = 0; i < ours.size(); ++i) {
    ++d.results, d.different += ours[i] != theirs[i];
    d.most = std::max(d.most, std::abs(static_cast<double>(ours[i]) - theirs[i]));
  }
  const quantize::LabelledScore s = quantize::score(ours, theirs, n.tested.pictures, 0);
  EXPECT_EQ(s.agrees, 1);
  EXPECT_GE(std::round(s.top1 * static_cast<double>(count)),
            recorded["reference_right"].get<double>());
  return d;
}

/// The mean of a channel may lie half way between two integers. Then both are right.
TEST(xnnpack_integer_networks, resnet20) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/resnet20.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded, "quant/integer_nets.json");
  const quantize::Classifier c{
      model, data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f}), ""};
  const Network network{"resnet20", c, c};
  const Difference d = difference_of(network);
  EXPECT_LE(d.different, d.results / 100);
  const nlohmann::json r = network.recorded();
  EXPECT_LE(d.most, r["max_steps"].get<double>() * r["output_scale"].get<double>());
}

/// Its results are those of a softmax in f32: the integers before it are equal.
TEST(xnnpack_integer_networks, lenet) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded, "quant/integer_nets.json");
  const auto part = [&](const char* name) {
    return data::mnist(mnist / name).normalize({.1307f}, {.3081f});
  };
  const Network network{"lenet", {model, part("t10k"), ""}, {model, part("train"), ""}};
  EXPECT_LE(difference_of(network).most, 1e-6);
}

}  // namespace
}  // namespace taper::delegates::xnnpack
