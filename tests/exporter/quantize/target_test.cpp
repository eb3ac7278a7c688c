// Layers get as many bits as a goal needs: trained models.
#include "taper/exporter/quantize/target.h"

#include <gmock/gmock.h>

#include "taper/exporter/exporter.h"
#include "taper/exporter/quantize/metric.h"
#include "taper/exporter/quantize/static/signal_error.h"
#include "taper/tests/exporter/quantize_static/labelled.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::quantize {
namespace {

Target target_of(const Goal& goal, const Meter& meter) {
  return {goal, [&](const std::vector<ir::Graph*>& graphs) { return meter.run(*graphs[0]); }, {}};
}

/// ResNet-20 with a few pictures.
class resnet20 : public testing::Test {
 protected:
  void SetUp() override {
    TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/resnet20.pt2");
    TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
    const data::Images pictures =
        data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f});
    classifier_.emplace(Classifier{model, pictures, "linear"});
    graph_ = float_graph(model);
    ranges_ = calibrate(*graph_, classifier_->batches(0, 32, 32), options_);
    tests_ = classifier_->batches(500, 516, 8);
  }
  /// The cosine of the logits and those of the float model, without the meter.
  double cosine_with(const StaticOptions& options) const {
    const auto copy = float_graph(classifier_->model);
    quantize_static(*copy, ranges_, options);
    SignalError error;
    error.add(logits_of(*copy, tests_, "linear"), logits_of(*graph_, tests_, "linear"));
    return error.cosine();
  }

  std::optional<Classifier> classifier_;
  std::unique_ptr<ir::Graph> graph_;
  StaticOptions options_;
  Ranges ranges_;
  Examples tests_;
};

TEST_F(resnet20, keeps_the_nodes_as_float_that_a_goal_needs) {
  const double all_integers = cosine_with(options_);
  const Goal goal{1 - (1 - all_integers) / 3, false};  // 5 dB better
  const Meter meter(Metric::cosine, {tests_, {}}, *graph_);
  const StaticTarget found = static_options_for(*graph_, ranges_, options_, target_of(goal, meter));
  EXPECT_GE(cosine_with(found.options), goal.bound);
  const std::vector<SearchPoint>& measured = found.search.measured;
  EXPECT_LT(found.search.best.bytes, measured[0].bytes);  // less than all in float
  EXPECT_GT(found.search.best.bytes, measured[1].bytes);  // more than all in 8 bits
  EXPECT_LT(static_cast<double>(found.search.best.bytes),
            0.6 * static_cast<double>(measured[0].bytes));
  EXPECT_EXPORT_ERROR(static_options_for(*graph_, ranges_, options_, target_of({2, false}, meter)),
                      "the model reaches 1 before it is quantized");
}

TEST_F(resnet20, has_floats_of_8_bits_with_the_noise_of_the_bar) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/resnet20.pt2");
  const auto graph = graph_of(model);
  EXPECT_EQ(quantize({graph.get()}, find_recipe("fp8")).weights.size(), 20u);
  // batch norms are folded into the weights
  EXPECT_EQ(std::ranges::count_if(graph->nodes(),
                                  [](const ir::Node& n) {
                                    return n.op == &ops::_native_batch_norm_legit_no_training;
                                  }),
            0);
  SignalError error;
  error.add(logits_of(*graph, tests_, "linear"), logits_of(*graph_, tests_, "linear"));
  EXPECT_GE(error.sqnr_db(), 27.5 - 1);  // PyTorch's on 1000 pictures; these are 16
}

TEST_F(resnet20, knows_its_pictures) {
  std::vector<int64_t> labels;
  for (int64_t i = 500; i < 516; ++i) labels.push_back(classifier_->pictures.label(i));
  // PyTorch's ResNet-20 knows 999 of the 1000
  EXPECT_GE(Meter(Metric::top_1, {tests_, labels}, *graph_).run(*graph_).metric, 15 / 16.0);
  std::vector<int64_t> wild = labels;
  wild[3] = 10;
  EXPECT_EXPORT_ERROR(Meter(Metric::top_1, {tests_, wild}, *graph_),
                      "the label 10 is none of the 10 classes of the first output");
  labels.pop_back();
  EXPECT_EXPORT_ERROR(Meter(Metric::top_1, {tests_, labels}, *graph_),
                      "15 labels for 16 rows of the first output");
  const Examples nan(1, [](size_t) {
    return std::vector{eager::full({1, 3, 32, 32}, std::nan(""), DType::f32)};
  });
  EXPECT_EXPORT_ERROR(Meter(Metric::cosine, {nan, {}}, *graph_), "outputs are not finite");
  EXPECT_EXPORT_ERROR(Meter(Metric::perplexity, {tests_, {}}, *graph_),
                      "perplexity needs a model that takes tokens");
}

}  // namespace
}  // namespace taper::quantize
