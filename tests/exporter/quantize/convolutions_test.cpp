// Weights of convolutions in a few bits, by what GPTQ learns of the pictures: ResNet-20 beside what
// other implementations reach.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "taper/exporter/quantize/quantize.h"
#include "taper/tests/exporter/quantize_static/labelled.h"
#include "taper/tests/support/data.h"

namespace taper::quantize {
namespace {

/// ResNet-20 with 1000 pictures of CIFAR-10.
class few_bits : public testing::Test {
 protected:
  void SetUp() override {
    TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/resnet20.pt2");
    TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
    TAPER_GOLDEN_DATA_OR_SKIP(json, "quant/accuracy.json");
    bars_ = nlohmann::json::parse(std::ifstream(json))["resnet20"]["rows"];
    classifier_.emplace(Classifier{
        model, data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f}),
        "linear"});
    pictures_ = classifier_->batches(0, 1000, 100);
    want_ = logits_of(*float_graph(model), pictures_, classifier_->logits);
  }
  double bar(const std::string& method, const char* key) const {
    for (const auto& row : bars_)
      if (row["method"] == method) return row[key];
    throw std::runtime_error("no bar for " + method);
  }
  LabelledScore of(const std::string& scheme) const {
    const auto graph = float_graph(classifier_->model);
    const Recipe recipe = parse_recipe(R"([{"match": "*", "scheme": )" + scheme + "}]", "recipe");
    quantize({graph.get()}, recipe, {.samples = classifier_->batches(0, 128, 32)});
    return score(logits_of(*graph, pictures_, classifier_->logits), want_, classifier_->pictures,
                 0);
  }
  /// The default method, with the data.
  LabelledScore in(const std::string& format, const char* more = "") const {
    return of(R"({"weights": ")" + format + R"(", "activations": "float", "widen": true)" + more +
              "}");
  }

  nlohmann::json bars_;
  std::optional<Classifier> classifier_;
  Examples pictures_;
  std::vector<float> want_;
};

constexpr double noise = 0.003;  // of the bars

TEST_F(few_bits, keep_the_answers_of_resnet20) {
  EXPECT_GE(in("q4_0").top1, bar("int4 GPTQ asym g32", "top1") - noise);
  EXPECT_GE(in("q3_z").top1, bar("int3 GPTQ asym g32", "top1") - noise);
  EXPECT_GE(in("q2_z").top1, bar("int2 GPTQ asym g32", "top1") - noise);
}

TEST_F(few_bits, of_convolutions_need_no_data) {
  const LabelledScore s = of(R"({"weights": "q4_0", "method": "mse", "widen": true})");
  EXPECT_GT(in("q4_0").sqnr_db, s.sqnr_db + 3);
}

}  // namespace
}  // namespace taper::quantize
