// LeNet and ResNet-20 with half of their weights, beside what others reach with the same pattern.
#include "taper/exporter/quantize/prune.h"

#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "taper/exporter/exporter.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/parser.h"
#include "taper/tests/exporter/passes/apply.h"
#include "taper/tests/exporter/quantize_static/labelled.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::quantize {
namespace {

using eager::Tensor;
using Method = Pruning::Method;

double bar(const std::string& model, const std::string& method, const char* key) {
  const auto rows = nlohmann::json::parse(
      std::ifstream(tests::golden_data("quant/accuracy.json")))[model]["rows"];
  for (const auto& row : rows)
    if (row["method"] == method) return row[key];
  throw std::runtime_error("no bar for " + method);
}

/// The part of pictures [begin, end) whose largest output is the label's.
double top_1(const ir::Graph& graph, const data::Images& pictures, int64_t begin, int64_t end) {
  const eager::NoGrad guard;
  double right = 0;
  int64_t at = begin;
  for (auto [images, labels] : data::Loader(pictures.range(begin, end), {.batch_size = 100})) {
    const std::vector<float> y = ir::Interpreter(graph).run({images}).outputs[0].to_vector<float>();
    for (size_t i = 0; i < y.size() / 10; ++i)
      right += static_cast<int64_t>(largest(y, i, 10)) == pictures.label(at++);
  }
  return right / static_cast<double>(end - begin);
}

TEST(prune, leaves_lenet_what_others_leave) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
  TAPER_GOLDEN_DATA_OR_SKIP(json, "quant/accuracy.json");
  const data::Images test = data::mnist(mnist / "t10k").normalize({.1307f}, {.3081f}),
                     train = data::mnist(mnist / "train").normalize({.1307f}, {.3081f});
  const Examples samples = Classifier{model, train, ""}.batches(0, 128, 32);
  const auto score_of = [&](Method method) {
    const auto graph = float_graph(model);
    const PruneReport pruned = prune({graph.get()}, {.method = method}, samples);
    EXPECT_EQ(pruned.weights.size(), 5u);
    for (const PrunedWeight& w : pruned.weights)
      EXPECT_NEAR(static_cast<double>(w.zeros) / static_cast<double>(w.elements), 0.5, 0.03)
          << w.path;
    return top_1(*graph, test, 0, 10000);
  };
  EXPECT_NEAR(score_of(Method::magnitude), bar("lenet", "2:4 magnitude", "top1"), 0.002);
  EXPECT_NEAR(score_of(Method::wanda), bar("lenet", "2:4 Wanda", "top1"), 0.005);
  // nobody recorded SparseGPT
  EXPECT_GE(score_of(Method::sparsegpt), bar("lenet", "2:4 magnitude", "top1"));
}

/// How far the answers are from those of another model (Kullback-Leibler, up to a constant).
Tensor distillation_loss(const Tensor& logits, const ir::Graph& teacher, const Tensor& images) {
  Tensor wanted;
  {
    const eager::NoGrad guard;
    wanted = softmax(ir::Interpreter(teacher).run({images}).outputs[0], 1);
  }
  return mean(sum(wanted * log_softmax(logits, 1), {1})) * -1.0;
}

/// A graph as a function of its weights.
struct GraphOfWeights {
  ir::Graph& graph;
  std::vector<Tensor> weights;
  std::vector<std::string> paths;

  explicit GraphOfWeights(ir::Graph& of) : graph(of) {
    std::vector<ir::Value*> old;
    for (const ir::Constant& c : graph.constants()) {
      if (c.payload->dtype != DType::f32) continue;
      weights.push_back(nn::Parameter(ir::tensor_of(c.payload).clone()));
      paths.push_back("p" + std::to_string(paths.size()));
      old.push_back(c.value.get());
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      std::vector<int64_t> sizes;
      for (const Dim& d : weights[i].sizes()) sizes.push_back(d.value());
      graph.replace_uses(old[i],
                         graph
                             .add_state(paths[i], ir::StateKind::parameter, true, DType::f32, sizes,
                                        ir::payload_of(weights[i].detach()))
                             ->value.get());
    }
  }
  Tensor run(const Tensor& x) const {
    ir::Interpreter interpreter(graph);
    for (size_t i = 0; i < weights.size(); ++i) interpreter.set_state(paths[i], weights[i]);
    return interpreter.run({x}).outputs[0];
  }
  int64_t count_zeros() const {
    int64_t zeros = 0;
    for (const Tensor& w : weights)
      zeros += std::ranges::count(w.detach().to_vector<float>(), 0.0f);
    return zeros;
  }
  /// The part of pictures [begin, end) whose largest output is the label's.
  double top_1(const data::Images& pictures, int64_t begin, int64_t end) const {
    const eager::NoGrad guard;
    double right = 0;
    int64_t at = begin;
    for (auto [images, labels] : data::Loader(pictures.range(begin, end), {.batch_size = 100})) {
      const std::vector<float> y = run(images).to_vector<float>();
      for (size_t i = 0; i < y.size() / 10; ++i)
        right += static_cast<int64_t>(largest(y, i, 10)) == pictures.label(at++);
    }
    return right / static_cast<double>(end - begin);
  }
};

