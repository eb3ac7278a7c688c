// Prints the tables of docs/quantization.md: what a few bits cost trained models, beside what other
// implementations reach (accuracy.json of the golden data).
//
//   quantize_accuracy_tables [stories|resnet20|lenet]     default: all
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/optim/optim.h"
#include "taper/exporter/quantize/block_format.h"
#include "taper/exporter/quantize/metric.h"
#include "taper/exporter/quantize/training.h"
#include "taper/tests/exporter/quantize/stories.h"
#include "taper/tests/exporter/quantize_static/labelled.h"
#include "taper/tests/support/data.h"

namespace taper::quantize {
namespace {

using eager::Tensor;

const char* const formats[] = {"q8_0",  "mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2",
                               "q5_1",  "q5_0",       "q4_1",       "q4_0",       "nf4",
                               "mxfp4", "q3_z",       "q2_z"};
const char* const methods[] = {"nearest", "mse", "hqq", "gptq", "gptq-act-order"};

bool takes(const std::string& format, const std::string& method) {
  return method != "hqq" || find_format(format)->has_offset;
}
std::string scheme_of(const std::string& format, const std::string& method, const char* more = "") {
  return R"({"weights": ")" + format + R"(", "method": ")" + method + "\"" + more + "}";
}
std::string recipe_of(const std::string& scheme) {
  return R"([{"match": "embedding", "scheme": "float"}, {"match": "*", "scheme": )" + scheme + "}]";
}

/// Of the weights that a recipe quantized, without the zeros that fill up rows.
double bits_of(const Report& report) {
  int64_t bytes = 0, elements = 0;
  for (const WeightReport& w : report.weights) {
    if (!w.is_quantized()) continue;
    int64_t count = 1;
    for (const int64_t size : w.sizes) count *= size;
    if (w.padded_to > 0) count = w.sizes[0] * w.padded_to;
    bytes += w.bytes_after, elements += count;
  }
  return 8 * static_cast<double>(bytes) / static_cast<double>(elements);
}

/// What Taper can do with a model.
struct Candidate {
  std::string name;
  double bits, value;
};

// ---- stories260K ----

class StoryTables : public Stories {
 public:
  StoryTables() { open(tests::golden_data("pt2/stories260k.pt2"), tests::golden_data("quant")); }

  void print() {
    print_methods();
    for (const std::string format : {"q4_1", "q4_0", "q3_z", "q2_z"})
      for (const std::string method : {"mse", "gptq"})
        add("awq, " + format + " " + method,
            of_scheme(scheme_of(format, method, R"(, "awq": true)"), true));
    for (const std::string format : {"q4_1", "q4_0", "q3_z", "q2_z"})
      add("sequential, " + format + " gptq",
          of_scheme(scheme_of(format, "gptq", R"(, "sequential": true)"), true));
    add("f8_e4m3fn", of_scheme(R"("f8_e4m3fn")"));
    for (const double strength : {0.0, 0.5, 0.6}) add_static(strength);
    for (const std::string format : {"q4_0", "q3_z", "q2_z"}) add_trained(format);
    print_bars();
    print_recipes();
  }

 private:
  void add(const std::string& name, double value) {
    candidates_.push_back({name, bits_of(report()), value});
  }

  void print_methods() {
    std::printf("| format | bits |");
    for (const char* method : methods) std::printf(" `%s` |", method);
    std::printf("\n| --- | --- | --- | --- | --- | --- | --- |\n");
    for (const std::string format : formats) {
      std::vector<std::string> cells;
      for (const std::string method : methods) {
        std::ostringstream cell;
        if (takes(format, method)) {
          add(format + " " + method, of_method(format, method));
          cell << std::fixed;
          cell.precision(candidates_.back().value < 100 ? 2 : 0);
          cell << candidates_.back().value;
        }
        cells.push_back(cell.str());
      }
      std::printf("| `%s` | %.2f |", format.c_str(), candidates_.back().bits);
      for (const std::string& cell : cells) std::printf(" %s |", cell.c_str());
      std::printf("\n");
      std::fflush(stdout);
    }
  }

