// Trained models in int8 against the accuracy of PyTorch's PT2E with the XNNPACK quantizer
// (accuracy.json). The whole table is printed by static_accuracy_table.
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "taper/exporter/eager/files.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/quantize/static/signal_error.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/exporter/quantize_static/labelled.h"
#include "taper/tests/support/data.h"

namespace taper::quantize {
namespace {

struct Bar {
  double top1, sqnr_db;
};
Bar recorded(const std::string& model, const std::string& method) {
  const nlohmann::json all =
      nlohmann::json::parse(std::ifstream(tests::golden_data("quant/accuracy.json")));
  for (const auto& row : all.at(model).at("rows"))
    if (row.at("method") == method) return {row.at("top1"), row.at("sqnr_db")};
  throw std::out_of_range("accuracy.json has no row " + method);
}

/// A classifier beside its float results for a part of the pictures.
class Comparison {
 public:
  Comparison(Classifier classifier, int64_t begin, int64_t end)
      : classifier_(std::move(classifier)),
        begin_(begin),
        pictures_(classifier_.batches(begin, end, 100)),
        want_(logits_of(*float_graph(classifier_.model), pictures_, classifier_.logits)) {}

  double float_top1() const { return score(want_, want_, classifier_.pictures, begin_).top1; }

  /// Calibrates with the first 128 pictures of `calibration`.
  LabelledScore quantized(const data::Images& calibration, const StaticOptions& options,
                          bool equalized = false) const {
    const auto graph = float_graph(classifier_.model);
    if (equalized) equalize(*graph);
    const Classifier source{classifier_.model, calibration, ""};
    const Ranges ranges = calibrate(*graph, source.batches(0, 128, 32), options);
    EXPECT_TRUE(ranges.warnings.empty()) << ranges.warnings[0];
    const StaticResult result = quantize_static(*graph, ranges, options);
    EXPECT_TRUE(result.warnings.empty()) << result.warnings[0];
    for (const Decision& d : result.decisions)
      EXPECT_TRUE(d.quantized || d.name == "softmax") << d.node << ": " << d.why;
    return score(logits_of(*graph, pictures_, classifier_.logits), want_, classifier_.pictures,
                 begin_);
  }

 private:
  Classifier classifier_;
  int64_t begin_;
  Examples pictures_;
  std::vector<float> want_;
};

/// A part of the pictures has more noise than all of them.
constexpr double top1_noise = 0.003, sqnr_noise_db = 0.5;

TEST(static_int8, resnet20_is_as_accurate_as_that_of_pytorch) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/resnet20.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  TAPER_GOLDEN_DATA_OR_SKIP(json, "quant/accuracy.json");
  const data::Images pictures =
      data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});
  const Comparison comparison({model, pictures, "linear"}, 500, 700);
  const Bar bar = recorded("resnet20", "int8 static, per-channel weights, histogram");
  const LabelledScore s = comparison.quantized(pictures, {});
  EXPECT_GE(s.top1, comparison.float_top1() - (0.999 - bar.top1) - top1_noise);
  EXPECT_GE(s.sqnr_db, bar.sqnr_db - sqnr_noise_db);
}

TEST(static_int8, lenet_is_as_accurate_as_that_of_pytorch_with_each_observer) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
  TAPER_GOLDEN_DATA_OR_SKIP(json, "quant/accuracy.json");
  const data::Images pictures = data::mnist(mnist / "t10k").normalize({.1307f}, {.3081f}),
                     calibration = data::mnist(mnist / "train").normalize({.1307f}, {.3081f});
  const Comparison comparison({model, pictures, "linear_2"}, 0, 1000);
  const std::pair<const char*, ObserverKind> observers[] = {
      {"min-max", ObserverKind::min_max},
      {"histogram", ObserverKind::histogram},
      {"moving average min-max", ObserverKind::moving_average},
      {"percentile 99.99", ObserverKind::percentile},
      {"MSE", ObserverKind::mse}};
  for (const auto& [name, kind] : observers)
    for (const bool per_channel : {false, true}) {
      StaticOptions options;
      options.observer = {.kind = kind, .new_batch_part = 0.1};
      options.per_channel = per_channel;
      options.correct_bias = false;
      options.least_weight_scale = least_scale;
      const std::string method = std::string("int8 static, ") +
                                 (per_channel ? "per-channel" : "per-tensor") + " weights, " + name;
      const Bar bar = recorded("lenet", method);
      const LabelledScore s = comparison.quantized(calibration, options);
      // Float gives 98.13 % of all pictures. These are harder.
      EXPECT_GE(s.top1, comparison.float_top1() - (0.9813 - bar.top1) - top1_noise) << method;
      EXPECT_GE(s.agrees, 0.99) << method;
      EXPECT_GE(s.sqnr_db, bar.sqnr_db - sqnr_noise_db) << method;
    }
}

