// The convolutions and matrix products of public models, each as a program of one layer, with one
// thread: its time, and which part of the processor's peak it reaches. At the end stand the layers
// below half of the peak, and whether the bandwidth explains that.
//
//   corpus [corpus.json]      --benchmark_filter=^linear for some of them
//
// A time is the best of many runs, and of the repetitions (--benchmark_repetitions=3): what the
// code can do on a machine that others use. A layer runs again and again, so its weights lie in the
// caches if they fit there.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>

#include "taper/exporter/cli/inputs.h"
#include "taper/exporter/cli/program_source.h"
#include "taper/exporter/cli/timing.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/roofline/roofline.h"

using namespace taper;
using nlohmann::json;

namespace {

// ---- a layer ----

struct Layer {
  std::string kind;  ///< "convolution 3x3", "linear, 1 row": what the table sums
  std::string name;  ///< "[1, 64, 56, 56] * [64, 64, 3, 3] stride [1, 1]"
  std::vector<InputSpec> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> run;
};

eager::Dims dims_of(const json& list) {
  eager::Dims dims;
  for (const json& size : list) dims.push_back(size.get<int64_t>());
  return dims;
}

/// "convolution 3x3", "depthwise 5x5", "convolution 1x1, 1 pixel"
std::string kind_of(const eager::Dims& input, const eager::Dims& weight, int64_t groups) {
  const bool depthwise = groups > 1 && same(weight[1], 1);
  std::string kind = depthwise ? "depthwise" : groups > 1 ? "grouped" : "convolution";
  bool is_pixel = true;
  for (size_t i = 2; i < weight.size(); ++i) {
    kind += (i > 2 ? "x" : " ") + std::to_string(weight[i].value());
    is_pixel = is_pixel && same(input[i], 1);
  }
  return kind + (is_pixel ? ", 1 pixel" : "");
}

/// Images have channels last, as between the layers of a model. The view costs nothing. A mean
/// behind the layer reads any order; without it, the result would be copied to channels first.
Layer convolution_layer(const json& c) {
  const eager::Dims x = dims_of(c[2]), w = dims_of(c[3]), stride = dims_of(c[4]);
  const eager::Dims padding = dims_of(c[5]), dilation = dims_of(c[6]);
  const int64_t groups = c[7];
  const Tensor weight = randn(w), bias = randn({w[0]});
  const auto convolve = [=](const Tensor& image) {
    return eager::convolution(image, weight, bias, stride, padding, dilation, false,
                              eager::Dims(stride.size(), 0), groups);
  };
  const std::string name = c[2].dump() + " * " + c[3].dump() + " stride " + c[4].dump() +
                           (groups > 1 ? " groups " + std::to_string(groups) : "");
  if (x.size() != 4)
    return {kind_of(x, w, groups), name, {input("x", x)}, [=](const std::vector<Tensor>& in) {
              return convolve(in[0]);
            }};
  return {kind_of(x, w, groups),
          name,
          {input("x", {x[0], x[2], x[3], x[1]})},
          [=](const std::vector<Tensor>& in) {
            return mean(convolve(permute(in[0], {0, 3, 1, 2})), {2, 3});
          }};
}

Layer linear_layer(const json& c) {
  const int64_t rows = c[2][0], inputs = c[2][1], outputs = c[2][2];
  const Tensor weight = randn({outputs, inputs}), bias = randn({outputs});
  return {rows == 1 ? "linear, 1 row" : "linear",
          c[2].dump(),
          {input("x", {rows, inputs})},
          [=](const std::vector<Tensor>& in) { return linear(in[0], weight, bias); }};
}

/// Both operands change with each call, so none is packed.
Layer matmul_layer(const json& c) {
  const int64_t batch = c[2][0], rows = c[2][1], inputs = c[2][2], outputs = c[2][3];
  return {"matmul",
          c[2].dump(),
          {input("x", {batch, rows, inputs}), input("y", {batch, inputs, outputs})},
          [](const std::vector<Tensor>& in) { return bmm(in[0], in[1]); }};
}

Layer layer_of(const json& c) {
  if (c[0] == "convolution") return convolution_layer(c);
  return c[0] == "linear" ? linear_layer(c) : matmul_layer(c);
}

// ---- its time ----

struct Result {
  std::string kind, name, kernel;
  double us, gflops, share;  ///< `share`: of the peak of multiply-adds
  roofline::Roof roof;
};

cli::RunningMethod program_of(const Layer& layer) {
  Exporter exporter;
  exporter.method("forward", layer.run, layer.inputs);
  cli::ImportChoice import;
  import.pack = true;
  return {"corpus", exporter.write({.exact = false, .debug = false, .quiet = true}), "forward",
          nullptr, import};
}

/// The instruction that computes; views and copies beside it are not looked at.
cli::InstructionTiming time_layer(const Layer& layer) {
  constexpr double seconds = 0.1;
  cli::RunningMethod running = program_of(layer);
  std::vector<index_t> all;
  for (index_t i = 0; i < running.method().input_count(); ++i) all.push_back(i);
  cli::set_random_inputs(running, all, {});
  cli::NodeTimes none;  // no backend runs nodes of its own
  const double once = cli::time_method(running, 1, none).median_us;
  const int runs = static_cast<int>(std::clamp(seconds * 1e6 / once, 30.0, 2000.0));
  for (const cli::InstructionTiming& in : cli::time_method(running, runs, none).instructions)
    if (in.work.operations > 0) return in;
  throw ExportError(layer.name + ": no instruction computes a product");
}

Result measure(const json& c, const roofline::Peaks& peaks) {
  const Layer layer = layer_of(c);
  const cli::InstructionTiming timing = time_layer(layer);
  const double gflops = timing.work.operations / timing.best_us / 1e3;
  return {layer.kind,
          layer.name,
          timing.kernel,
          timing.best_us,
          gflops,
          gflops / peaks.gflops,
          roofline::roof_of(peaks, timing.work)};
}

/// The better result counts if a layer is measured again (--benchmark_repetitions).
using Results = std::map<size_t, Result>;

void run(benchmark::State& state, const json& c, size_t index, const roofline::Peaks& peaks,
         Results& results) try {
  for (auto _ : state) {
    const Result result = measure(c, peaks);
    state.SetIterationTime(result.us * 1e-6);
    state.counters["GFLOPS"] = result.gflops;
    state.counters["share"] = result.share;
    state.counters["roof_share"] = result.roof.us / result.us;
    state.SetLabel(result.kernel);
    const auto [at, is_new] = results.emplace(index, result);
    if (!is_new && result.us < at->second.us) at->second = result;
  }
} catch (const std::exception& e) {
  state.SkipWithError(e.what());
}

// ---- what is printed ----

/// Whether the bandwidth bounds a layer, and the layer reaches half of that roof.
bool bandwidth_explains(const Result& r) {
  return r.roof.limit != roofline::Limit::compute && r.roof.us >= 0.5 * r.us;
}
bool is_slow(const Result& r) { return r.share < 0.5; }

void print_kinds(const Results& results) {
  std::map<std::string, std::vector<const Result*>> kinds;
  for (const auto& [index, result] : results)
    kinds[result.kind].push_back(&result), kinds["all"].push_back(&result);
  std::printf(
      "\n| layers | shapes | lowest share | median | highest | below 50 %% | not explained |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (auto& [kind, list] : kinds) {
    std::sort(list.begin(), list.end(),
              [](const Result* a, const Result* b) { return a->share < b->share; });
    const auto slow = std::count_if(list.begin(), list.end(), [](auto* r) { return is_slow(*r); });
    const auto open = std::count_if(list.begin(), list.end(),
                                    [](auto* r) { return is_slow(*r) && !bandwidth_explains(*r); });
    std::printf("| %s | %zu | %.0f %% | %.0f %% | %.0f %% | %td | %td |\n", kind.c_str(),
                list.size(), 100 * list.front()->share, 100 * list[list.size() / 2]->share,
                100 * list.back()->share, slow, open);
  }
}

void print_slow(const Results& results) {
  std::printf(
      "\n| layer | shape | time | GFLOP/s | share | of the roof | bandwidth explains it |\n"
      "| --- | --- | ---: | ---: | ---: | ---: | --- |\n");
  for (const auto& [index, r] : results)
    if (is_slow(r))
      std::printf("| %s | %s | %.1f us | %.1f | %.0f %% | %.0f %% %s | %s |\n", r.kind.c_str(),
                  r.name.c_str(), r.us, r.gflops, 100 * r.share, 100 * r.roof.us / r.us,
                  roofline::name_of(r.roof.limit), bandwidth_explains(r) ? "yes" : "no");
}

}  // namespace

int main(int argc, char** argv) try {
  benchmark::Initialize(&argc, argv);
  const std::string path = argc > 1 ? argv[1] : TAPER_CORPUS;
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " cannot be read");
  const json cases = json::parse(file).at("cases");
  const roofline::Peaks peaks = roofline::measure_peaks(nullptr);
  Results results;
  for (size_t i = 0; i < cases.size(); ++i)
    benchmark::RegisterBenchmark(
        (cases[i][0].get<std::string>() + "/" + std::to_string(i)).c_str(),
        [&, i](benchmark::State& state) { run(state, cases[i], i, peaks, results); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
  std::printf("\npeak: %.1f GFLOP/s\n", peaks.gflops);
  print_kinds(results);
  print_slow(results);
} catch (const std::exception& e) {
  std::cerr << "corpus: " << e.what() << "\n";
  return 1;
}