  /// 200 steps with the integers, as the bars had: four texts a step, towards the float model.
  void add_trained(const std::string& format) {
    const auto graph = graph_of(tests::golden_data("pt2/stories260k.pt2"));
    part_head_from_embedding(*graph);
    const Recipe recipe =
        parse_recipe(recipe_of(scheme_of(format, "mse", R"(, "activations": "float")")), "recipe");
    QatModel model(*graph, recipe);
    constexpr int64_t steps = 200;
    optim::AdamW optimizer(model.parameters(),
                           {.lr = format == "q2_z" ? 1e-3 : 3e-4, .weight_decay = 0});
    optim::CosineAnnealingLR schedule(optimizer, steps);
    const Examples texts = calibration();
    std::vector<Tensor> targets;
    for (size_t i = 0; i < texts.count; ++i) {
      const eager::NoGrad guard;
      targets.push_back(probabilities(ir::Interpreter(*graph).run(texts.at(i)).outputs[0]));
    }
    for (int64_t step = 0; step < steps; ++step) {
      optimizer.zero_grad();
      for (size_t k = 0; k < 4; ++k) {
        const size_t i = (static_cast<size_t>(step) * 4 + k) % texts.count;
        const Tensor logits = model(texts.at(i))[0];
        (eager::cross_entropy(logits.reshape({-1, logits.size(-1)}), targets[i]) * 0.25).backward();
      }
      optimizer.step();
      schedule.step();
    }
    const eager::NoGrad guard;
    const auto trained = model.convert();
    const Report report = quantize({trained.get()}, recipe);
    const Tensor windows = eager::tensor_of(tokens_.at("tinystories"));
    const Examples stories(static_cast<size_t>(windows.size(0).value()), [&](size_t i) {
      const auto row = static_cast<int64_t>(i);
      return std::vector{windows.slice(0, row, row + 1).contiguous()};
    });
    const double value = Meter(Metric::perplexity, {stories, {}}, *graph).run(*trained).metric;
    candidates_.push_back({format + ", trained", bits_of(report), value});
  }
  /// All nodes that can in int8, behind smoothed activations.
  void add_static(double strength) {
    const auto edit = [&](const std::vector<ir::Graph*>& graphs) {
      prepare_static(*graphs[0]);
      if (strength > 0) smooth(*graphs[0], calibration(), strength);
      quantize_static(*graphs[0], calibrate(*graphs[0], calibration(), {}), {});
    };
    char name[40];
    std::snprintf(name, sizeof name, "int8, smooth %.1f", strength);
    candidates_.push_back({name, bits_of_channels(), of_edited(edit, false)});
  }
  /// Of 8 bits with a scale for each row of a weight: a recorded row counts them.
  double bits_of_channels() const {
    for (const auto& row : bars())
      if (row["method"] == "int8 weight-only, per channel") return row["bits_per_weight"];
    throw std::runtime_error("no row of int8 per channel");
  }
  static Tensor probabilities(const Tensor& logits) {
    return eager::softmax(logits.reshape({-1, logits.size(-1)}), -1);
  }

  /// Each row that has fewer than 8.5 bits, and the best of Taper with no more. Rows with static
  /// activations have a scale for each row of a weight, too, which their bits do not count.
  void print_bars() const {
    std::printf("\n| others | bits | perplexity | Taper | bits | perplexity |\n");
    std::printf("| --- | --- | --- | --- | --- | --- |\n");
    int met = 0, all = 0;
    for (const auto& row : bars()) {
      if (!row.contains("bits_per_weight") || row["bits_per_weight"] > 8.5) continue;
      const std::string method = row["method"];
      const bool has_channels = method.find("W8A8") != std::string::npos;
      const double bits = has_channels ? bits_of_channels() : row["bits_per_weight"].get<double>(),
                   bar = row["ppl_tinystories"];
      const Candidate* best = nullptr;
      for (const Candidate& c : candidates_)
        if (c.bits <= bits && (best == nullptr || c.value < best->value)) best = &c;
      const bool is_met = best != nullptr && best->value <= bar * 1.005;
      ++all, met += is_met;
      std::printf("| %s | %.2f | %.2f |", method.c_str(), bits, bar);
      if (best != nullptr)
        std::printf(" %s | %.2f | %.2f%s |\n", best->name.c_str(), best->bits, best->value,
                    is_met ? "" : ", not met");
      else
        std::printf(" none | | not met |\n");
    }
    std::printf("\n%d of %d rows are met with no more bits.\n", met, all);
  }