TEST(prune, lets_lenet_learn_to_do_without_the_zeros) {
  TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/lenet.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(mnist, "datasets/mnist");
  TAPER_GOLDEN_DATA_OR_SKIP(json, "quant/accuracy.json");
  const data::Images test = data::mnist(mnist / "t10k").normalize({.1307f}, {.3081f}),
                     train = data::mnist(mnist / "train").normalize({.1307f}, {.3081f});
  const auto graph = float_graph(model);
  prune({graph.get()}, {.method = Method::magnitude});
  const GraphOfWeights pruned(*graph);
  ZeroMask mask(pruned.weights);
  const int64_t zeros = pruned.count_zeros();
  eager::manual_seed(1);
  constexpr int epochs = 5, steps = epochs * 125;
  optim::AdamW optimizer(pruned.weights, {.lr = 2e-3, .weight_decay = 0});
  optim::CosineAnnealingLR schedule(optimizer, steps);
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (auto [images, labels] :
         data::Loader(train.range(0, 8000), {.batch_size = 64, .shuffle = true})) {
      optimizer.zero_grad();
      // the model gives probabilities
      const Tensor likely = eager::log(eager::clamp_min(pruned.run(images), 1e-30));
      eager::nll_loss(likely, labels).backward();
      optimizer.step();
      schedule.step();
      mask.apply();
    }
  EXPECT_EQ(pruned.count_zeros(), zeros);
  const double got = pruned.top_1(test, 0, 10000);
  RecordProperty("top-1", std::to_string(got));
  EXPECT_GE(got, bar("lenet", "2:4 magnitude + fine-tuning", "top1") - 0.003);
}

class pruned_resnet : public testing::Test {
 protected:
  void SetUp() override {
    TAPER_GOLDEN_DATA_OR_SKIP(model, "pt2/resnet20.pt2");
    TAPER_GOLDEN_DATA_OR_SKIP(cifar, "datasets/cifar10/cifar10_train_first1000.bin.gz");
    TAPER_GOLDEN_DATA_OR_SKIP(json, "quant/accuracy.json");
    pictures_.emplace(data::cifar10(cifar).normalize({.485f, .456f, .406f}, {.229f, .224f, .225f}));
    graph_ = float_graph(model);
    model_ = model;
  }
  std::filesystem::path model_;
  std::optional<data::Images> pictures_;
  std::unique_ptr<ir::Graph> graph_;
};

TEST_F(pruned_resnet, keeps_what_others_keep) {
  prune({graph_.get()}, {.method = Method::magnitude});
  EXPECT_NEAR(top_1(*graph_, *pictures_, 500, 1000),
              bar("resnet20", "2:4 magnitude", "top1_500_999"), 0.01);
}

TEST_F(pruned_resnet, learns_to_do_without_the_zeros) {
  const auto teacher = float_graph(model_);
  prune({graph_.get()}, {.method = Method::magnitude});
  const double before = top_1(*graph_, *pictures_, 500, 1000);
  const GraphOfWeights pruned(*graph_);
  const std::vector<Tensor>& weights = pruned.weights;
  const auto run = [&](const Tensor& x) { return pruned.run(x); };
  const auto count_zeros = [&] { return pruned.count_zeros(); };
  const int64_t zeros = count_zeros();
  EXPECT_GT(zeros, 130000);
  ZeroMask mask(weights);
  eager::manual_seed(1);
  optim::AdamW optimizer(weights, {.lr = 3e-4, .weight_decay = 0});
  for (int epoch = 0; epoch < 8; ++epoch)
    for (auto [images, labels] :
         data::Loader(pictures_->range(0, 500), {.batch_size = 50, .shuffle = true})) {
      optimizer.zero_grad();
      distillation_loss(run(images), *teacher, images).backward();
      optimizer.step();
      mask.apply();
    }
  EXPECT_EQ(count_zeros(), zeros);
  const double after = pruned.top_1(*pictures_, 500, 1000);
  std::cout << "top-1 with 2:4: " << before << " -> " << after << '\n';
  EXPECT_GE(after, bar("resnet20", "2:4 magnitude + fine-tuning", "top1_500_999") - 0.01);
}

