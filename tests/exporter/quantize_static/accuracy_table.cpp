// Prints what static int8 quantization costs ResNet-20 and LeNet, beside what PyTorch's PT2E with
// the XNNPACK quantizer costs them (accuracy.json of the golden data):
//
//   static_accuracy_table [resnet20|lenet]
#include <chrono>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "taper/tests/exporter/quantize_static/labelled.h"
#include "taper/tests/support/data.h"

namespace taper::quantize {
namespace {

struct Row {
  std::string method;  ///< in accuracy.json; of rows that are not there, how it is printed
  StaticOptions options;
  int64_t calibration_images = 128;
  bool equalize = false;
};

std::vector<Row> rows(int64_t many_images) {
  std::vector<Row> list;
  const auto with = [](ObserverKind kind, bool per_channel) {
    StaticOptions options;
    options.observer.kind = kind;
    // The recorded rows of the moving average were made with this weight.
    options.observer.new_batch_part = 0.1;
    options.per_channel = per_channel;
    options.correct_bias = false;
    options.least_weight_scale = least_scale;
    return options;
  };
  for (const bool per_channel : {false, true}) {
    const std::string stem =
        std::string("int8 static, ") + (per_channel ? "per-channel" : "per-tensor") + " weights, ";
    list.push_back({stem + "min-max", with(ObserverKind::min_max, per_channel)});
    list.push_back({stem + "histogram", with(ObserverKind::histogram, per_channel)});
    list.push_back(
        {stem + "moving average min-max", with(ObserverKind::moving_average, per_channel)});
    list.push_back({stem + "percentile 99.99", with(ObserverKind::percentile, per_channel)});
    list.push_back({stem + "MSE", with(ObserverKind::mse, per_channel)});
    list.push_back({stem + "KL", with(ObserverKind::kl, per_channel)});
    StaticOptions better = with(ObserverKind::histogram, per_channel);
    better.least_weight_scale = StaticOptions().least_weight_scale;
    list.push_back({stem + "histogram, small scales", better});
    better.correct_bias = true;
    list.push_back({stem + "histogram, small scales, bias correction", better});
    better.observer.kind = ObserverKind::mse;
    list.push_back({stem + "MSE, small scales, bias correction", better});
    list.push_back({stem + "histogram, equalization", with(ObserverKind::histogram, per_channel),
                    128, /*equalize=*/true});
  }
  for (const int64_t images : {int64_t{32}, many_images})
    list.push_back(
        {"int8 static, per-channel, histogram, " + std::to_string(images) + " calibration images",
         with(ObserverKind::histogram, true), images});
  return list;
}

/// What the recorded row says of `key`, as text; "-" if there is no such row.
std::string recorded(const nlohmann::json& rows, const std::string& method, const char* key,
                     int digits) {
  for (const auto& row : rows)
    if (row.at("method") == method) {
      std::ostringstream text;
      text << std::fixed << std::setprecision(digits) << row.at(key).get<double>();
      return text.str();
    }
  return "-";
}

std::string fixed(double number, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << number;
  return text.str();
}

void print_table(const std::string& name, const Classifier& classifier,
                 const data::Images& calibration, int64_t many_images) {
  const std::filesystem::path json = tests::golden_data("quant/accuracy.json");
  const nlohmann::json recorded_rows =
      nlohmann::json::parse(std::ifstream(json)).at(name).at("rows");
  const int64_t count = classifier.pictures.size();
  const Examples pictures = classifier.batches(0, count, 100);
  const std::vector<float> want =
      logits_of(*float_graph(classifier.model), pictures, classifier.logits);
  std::cout << name << ", " << count
            << " images; float: " << score(want, want, classifier.pictures, 0).top1 << '\n'
            << "| method | top-1 | recorded | agrees with float | recorded | SQNR dB | recorded |\n"
            << "|---|---|---|---|---|---|---|\n";
  for (const Row& row : rows(many_images)) {
    const auto graph = float_graph(classifier.model);
    if (row.equalize) equalize(*graph);
    const Classifier source{classifier.model, calibration, ""};
    const Ranges ranges =
        calibrate(*graph, source.batches(0, row.calibration_images, 32), row.options);
    quantize_static(*graph, ranges, row.options);
    const LabelledScore s =
        score(logits_of(*graph, pictures, classifier.logits), want, classifier.pictures, 0);
    std::cout << "| " << row.method << " | " << fixed(s.top1, 4) << " | "
              << recorded(recorded_rows, row.method, "top1", 4) << " | " << fixed(s.agrees, 4)
              << " | " << recorded(recorded_rows, row.method, "agree_float", 4) << " | "
              << fixed(s.sqnr_db, 2) << " | " << recorded(recorded_rows, row.method, "sqnr_db", 2)
              << " |" << std::endl;
  }
  std::cout << '\n';
}

}  // namespace
}  // namespace taper::quantize

int main(int argc, char** argv) {
  using namespace taper;
  using namespace taper::quantize;
  const std::string chosen = argc > 1 ? argv[1] : "";
  if (chosen.empty() || chosen == "resnet20") {
    const data::Images pictures =
        data::cifar10(tests::golden_data("datasets/cifar10/cifar10_train_first1000.bin.gz"))
            .normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});
    print_table("resnet20", {tests::golden_data("pt2/resnet20.pt2"), pictures, "linear"}, pictures,
                480);
  }
  if (chosen.empty() || chosen == "lenet") {
    const std::filesystem::path mnist = tests::golden_data("datasets/mnist");
    print_table("lenet",
                {tests::golden_data("pt2/lenet.pt2"),
                 data::mnist(mnist / "t10k").normalize({.1307f}, {.3081f}), "linear_2"},
                data::mnist(mnist / "train").normalize({.1307f}, {.3081f}), 512);
  }
  return 0;
}
