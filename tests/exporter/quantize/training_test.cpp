// LeNet trains with the numbers of its quantized form.
#include "taper/exporter/quantize/training.h"

#include <gmock/gmock.h>

#include <cmath>

#include "taper/exporter/exporter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/quantize/metric.h"
#include "taper/exporter/quantize/prune.h"
#include "taper/exporter/quantize/quantize.h"
#include "taper/exporter/quantize/static/signal_error.h"
#include "taper/runtime/extension/module/module.h"
#include "taper/tests/exporter/passes/apply.h"
#include "taper/tests/exporter/quantize_static/labelled.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::quantize {
namespace {

class qat : public testing::Test {
 protected:
  void SetUp() override {
    TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
    TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
    graph_ = float_graph(model);
    train_.emplace(data::mnist(mnist / "train").normalize({.1307f}, {.3081f}));
    test_.emplace(data::mnist(mnist / "t10k").normalize({.1307f}, {.3081f}));
    ranges_ = calibrate(*graph_, Classifier{model, *train_, ""}.batches(0, 128, 32), options_);
    options_.correct_bias = false;
  }

  /// The part of the first test digits that a graph reads.
  double top_1(const ir::Graph& graph) const {
    TestData data;
    std::vector<std::vector<Tensor>> calls;
    for (auto [images, labels] : data::Loader(test_->range(0, 2000), {.batch_size = 250})) {
      calls.push_back({images});
      for (const int64_t l : labels.to_vector<int64_t>()) data.labels.push_back(l);
    }
    data.examples = calls;
    return Meter(Metric::top_1, std::move(data), *graph_).run(graph).metric;
  }

  /// The model gives probabilities.
  static Tensor loss_of(const Tensor& probabilities, const Tensor& labels) {
    return nll_loss(eager::log(eager::clamp_min(probabilities, 1e-9)), labels);
  }
  double train(QatModel& model, int steps, double lr) const {
    eager::manual_seed(1);
    optim::AdamW optimizer(model.parameters(), {.lr = lr, .weight_decay = 0});
    double last = 0;
    data::Loader loader(train_->range(0, 64 * steps), {.batch_size = 64, .shuffle = true});
    for (auto [images, labels] : loader) {
      optimizer.zero_grad();
      const Tensor loss = loss_of(model({images})[0], labels);
      loss.backward();
      optimizer.step();
      last = loss.item<float>();
    }
    return last;
  }
  std::vector<Tensor> digits(int64_t count) const {
    for (auto [images, labels] : data::Loader(test_->range(0, count), {.batch_size = count}))
      return {images, labels};
    return {};
  }

  std::unique_ptr<ir::Graph> graph_;
  std::optional<data::Images> train_, test_;
  StaticOptions options_;
  Ranges ranges_;
};

double sqnr(const Tensor& got, const Tensor& want) {
  SignalError error;
  error.add(got.detach().to_vector<float>(), want.detach().to_vector<float>());
  return error.sqnr_db();
}

TEST_F(qat, computes_what_the_quantized_model_will) {
  for (const bool per_channel : {true, false}) {
    options_.per_channel = per_channel;
    QatModel model(*graph_, ranges_, options_);
    train(model, 3, 1e-3);  // moves weights and ranges
    model.eval();
    const std::vector<Tensor> images = {digits(100)[0]};
    const Tensor trained = model(images)[0];
    const auto converted = model.convert();
    quantize_static(*converted, model.ranges(), options_);
    const eager::NoGrad guard;
    EXPECT_GT(sqnr(ir::Interpreter(*converted).run(images).outputs[0], trained), 80);
    // the float model is another one
    EXPECT_LT(sqnr(ir::Interpreter(*graph_).run(images).outputs[0], trained), 60);
  }
}

TEST_F(qat, reads_more_digits_with_few_bits) {
  options_.weight_bits = 3;
  QatModel model(*graph_, ranges_, options_);
  const auto quantized = [&] {
    auto graph = model.convert();
    quantize_static(*graph, model.ranges(), options_);
    return top_1(*graph);
  };
  const double before = quantized();
  EXPECT_LT(before, 0.9);  // PyTorch's bar for 3 bits of each channel is 0.787
  train(model, 100, 2e-3);
  const double after = quantized();
  EXPECT_GE(after, 0.95);
  RecordProperty("before", std::to_string(before));
  RecordProperty("after", std::to_string(after));
}

TEST_F(qat, trains_with_the_numbers_of_blocks) {
  const Recipe recipe = parse_recipe(
      R"([{"match": "fc1*", "scheme": {"weights": "q2_k", "method": "nearest",
                                       "activations": "float"}},
          {"match": "*", "scheme": {"weights": "q4_0", "method": "nearest",
                                    "activations": "float", "widen": true}}])",
      "recipe");
  QatModel model(*graph_, recipe);
  const std::vector<Tensor> images = {digits(200)[0]};
  const eager::Tensor want = ir::Interpreter(*graph_).run(images).outputs[0];
  const auto quantized = [&] {
    const eager::NoGrad guard;
    auto graph = model.convert();
    quantize({graph.get()}, recipe);
    return ir::Interpreter(*graph).run(images).outputs[0];
  };
  const Tensor before = quantized();
  const auto loss = [&](const Tensor& got) {
    return loss_of(got.detach(), digits(200)[1]).item<float>();
  };
  train(model, 40, 1e-3);
  const Tensor after = quantized();
  EXPECT_LT(loss(after), loss(before));
  model.eval();
  EXPECT_GT(sqnr(after, model(images)[0]), 80);
  EXPECT_THROW(trace("step", [&](const std::vector<Tensor>& in) { return model(in); },
                     {input("x", {1, 1, 28, 28})}),
               ExportError);
}