TEST_F(pruned_resnet, refuses_what_cannot_be_pruned) {
  EXPECT_EXPORT_ERROR(prune({graph_.get()}, {.sparsity = {.keep = 4}}),
                      "pruning 4:4 keeps nothing or everything");
  EXPECT_EXPORT_ERROR(prune({graph_.get()}, {.exclude = {"nothing"}}),
                      "\"nothing\" excludes no weight");
  EXPECT_EXPORT_ERROR(
      prune({graph_.get()}, {.sparsity = {.part = .5, .rows = 512, .columns = 4096}}),
      "0.5:512x4096 sets nothing to zero");
  const Examples none({{passes::random_tensor({1, 3, 32, 32}, 1)}});
  EXPECT_EXPORT_ERROR(
      prune({graph_.get()},
            {.method = Method::sparsegpt, .sparsity = {.part = .5, .rows = 4, .columns = 4}}, none),
      "sparsegpt prunes single weights");
  EXPECT_EXPORT_ERROR(prune({graph_.get()}, {.method = Method::wanda}), "needs calibration data");
  EXPECT_EXPORT_ERROR(prune({graph_.get()}, {.exclude = {"*"}}), "no constant weight to prune");
}

/// A linear layer of two outputs whose weight ends with `last`.
std::unique_ptr<ir::Graph> graph_with(float last) {
  const auto w =
      ir::payload_of(Tensor::from(std::vector<float>{1, -2, 3, 4, 5, 6, 7, last}, {2, 4}));
  ir::Payloads payloads;
  const std::string constant = passes::constant("w", w, payloads);
  return ir::parse("graph f\n" + constant +
                       "input \"x\" = %x: f32[3, 4]\n%y: f32[3, 2] = linear(%x, %w, none)\n"
                       "output \"y\" = %y\n",
                   payloads);
}
std::vector<float> first_constant(const ir::Graph& graph) {
  return ir::tensor_of(graph.constants().front().payload).to(DType::f32).to_vector<float>();
}

TEST(prune, refuses_nan) {
  const auto graph = graph_with(8);
  prune({graph.get()}, {});
  ASSERT_EQ(graph->constants().size(), 1u);
  EXPECT_THAT(first_constant(*graph), testing::ElementsAre(0, 0, 3, 4, 0, 0, 7, 8));
  EXPECT_EXPORT_ERROR(prune({graph_with(NAN).get()}, {}), "holds infinity or NaN");
  EXPECT_EXPORT_ERROR(prune({graph_with(8).get()}, {.damping = NAN}), "damping");
  EXPECT_EXPORT_ERROR(prune({graph.get()}, {}), "zero already");  // a second time
}

TEST(prune, looks_at_inputs_with_wanda) {
  const auto graph = graph_with(8);
  // the first input is large, the last one zero
  const Examples x(
      {{Tensor::from(std::vector<float>{9, 1, 1, 0, 9, 1, 1, 0, 9, 1, 1, 0}, {3, 4})}});
  const PruneReport report = prune({graph.get()}, {.method = Method::wanda}, x);
  EXPECT_THAT(first_constant(*graph), testing::ElementsAre(1, 0, 3, 0, 5, 0, 7, 0));
  EXPECT_THAT(report.notes, testing::IsEmpty());
}

TEST(prune, warns_of_inputs_that_say_nothing) {
  const auto graph = graph_with(8);
  const Examples zeros({{Tensor::from(std::vector<float>(12, 0), {3, 4})}});
  for (const Method method : {Method::wanda, Method::sparsegpt}) {
    const auto copy = graph_with(8);
    const PruneReport report = prune({copy.get()}, {.method = method}, zeros);
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_THAT(report.notes[0], testing::HasSubstr("the input of w is zero in all of the data"));
    EXPECT_THAT(first_constant(*copy), testing::ElementsAre(0, 0, 3, 4, 0, 0, 7, 8));
  }
}