  void print_recipes() {
    std::printf("\n| recipe | weights | without data | with data |\n| --- | --- | --- | --- |\n");
    for (const std::string& name : recipe_names()) {
      if (name == "int8") continue;  // docs/quantization_static.md has its table
      How how{.exact = false, .parted = false};
      const double without = of(find_recipe(name), how);
      how.calibrated = true;
      const double with = of(find_recipe(name), how);
      std::printf("| `%s` | %.0f kB | %.2f | %.2f |\n", name.c_str(),
                  static_cast<double>(report().bytes_after()) / 1000, without, with);
    }
  }

  std::vector<Candidate> candidates_;
};

// ---- classifiers ----

struct Pictures {
  std::string name;
  Classifier tested, calibrated;
  bool trains = false;  ///< with the numbers of the blocks: 600 steps, as the recorded rows had
};

Recipe whole_recipe(const std::string& format, const std::string& method) {
  return parse_recipe(R"([{"match": "*", "scheme": )" +
                          scheme_of(format, method, R"(, "activations": "float", "widen": true)") +
                          "}]",
                      "recipe");
}

/// The part of the pictures that a model reads that trained with the numbers of its blocks.
double trained_top_1(const Pictures& p, const std::string& format) {
  constexpr int64_t steps = 600, batch = 64;
  const auto source = float_graph(p.tested.model);
  const Recipe recipe = whole_recipe(format, "mse");
  QatModel model(*source, recipe);
  optim::AdamW optimizer(model.parameters(), {.lr = 1e-3, .weight_decay = 0});
  optim::CosineAnnealingLR schedule(optimizer, steps);
  eager::manual_seed(1);
  for (int64_t step = 0; step < steps;)
    for (auto [images, labels] :
         data::Loader(p.calibrated.pictures, {.batch_size = batch, .shuffle = true})) {
      if (step++ == steps) break;
      optimizer.zero_grad();
      // the model gives probabilities
      const Tensor likely = eager::log(eager::clamp_min(model({images})[0], 1e-9));
      eager::nll_loss(likely, labels).backward();
      optimizer.step();
      schedule.step();
    }
  const eager::NoGrad guard;
  const auto trained = model.convert();
  quantize({trained.get()}, recipe);
  const Examples pictures = p.tested.batches(0, p.tested.pictures.size(), 100);
  const std::vector<float> want = logits_of(*source, pictures, p.tested.logits);
  return score(logits_of(*trained, pictures, p.tested.logits), want, p.tested.pictures, 0).top1;
}

/// Weights of all layers in blocks, and what is computed in f32.
void print_classifier(const Pictures& p) {
  const auto rows = nlohmann::json::parse(
      std::ifstream(tests::golden_data("quant/accuracy.json")))[p.name]["rows"];
  const auto recorded = [&](const std::string& method) {
    for (const auto& row : rows)
      if (row["method"] == method) return row["top1"].get<double>();
    throw std::runtime_error("no row " + method);
  };
  const int64_t count = p.tested.pictures.size();
  const Examples pictures = p.tested.batches(0, count, 100),
                 calls = p.calibrated.batches(0, 128, 32);
  const auto source = float_graph(p.tested.model);
  const std::vector<float> want = logits_of(*source, pictures, p.tested.logits);
  std::printf("\n%s\n\n| format | bits | `nearest` | `mse` | `gptq` | others, best |\n",
              p.name.c_str());
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  const std::map<std::string, std::vector<std::string>> bars = {
      {"q8_0", {"int8 weight-only, per channel", "int8 weight-only, per tensor"}},
      {"q5_1", {"int6 RTN sym per channel"}},
      {"q5_0", {"int5 RTN sym per channel"}},
      {"q4_0",
       {"int4 RTN sym per channel", "int4 RTN asym per channel", "int4 RTN asym g32",
        "int4 MSE-clip asym per channel", "int4 HQQ per channel", "int4 GPTQ asym per channel",
        "int4 GPTQ asym g32", "w4a8 static, GPTQ asym g32", "int4 QAT asym per channel (w4a8)"}},
      {"q3_z",
       {"int3 RTN sym per channel", "int3 RTN asym per channel", "int3 RTN asym g32",
        "int3 MSE-clip asym per channel", "int3 HQQ per channel", "int3 GPTQ asym per channel",
        "int3 GPTQ asym g32", "int3 QAT asym per channel (w3a8)"}},
      {"q2_z",
       {"int2 RTN sym per channel", "int2 RTN asym per channel", "int2 RTN asym g32",
        "int2 MSE-clip asym per channel", "int2 HQQ per channel", "int2 GPTQ asym per channel",
        "int2 GPTQ asym g32", "int2 QAT asym per channel (w2a8)"}}};
  for (const std::string format : formats) {
    double bits = 0;
    std::ostringstream cells;
    for (const std::string method : {"nearest", "mse", "gptq"}) {
      const auto graph = float_graph(p.tested.model);
      const Recipe recipe = whole_recipe(format, method);
      Options options;
      if (method == "gptq") options.samples = calls;
      bits = bits_of(quantize({graph.get()}, recipe, options));
      const LabelledScore s =
          score(logits_of(*graph, pictures, p.tested.logits), want, p.tested.pictures, 0);
      char cell[64];
      std::snprintf(cell, sizeof cell, " %.4f, %.1f dB |", s.top1, s.sqnr_db);
      cells << cell;
    }
    std::printf("| `%s` | %.2f |%s", format.c_str(), bits, cells.str().c_str());
    const auto found = bars.find(format);
    if (found != bars.end()) {
      const std::string* best = nullptr;
      for (const std::string& name : found->second)
        if (best == nullptr || recorded(name) > recorded(*best)) best = &name;
      std::printf(" %.4f: %s", recorded(*best), best->c_str());
    }
    std::printf(" |\n");
    std::fflush(stdout);
  }
  if (!p.trains) return;
  std::printf("\ntrained:");
  for (const std::string format : {"q4_0", "q3_z", "q2_z"})
    std::printf(" %s %.4f", format.c_str(), trained_top_1(p, format));
  std::printf("\n");
}

Pictures resnet20() {
  const data::Images pictures =
      data::cifar10(tests::golden_data("datasets/cifar10/cifar10_train_first1000.bin.gz"))
          .normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});
  const Classifier c{tests::golden_data("pt2/resnet20.pt2"), pictures, "linear"};
  return {"resnet20", c, c};
}
Pictures lenet() {
  const std::filesystem::path mnist = tests::golden_data("datasets/mnist"),
                              model = tests::golden_data("pt2/lenet.pt2");
  const auto part = [&](const char* name) {
    return data::mnist(mnist / name).normalize({.1307f}, {.3081f});
  };
  return {"lenet", {model, part("t10k"), "linear_2"}, {model, part("train"), "linear_2"}, true};
}

}  // namespace
}  // namespace taper::quantize

int main(int argc, char** argv) {
  using namespace taper::quantize;
  const std::string chosen = argc > 1 ? argv[1] : "";
  try {
    if (chosen.empty() || chosen == "stories") StoryTables().print();
    if (chosen.empty() || chosen == "resnet20") print_classifier(resnet20());
    if (chosen.empty() || chosen == "lenet") print_classifier(lenet());
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
  return 0;
}