/// Six rows choose the first and the third of three experts.
TEST(qat_of_experts, trains_with_the_numbers_of_blocks) {
  for (const bool is_transposed : {false, true}) {
    const std::vector<int64_t> sizes =
        is_transposed ? std::vector<int64_t>{3, 64, 5} : std::vector<int64_t>{3, 5, 64};
    ir::Payloads payloads;
    const std::string text =
        "graph f\n" + passes::constant("w", passes::random_payload(sizes, 1), payloads) +
        "input \"x\" = %x: f32[6, 64]\ninput \"ends\" = %ends: i32[3]\n" +
        (is_transposed ? "" : "%t: f32[3, 64, 5] = transpose.int(%w, 1, 2)\n") +
        "%y: f32[6, 5] = _grouped_mm(%x, " + (is_transposed ? "%w" : "%t") +
        ", %ends, none, none)\noutput \"y\" = %y\n";
    const std::unique_ptr<ir::Graph> graph = ir::parse(text, payloads);
    const std::vector<Tensor> inputs = {passes::random_tensor({6, 64}, 3),
                                        Tensor::from(std::vector<int32_t>{2, 2, 6}, {3})};
    const Recipe recipe = parse_recipe(
        R"([{"match": "*", "scheme": {"weights": "nf4", "method": "nearest",
                                      "activations": "float"}}])",
        "recipe");
    QatModel model(*graph, recipe);
    ASSERT_EQ(model.parameters().size(), 1u);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    const Tensor target = eager::ones({6, 5});
    std::vector<double> losses;
    for (int step = 0; step < 20; ++step) {
      optimizer.zero_grad();
      const Tensor loss = eager::mse_loss(model(inputs)[0], target);
      loss.backward();
      optimizer.step();
      losses.push_back(loss.item());
    }
    EXPECT_LT(losses.back(), 0.5 * losses.front());
    model.eval();
    const auto converted = model.convert();
    quantize({converted.get()}, recipe);
    const eager::NoGrad guard;
    EXPECT_GT(sqnr(ir::Interpreter(*converted).run(inputs).outputs[0], model(inputs)[0]), 80);
    EXPECT_LT(sqnr(ir::Interpreter(*graph).run(inputs).outputs[0], model(inputs)[0]), 30);
  }
}

TEST_F(qat, learns_scales_of_activations) {
  // ranges that are much too wide
  Ranges wide = ranges_;
  for (auto& [name, range] : wide.values)
    if (name != "softmax") range.grid.scale *= 12, range.low *= 12, range.high *= 12;
  QatModel model(*graph_, wide, options_, {.learns_scales = true});
  const auto names = model.named_parameters();
  EXPECT_EQ(std::ranges::count_if(names, [](const auto& p) { return p.first.ends_with(".scale"); }),
            6);
  const auto quantized = [&] {
    auto graph = model.convert();
    quantize_static(*graph, model.ranges(), options_);
    return top_1(*graph);
  };
  const double before = quantized();
  train(model, 60, 1e-3);
  EXPECT_GT(quantized(), before);
}

TEST_F(qat, keeps_ranges_that_are_frozen) {
  QatModel model(*graph_, ranges_, options_);
  const auto range_of = [&](const char* name) { return model.ranges().values.at(name).high; };
  const float before = range_of("x");
  model.freeze_observers();
  train(model, 2, 1e-3);
  EXPECT_EQ(range_of("x"), before);
  QatModel moving(*graph_, ranges_, options_, {.averaging = 0.5});
  moving({digits(10)[0] * 3.0});
  EXPECT_NEAR(moving.ranges().values.at("x").high, before * 2, before * 0.1);
}