/// Methods of a program: the second has a weight of its own in the body of a branch, and only looks
/// up the rows of the first one's weight.
TEST(prune, reaches_all_graphs_and_their_bodies) {
  const auto shared = passes::random_payload({8, 16}, 1), own = passes::random_payload({4, 16}, 2);
  for (const Method method : {Method::magnitude, Method::wanda}) {
    ir::Payloads payloads;
    const std::string head = passes::constant("head", shared, payloads),
                      branch = passes::constant("branch", own, payloads);
    const auto decode = ir::parse("graph decode\n" + head +
                                      "input \"i\" = %i: i64[3]\n"
                                      "%x: f32[3, 16] = embedding(%head, %i, -1, false, false)\n"
                                      "output \"x\" = %x\n",
                                  payloads),
               score = ir::parse("graph score\n" + head +
                                     "input \"x\" = %x: f32[3, 16]\n"
                                     "%y: f32[3, 8] = linear(%x, %head, none)\n"
                                     "output \"y\" = %y\n",
                                 payloads),
               choose = ir::parse(
                   "graph choose\n"
                   "input \"p\" = %p: bool[]\n"
                   "input \"x\" = %x: f32[3, 16]\n"
                   "%y: f32[3, 4] = higher_order::cond(%p, [%x]) {\n"
                   "graph a\n" +
                       branch +
                       "input \"u\" = %u: f32[3, 16]\n"
                       "%r: f32[3, 4] = linear(%u, %branch, none)\n"
                       "output \"r\" = %r\n"
                       "} {\n"
                       "graph b\n"
                       "input \"v\" = %v: f32[3, 16]\n"
                       "%s: f32[3, 4] = slice.Tensor(%v, 1, 0, 4, 1)\n"
                       "%t: f32[3, 4] = neg(%s)\n"
                       "output \"r\" = %t\n"
                       "}\noutput \"y\" = %y\n",
                   payloads);
    const PruneReport report =
        prune({decode.get(), score.get(), choose.get()}, {.method = method},
              Examples({{Tensor::from(std::vector<int64_t>{1, 5, 2}, {3})}}));
    ASSERT_EQ(report.weights.size(), 2u);
    EXPECT_EQ(report.weights[0].zeros, 8 * 8) << name_of(method);
    EXPECT_EQ(report.weights[1].zeros, 4 * 8);
    // the example runs none of their products
    EXPECT_THAT(report.notes,
                method == Method::magnitude
                    ? testing::Matcher<std::vector<std::string>>(testing::IsEmpty())
                    : testing::ElementsAre(testing::HasSubstr(
                          "the inputs of 2 weights, such as head, are zero in all of the data")));
    EXPECT_EQ(std::ranges::count(first_constant(*decode), 0.0f), 8 * 8);
    EXPECT_EQ(decode->constants().front().payload, score->constants().front().payload);
    const ir::Graph& body = *choose->nodes().front().bodies[0];
    ASSERT_EQ(body.constants().size(), 1u);
    EXPECT_EQ(std::ranges::count(first_constant(body), 0.0f), 4 * 8);
  }
}

/// An embedding and the head of a model share a weight in f16.
TEST(prune, gives_tied_weights_the_same_zeros) {
  const auto w = passes::random_payload({8, 16}, 1);
  ir::Payloads payloads;
  const std::string constant =
      passes::constant("w", ir::payload_of(ir::tensor_of(w).to(DType::f16)), payloads);
  const auto graph = ir::parse("graph f\n" + constant +
                                   "input \"i\" = %i: i64[3]\n"
                                   "%f: f32[8, 16] = _to_copy(%w, f32)\n"
                                   "%x: f32[3, 16] = embedding(%f, %i, -1, false, false)\n"
                                   "%y: f32[3, 8] = linear(%x, %f, none)\n"
                                   "output \"y\" = %y\n",
                               payloads);
  const PruneReport report =
      prune({graph.get()}, {.method = Method::wanda, .sparsity = {.part = .75}},
            Examples({{Tensor::from(std::vector<int64_t>{1, 5, 2}, {3})}}));
  ASSERT_EQ(report.weights.size(), 1u);
  EXPECT_EQ(report.weights[0].zeros, 8 * 12);  // of each row
  ASSERT_EQ(graph->constants().size(), 1u);
  EXPECT_EQ(graph->constants().front().payload->dtype, DType::f16);
  EXPECT_EQ(std::ranges::count(first_constant(*graph), 0.0f), 8 * 12);
}