TEST(static_int8, lenet_has_less_noise_with_equalized_channels) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
  const data::Images pictures = data::mnist(mnist / "t10k").normalize({.1307f}, {.3081f}),
                     calibration = data::mnist(mnist / "train").normalize({.1307f}, {.3081f});
  const Comparison comparison({model, pictures, "linear_2"}, 0, 500);
  const LabelledScore plain = comparison.quantized(calibration, {}),
                      equalized = comparison.quantized(calibration, {}, true);
  EXPECT_GT(equalized.sqnr_db, plain.sqnr_db + 1);
}

TEST(static_int8, a_depthwise_network_becomes_integers_as_a_whole) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/retinaface_mobilenet025.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded_calls, "pt2/retinaface_mobilenet025.io.safetensors");
  const auto graph = float_graph(model);
  const std::vector<Tensor> call = {eager::load_safetensors(recorded_calls).at("set0.input.0")};
  const std::vector<Tensor> want = ir::Interpreter(*graph).run(call).outputs;
  EXPECT_GT(equalize(*graph), 0);
  const Ranges ranges = calibrate(*graph, Examples({call}), {});
  for (const Decision& d : quantize_static(*graph, ranges, {}).decisions)
    EXPECT_TRUE(d.quantized || d.name == "softmax") << d.node << ": " << d.why;
  for (const auto& [name, range] : ranges.values)
    EXPECT_LT(range.histogram->part_outside(range.grid.low(), range.grid.high()), 0.02) << name;
  const std::vector<Tensor> got = ir::Interpreter(*graph).run(call).outputs;
  for (size_t i = 0; i < want.size(); ++i) {
    SignalError error;
    error.add(got[i].to_vector<float>(), want[i].to_vector<float>());
    EXPECT_GT(error.sqnr_db(), 15) << "output " << i;
  }
}

/// The i8 constants of a graph, in order.
std::vector<std::vector<int8_t>> integer_weights(const ir::Graph& graph) {
  std::vector<std::vector<int8_t>> list;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op != &ops::quantized_decomposed_dequantize_per_channel) continue;
    const ir::Value* weight = std::get<ir::Value*>(node.arguments[0]);
    for (const ir::Constant& c : graph.constants())
      if (c.value.get() == weight) list.push_back(ir::tensor_of(c.payload).to_vector<int8_t>());
  }
  return list;
}

TEST(static_int8, resnet20_has_the_form_and_the_weights_that_pytorch_gives_it) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/resnet20.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(theirs_file, "pt2/q_resnet20_pt2e_int8.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  const auto theirs = graph_of(theirs_file), ours = float_graph(model);
  const data::Images pictures =
      data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});
  const Classifier source{model, pictures, ""};
  const StaticOptions options{.correct_bias = false, .least_weight_scale = least_scale};
  const Ranges ranges = calibrate(*ours, source.batches(0, 32, 32), options);
  quantize_static(*ours, ranges, options);

  std::map<std::string, int> count_ours, count_theirs;
  for (const ir::Node& n : ours->nodes()) ++count_ours[std::string(name_of(*n.op))];
  for (const ir::Node& n : theirs->nodes()) ++count_theirs[std::string(name_of(*n.op))];
  for (const char* op : {"convolution", "linear", "add.Tensor", "relu", "constant_pad_nd",
                         "quantized_decomposed::dequantize_per_channel"})
    EXPECT_EQ(count_ours[op], count_theirs[op]) << op;

  const auto a = integer_weights(*ours), b = integer_weights(*theirs);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].size(), b[i].size());
    size_t different = 0;
    for (size_t k = 0; k < a[i].size(); ++k) {
      EXPECT_LE(std::abs(a[i][k] - b[i][k]), 1);
      different += a[i][k] != b[i][k];
    }
    // Batch norms are folded in f64 here and in f32 there.
    EXPECT_LE(different, a[i].size() / 500) << "weight " << i;
  }
}

TEST(static_int8, a_program_gives_the_bits_of_the_graph) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
  pt2::Model model = pt2::Model::load(file);
  Exporter exporter;
  {
    const eager::NoGrad guard;
    exporter.method("forward", model.function(), model.input_specs(), model.output_names());
  }
  ir::Graph& graph = exporter.graph("forward");
  bake_read_only_states({&graph});
  prepare_static(graph);
  const Classifier source{file, data::mnist(mnist / "train").normalize({.1307f}, {.3081f}), ""};
  quantize_static(graph, calibrate(graph, source.batches(0, 64, 32), {}), {});
  const eager::Tensor pictures = source.batches(100, 120, 20).at(0)[0];
  const std::vector<float> want =
      ir::Interpreter(graph).run({pictures}).outputs[0].to_vector<float>();

  const std::vector<std::byte> program = exporter.write(ExportOptions{.exact = true});
  Result<Module> module =
      Module::load(Span<const std::byte>(program.data(), static_cast<index_t>(program.size())));
  ASSERT_TRUE(module.ok());
  const auto outputs = module.value().execute("forward", {taper::Input(pictures.ref())});
  ASSERT_TRUE(outputs.ok()) << module.value().message();
  ASSERT_EQ(outputs.value()[0].bytes.size(), want.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(outputs.value()[0].bytes.data(), want.data(), want.size() * sizeof(float)),
            0);
}

}  // namespace
}  // namespace taper::quantize