TEST_F(qat, exports_a_step_that_trains_on_the_device) {
  QatModel model(*graph_, ranges_, options_);
  QatModel eager_model(*graph_, ranges_, options_);
  optim::SGD optimizer(model.parameters(), {.lr = 0.01}),
      eager_optimizer(eager_model.parameters(), {.lr = 0.01});
  const auto step = [](QatModel& m, optim::SGD& o, const Tensor& images, const Tensor& labels) {
    o.zero_grad();
    const Tensor loss = loss_of(m({images})[0], labels);
    loss.backward();
    o.step();
    return loss;
  };
  Exporter exporter;
  exporter.method("train",
                  [&](const Tensor& images, const Tensor& labels) {
                    return step(model, optimizer, images, labels);
                  },
                  {input("images", {16, 1, 28, 28}), input("labels", {16}, DType::i64)});
  const std::vector<std::byte> program = exporter.write(ExportOptions{.quiet = true});
  Module module =
      Module::load(Span<const std::byte>(program.data(), static_cast<index_t>(program.size())))
          .value();
  const std::vector<Tensor> batch = digits(16);
  float first = 0, last = 0;
  for (int i = 0; i < 5; ++i) {
    const auto loss = module.execute("train", {Input(batch[0].ref()), Input(batch[1].ref())});
    ASSERT_TRUE(loss.ok()) << module.message();
    last = loss.value()[0].data<float>()[0];
    if (i == 0) first = last;
    EXPECT_NEAR(last, step(eager_model, eager_optimizer, batch[0], batch[1]).item<float>(), 1e-4);
  }
  EXPECT_LT(last, first);
}

/// The zeros of pruning outlive training with integers, on the host and on the device.
TEST_F(qat, exports_a_step_that_keeps_zeros) {
  int64_t zeros = 0;
  for (const PrunedWeight& w : prune({graph_.get()}, {}).weights) zeros += w.zeros;
  QatModel model(*graph_, ranges_, options_);
  const std::vector<Tensor> parameters = model.parameters();
  const auto count = [](const Tensor& t) {
    return std::ranges::count(t.detach().contiguous().to_vector<float>(), 0.0f);
  };
  const auto zeros_of = [&](const ir::Graph& graph) {
    int64_t sum = 0;
    for (const ir::Constant& c : graph.constants())
      if (c.payload->dtype == DType::f32 && c.payload->sizes.size() > 1)
        sum += count(ir::tensor_of(c.payload));
    return sum;
  };
  optim::SGD optimizer(parameters, {.lr = 0.01, .momentum = 0.9});
  ZeroMask mask(parameters);
  const auto step = [&](const Tensor& images, const Tensor& labels) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(model({images})[0], labels);
    loss.backward();
    optimizer.step();
    mask.apply();
    return loss;
  };
  Exporter exporter;
  exporter.method("train", step,
                  {input("images", {16, 1, 28, 28}), input("labels", {16}, DType::i64)});
  const std::vector<std::byte> program = exporter.write(ExportOptions{.quiet = true});
  Module module =
      Module::load(Span<const std::byte>(program.data(), static_cast<index_t>(program.size())))
          .value();
  const std::vector<Tensor> batch = digits(16);
  const auto zeros_on_device = [&] {
    int64_t sum = 0;
    for (const auto& [path, parameter] : model.named_parameters()) {
      const Result<OwnedTensor> state = module.state(path);
      if (!state.ok() || parameter.rank() < 2) continue;
      const auto* x = state.value().data<float>();
      sum += std::count(x, x + parameter.numel().value(), 0.0f);
    }
    return sum;
  };
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(module.execute("train", {Input(batch[0].ref()), Input(batch[1].ref())}).ok())
        << module.message();
    step(batch[0], batch[1]);
  }
  EXPECT_GE(zeros_on_device(), zeros);
  EXPECT_LE(zeros_on_device(), zeros + 10);
  EXPECT_GE(zeros_of(*model.convert()), zeros);
  step(batch[0], batch[1]);
  EXPECT_LE(zeros_of(*model.convert()), zeros + 10);
}

TEST_F(qat, refuses_what_cannot_be_trained) {
  EXPECT_EXPORT_ERROR(
      QatModel(*graph_, parse_recipe(R"([{"match": "*", "scheme": "float"}])", "recipe")),
      "no weight of the model is quantized");
  EXPECT_EXPORT_ERROR(QatModel(*graph_, Ranges{}, options_), "there is no range for %x");
}

}  // namespace
}  // namespace taper::quantize