/// Channels of a depthwise convolution have inputs of their own.
TEST(prune, takes_the_groups_of_convolutions) {
  const auto w = passes::random_payload({4, 1, 3, 3}, 2);
  for (const Method method : {Method::magnitude, Method::wanda, Method::sparsegpt}) {
    ir::Payloads payloads;
    const std::string constant = passes::constant("w", w, payloads);
    const auto graph = ir::parse(
        "graph f\n" + constant +
            "input \"x\" = %x: f32[1, 4, 8, 8]\n%y: f32[1, 4, 8, 8] = convolution(%x, %w, none, "
            "[1, 1], [1, 1], [1, 1], false, [0, 0], 4)\noutput \"y\" = %y\n",
        payloads);
    const Examples x({{passes::random_tensor({1, 4, 8, 8}, 3)}});
    const PruneReport report =
        prune({graph.get()}, {.method = method, .sparsity = {.part = 1. / 3}}, x);
    EXPECT_EQ(report.weights[0].zeros, 12) << name_of(method);
    EXPECT_EQ(report.weights[0].zero_rows, 0);
  }
}

/// A convolution of two channels with 16 weights.
struct Convolution {
  std::vector<int64_t> w_sizes, x_sizes;
  std::string x_type, y_type, arguments;  ///< arguments: stride, padding, dilation

  std::unique_ptr<ir::Graph> graph(const std::vector<float>& w) const {
    ir::Payloads payloads;
    const std::string constant =
        passes::constant("w", ir::payload_of(Tensor::from(w, w_sizes)), payloads);
    return ir::parse("graph f\n" + constant + "input \"x\" = %x: " + x_type + "\n%y: " + y_type +
                         " = convolution(%x, %w, none, " + arguments + ", 1)\noutput \"y\" = %y\n",
                     payloads);
  }
  /// What Wanda has to sum: with one weight of 1 beside zeros, the results are this weight's
  /// inputs.
  std::vector<float> norms(const Tensor& x) const {
    std::vector<float> norms;
    for (size_t i = 0; i < 16; ++i) {
      std::vector<float> one(16, 0);
      one[i] = 1;
      double sum = 0;
      for (const float y : passes::run(*graph(one), {x})) sum += static_cast<double>(y) * y;
      norms.push_back(static_cast<float>(std::sqrt(sum)));
    }
    return norms;
  }
};

TEST(prune, learns_from_the_inputs_of_lines_pictures_and_volumes) {
  const Convolution line{
      {1, 2, 8}, {2, 2, 20}, "f32[2, 2, 20]", "f32[2, 1, 5]", "[2], [1], [2], false, [0]"},
      picture{{1, 2, 2, 4},
              {2, 2, 5, 6},
              "f32[2, 2, 5, 6]",
              "f32[2, 1, 4, 3]",
              "[1, 2], [0, 1], [1, 1], false, [0, 0]"},
      volume{{1, 2, 2, 2, 2},
             {2, 2, 5, 3, 4},
             "f32[2, 2, 5, 3, 4]",
             "f32[2, 1, 3, 2, 5]",
             "[2, 1, 1], [1, 0, 1], [2, 1, 1], false, [0, 0, 0]"};
  for (const Convolution& c : {line, picture, volume}) {
    const Tensor x = passes::random_tensor(c.x_sizes, 5);
    const Examples examples({{x}});
    const std::vector<float> norms = c.norms(x);
    std::vector<float> sorted = norms;
    std::ranges::sort(sorted);
    const auto graph = c.graph(std::vector<float>(16, 1));
    prune({graph.get()}, {.method = Method::wanda, .sparsity = {.part = .5}}, examples);
    const std::vector<float> pruned = first_constant(*graph);
    for (size_t i = 0; i < 16; ++i)
      EXPECT_EQ(pruned[i] != 0, norms[i] >= sorted[8]) << c.x_type << " " << i;
    const auto whole = c.graph(std::vector<float>(16, 1));
    const PruneReport report = prune({whole.get()}, {.method = Method::sparsegpt}, examples);
    EXPECT_EQ(report.weights[0].zeros, 8) << c.x_type;
  }
}

/// Two experts of 4 results and 8 inputs, as both layouts store them. The smaller two of each four
/// neighbours along the inputs become zero.
TEST(prune, takes_stacks_of_matrices_by_magnitude) {
  const Tensor experts = passes::random_tensor({2, 4, 8}, 1);  // (expert, result, input)
  std::vector<float> want = experts.to_vector<float>();
  for (size_t four = 0; four < want.size(); four += 4) {
    std::vector<float> sizes;
    for (size_t i = four; i < four + 4; ++i) sizes.push_back(std::fabs(want[i]));
    std::ranges::sort(sizes);
    for (size_t i = four; i < four + 4; ++i)
      if (std::fabs(want[i]) < sizes[2]) want[i] = 0;
  }
  const auto graph_of = [](const Tensor& w, const std::string& type, const std::string& view) {
    ir::Payloads payloads;
    const std::string constant = passes::constant("w", ir::payload_of(w), payloads);
    return ir::parse("graph f\n" + constant + "input \"x\" = %x: f32[2, 3, 8]\n" + view +
                         "%y: f32[2, 3, 4] = bmm(%x, " + type + ")\noutput \"y\" = %y\n",
                     payloads);
  };
  const auto rows = graph_of(experts, "%t", "%t: f32[2, 8, 4] = transpose.int(%w, 1, 2)\n"),
             columns = graph_of(experts.transpose(1, 2).contiguous(), "%w", "");
  const PruneReport report = prune({rows.get()}, {});
  prune({columns.get()}, {});
  ASSERT_EQ(report.weights.size(), 1u);
  EXPECT_EQ(report.weights[0].zeros, 32);
  EXPECT_EQ(first_constant(*rows), want);
  EXPECT_EQ(ir::tensor_of(columns->constants().front().payload)
                .transpose(1, 2)
                .contiguous()
                .to_vector<float>(),
            want);
  // half of each expert, and no more of one than of the other
  const auto part = graph_of(experts, "%t", "%t: f32[2, 8, 4] = transpose.int(%w, 1, 2)\n");
  prune({part.get()}, {.sparsity = {.part = .5}});
  const std::vector<float> half = first_constant(*part);
  EXPECT_EQ(std::count(half.begin(), half.begin() + 32, 0.0f), 16);
}

/// A stack of three experts of 4 results and 8 inputs, and six rows: the first expert gets two of
/// them, the second none, the third four.
struct Experts {
  Tensor weight = passes::random_tensor({3, 4, 8}, 1), x = passes::random_tensor({6, 8}, 2);
  static constexpr std::array<int64_t, 4> begin = {0, 2, 2, 6};

  std::unique_ptr<ir::Graph> graph(bool is_transposed) const {
    ir::Payloads payloads;
    const Tensor stored = is_transposed ? weight.transpose(1, 2).contiguous() : weight;
    const std::string constant = passes::constant("w", ir::payload_of(stored), payloads);
    return ir::parse("graph f\n" + constant + "input \"x\" = %x: f32[6, 8]\n" +
                         "input \"ends\" = %ends: i32[3]\n" +
                         (is_transposed ? "" : "%t: f32[3, 8, 4] = transpose.int(%w, 1, 2)\n") +
                         "%y: f32[6, 4] = _grouped_mm(%x, " + (is_transposed ? "%w" : "%t") +
                         ", %ends, none, none)\noutput \"y\" = %y\n",
                     payloads);
  }
  Examples examples() const {
    return Examples({{x, Tensor::from(std::vector<int32_t>{2, 2, 6}, {3})}});
  }
  /// (expert, result, input)
  std::vector<float> pruned(Method method, bool is_transposed, PruneReport& report) const {
    const auto graph = this->graph(is_transposed);
    report = prune({graph.get()}, {.method = method}, examples());
    const Tensor w = ir::tensor_of(graph->constants().front().payload);
    return (is_transposed ? w.transpose(1, 2).contiguous() : w).to_vector<float>();
  }
  /// The sum of squares of what the results of an expert lose.
  double error(size_t expert, const std::vector<float>& after) const {
    const std::vector<float> w = weight.to_vector<float>(), rows = x.to_vector<float>();
    double sum = 0;
    for (auto r = static_cast<size_t>(begin[expert]); r < static_cast<size_t>(begin[expert + 1]);
         ++r)
      for (size_t o = 0; o < 4; ++o) {
        double lost = 0;
        for (size_t k = 0; k < 8; ++k) {
          const size_t at = (expert * 4 + o) * 8 + k;
          lost += static_cast<double>(w[at] - after[at]) * rows[r * 8 + k];
        }
        sum += lost * lost;
      }
    return sum;
  }
};

TEST(prune, lets_each_expert_learn_from_its_own_rows) {
  const Experts experts;
  const std::vector<float> w = experts.weight.to_vector<float>(), x = experts.x.to_vector<float>();
  std::vector<float> want = w;
  for (size_t four = 0; four < want.size(); four += 4) {
    std::vector<double> scores;
    for (size_t i = four; i < four + 4; ++i) {
      double squares = 0;
      const size_t e = i / 32;
      for (auto r = static_cast<size_t>(Experts::begin[e]);
           r < static_cast<size_t>(Experts::begin[e + 1]); ++r)
        squares += static_cast<double>(x[r * 8 + i % 8]) * x[r * 8 + i % 8];
      scores.push_back(std::fabs(w[i]) * (e == 1 ? 1 : std::sqrt(squares)));
    }
    std::vector<double> sorted = scores;
    std::ranges::sort(sorted);
    for (size_t i = 0; i < 4; ++i)
      if (scores[i] < sorted[2]) want[four + i] = 0;
  }
  for (const bool is_transposed : {false, true}) {
    PruneReport report;
    EXPECT_EQ(experts.pruned(Method::wanda, is_transposed, report), want);
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_THAT(report.notes[0], testing::HasSubstr("do not reach 1 of 3 parts of w"));
    const std::vector<float> made_up = experts.pruned(Method::sparsegpt, is_transposed, report);
    EXPECT_EQ(report.weights[0].zeros, 48);
    EXPECT_TRUE(report.weights[0].measure.has_output());
    EXPECT_EQ(std::vector(made_up.begin() + 32, made_up.begin() + 64),
              std::vector(want.begin() + 32, want.begin() + 64));
    for (const size_t e : {0, 2}) EXPECT_LT(experts.error(e, made_up), experts.error(e, want)) << e;
  }
}

TEST(prune, learns_from_stacks_with_rows_of_their_own) {
  const Tensor weight = passes::random_tensor({2, 8, 4}, 1),
               x = passes::random_tensor({2, 3, 8}, 3);
  ir::Payloads payloads;
  const std::string constant = passes::constant("w", ir::payload_of(weight), payloads);
  const auto graph = ir::parse("graph f\n" + constant + "input \"x\" = %x: f32[2, 3, 8]\n" +
                                   "%y: f32[2, 3, 4] = bmm(%x, %w)\noutput \"y\" = %y\n",
                               payloads);
  const PruneReport report =
      prune({graph.get()}, {.method = Method::wanda, .sparsity = {.part = .5}}, Examples({{x}}));
  EXPECT_TRUE(report.notes.empty());
  const std::vector<float> before = weight.to_vector<float>(), values = x.to_vector<float>(),
                           after = first_constant(*graph);
  for (size_t e = 0; e < 2; ++e)
    for (size_t o = 0; o < 4; ++o) {
      const auto score = [&](size_t k) {
        double squares = 0;
        for (size_t r = 0; r < 3; ++r) squares += std::pow(values[(e * 3 + r) * 8 + k], 2);
        return std::fabs(before[(e * 8 + k) * 4 + o]) * std::sqrt(squares);
      };
      std::vector<double> sorted;
      for (size_t k = 0; k < 8; ++k) sorted.push_back(score(k));
      std::ranges::sort(sorted);
      for (size_t k = 0; k < 8; ++k)
        EXPECT_EQ(after[(e * 8 + k) * 4 + o] != 0, score(k) >= sorted[4]) << e << " " << o;
    }
}

TEST(prune, says_why_it_leaves_weights) {
  ir::Payloads payloads;
  const std::string w = passes::constant("w", passes::random_payload({2, 3, 4}, 1), payloads);
  const auto graph = ir::parse(
      "graph f\n" + w +
          "input \"x\" = %x: f32[1, 2, 5]\n%y: f32[1, 3, 8] = convolution(%x, %w, none, [1], "
          "[0], [1], true, [0], 1)\noutput \"y\" = %y\n",
      payloads);
  EXPECT_EXPORT_ERROR(prune({graph.get()}, {}), "its convolution is transposed");
}

}  // namespace
}  // namespace taper::quantize
