// Which nodes become integer operators, what stays f32 and why.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Value;
using testing::Contains, testing::Each, testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;
using testing::Not;

std::vector<Dim> dims(std::initializer_list<int64_t> list) { return {list.begin(), list.end()}; }

constexpr double scale = 0.02;  // of activations, whose zero point is 4

/// Builds a graph in the form in which PyTorch's converted models come.
struct Net {
  ir::Graph graph{"f"};
  int weights = 0;

  Value* call(const Operator& op, std::vector<Argument> arguments) {
    return ir::append(graph, op, std::move(arguments))->result();
  }
  Value* input(std::initializer_list<Dim> sizes) {
    return graph.add_input("x", ir::dense_type(DType::f32, sizes));
  }
  Value* quantize(Value* v, double s = scale, int64_t zero = 4) {
    return call(ops::quantized_decomposed_quantize_per_tensor,
                {v, s, Dim(zero), Dim(-128), Dim(127), DType::i8});
  }
  Value* dequantize(Value* q, double s = scale, int64_t zero = 4) {
    return call(ops::quantized_decomposed_dequantize_per_tensor,
                {q, s, Dim(zero), Dim(-128), Dim(127), DType::i8, std::monostate()});
  }
  /// Quantize and dequantize.
  Value* rounded(Value* v, double s = scale, int64_t zero = 4) {
    return dequantize(quantize(v, s, zero), s, zero);
  }
  Value* weight(const std::vector<int64_t>& sizes, int64_t zero_point = 0) {
    const Tensor values = eager::round(random_tensor(sizes, ++weights) * 127).to(DType::i8);
    const int64_t channels = sizes[0];
    const auto name = "w" + std::to_string(weights);
    return call(
        ops::quantized_decomposed_dequantize_per_channel,
        {graph.add_constant(name, ir::payload_of(values)),
         graph.add_constant("", random_payload({channels}, 7, 0.001f, 0.002f)),
         graph.add_constant("", ir::payload_of(eager::full({channels}, zero_point, DType::i64))),
         Dim(0), Dim(-127), Dim(127), DType::i8, std::monostate()});
  }
  Value* bias(int64_t channels) { return graph.add_constant("b", random_payload({channels}, 3)); }
  Value* convolution(Value* x, const std::vector<int64_t>& sizes, int64_t groups = 1,
                     bool transposed = false) {
    const bool is_line = sizes.size() == 3;
    const auto all = [&](int64_t n) { return is_line ? dims({n}) : dims({n, n}); };
    return call(ops::convolution, {x, weight(sizes), bias(transposed ? sizes[1] : sizes[0]), all(1),
                                   all(1), all(1), transposed, all(0), Dim(groups)});
  }
  void output(Value* v) { graph.add_output("y", v); }
};

struct Fused {
  int changes;
  std::vector<std::string> did, declined;
};
Fused fuse(ir::Graph& graph) {
  PassContext context({}, false);
  Fused f{fuse_quantized(graph, context), {}, {}};
  ir::verify(graph);
  for (const Note& n : context.take_notes())
    (n.declined ? f.declined : f.did).push_back(n.node + ": " + n.text);
  return f;
}
/// The largest difference between the results before and after the pass, in steps of the scale.
double steps_apart(Net& net, const Tensor& x, Fused* fused = nullptr, double step = scale) {
  const std::vector<float> want = run(net.graph, {x});
  const Fused f = fuse(net.graph);
  if (fused != nullptr) *fused = f;
  const std::vector<float> got = run(net.graph, {x});
  EXPECT_EQ(got.size(), want.size());
  double most = 0;
  for (size_t i = 0; i < got.size(); ++i)
    most = std::max(most, std::fabs(static_cast<double>(got[i]) - want[i]) / step);
  return most;
}
std::vector<std::string> computing(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& n : graph.nodes())
    if (n.op->category != Category::view) names.emplace_back(name_of(*n.op));
  return names;
}
constexpr const char* quantizes = "quantized_decomposed::quantize_per_tensor";
constexpr const char* dequantizes = "quantized_decomposed::dequantize_per_tensor";

TEST(fuse_quantized, makes_integers_of_a_residual_network) {
  Net net;
  const Dim batch = Dim::symbol("batch", 1, 8);
  Value* x = net.rounded(net.input({batch, 3, 8, 8}));
  net.graph.bind_symbol({batch, ir::SymbolSource::input_extent, 0, 0});
  Value* a = net.rounded(net.call(ops::relu, {net.convolution(x, {16, 3, 3, 3})}));
  Value* b = net.rounded(net.convolution(a, {16, 1, 3, 3}, 16));
  Value* sum = net.rounded(net.call(ops::relu, {net.call(ops::add_Tensor, {a, b, Scalar(1)})}));
  Value* mean = net.call(ops::mean_dim, {sum, dims({-1, -2}), true, std::monostate()});
  Value* flat = net.call(ops::view, {mean, std::vector<Dim>{batch, 16}});
  Value* y = net.call(ops::linear, {net.rounded(flat), net.weight({10, 16}), net.bias(10)});
  net.output(net.rounded(y));
  Fused f;
  EXPECT_LE(steps_apart(net, random_tensor({2, 3, 8, 8}, 1), &f), 2);
  EXPECT_THAT(f.declined, IsEmpty());
  EXPECT_THAT(computing(net.graph),
              ElementsAre(quantizes, "taper::conv2d_q8", "taper::conv2d_q8", "taper::add_q8",
                          "taper::avg_pool2d_q8", "taper::linear_q8", dequantizes));
}

TEST(fuse_quantized, moves_integers_where_scales_agree_and_looks_up_others) {
  Net net;
  Value* x = net.rounded(net.input({2, 4, 6, 6}));
  Value* pooled = net.rounded(net.call(
      ops::max_pool2d, {x, dims({2, 2}), dims({2, 2}), dims({0, 0}), dims({1, 1}), false}));
  Value* padded =
      net.rounded(net.call(ops::constant_pad_nd, {pooled, dims({1, 1, 0, 0, 0, 2}), Scalar(0.0)}));
  Value* other = net.rounded(net.call(ops::sigmoid, {padded}), 1.0 / 256, -128);
  Value* joined = net.rounded(net.call(ops::cat, {std::vector<Value*>{padded, other}, Dim(1)}));
  net.output(net.call(ops::view, {joined, dims({2, -1})}));
  Fused f;
  EXPECT_EQ(steps_apart(net, random_tensor({2, 4, 6, 6}, 1), &f), 0) << "moves are exact";
  EXPECT_THAT(computing(net.graph), Not(Contains("sigmoid")));
  EXPECT_THAT(computing(net.graph), Contains("taper::lookup_q8"));
  int from_float = 0, to_float = 0;
  for (const std::string& name : computing(net.graph))
    from_float += name == quantizes, to_float += name == dequantizes;
  EXPECT_EQ(from_float, 1);
  EXPECT_EQ(to_float, 1);
}

TEST(fuse_quantized, makes_one_table_of_an_expression) {
  Net net;
  Value* x = net.rounded(net.input({3, 5}));
  // hardswish in parts
  Value* shifted = net.call(ops::add_Scalar, {x, Scalar(3.0), Scalar(1)});
  Value* clamped = net.call(ops::hardtanh, {shifted, Scalar(0.0), Scalar(6.0)});
  Value* product = net.call(ops::mul_Tensor, {x, clamped});
  net.output(net.rounded(net.call(ops::div_Scalar, {product, Scalar(6.0)})));
  EXPECT_EQ(steps_apart(net, random_tensor({3, 5}, 1)), 0);
  EXPECT_THAT(computing(net.graph), ElementsAre(quantizes, "taper::lookup_q8", dequantizes));
}

TEST(fuse_quantized, clamps_on_both_ends) {
  Net net;
  Value* y = net.convolution(net.rounded(net.input({1, 4, 5, 5})), {8, 4, 1, 1});
  net.output(net.rounded(net.call(ops::hardtanh, {y, Scalar(-0.1), Scalar(0.3)})));
  EXPECT_LE(steps_apart(net, random_tensor({1, 4, 5, 5}, 1)), 1);
  EXPECT_THAT(computing(net.graph), ElementsAre(quantizes, "taper::conv2d_q8", dequantizes));
}

TEST(fuse_quantized, takes_lines_as_images_of_one_row) {
  Net net;
  Value* a = net.rounded(net.convolution(net.rounded(net.input({2, 6, 9})), {8, 3, 3}, 2));
  net.output(a);
  EXPECT_LE(steps_apart(net, random_tensor({2, 6, 9}, 1)), 1);
}

TEST(fuse_quantized, takes_products_written_as_addmm) {
  Net net;
  Value* x = net.rounded(net.input({4, 12}));
  Value* w = net.call(ops::permute, {net.weight({5, 12}), dims({1, 0})});
  net.output(net.rounded(net.call(ops::addmm, {net.bias(5), x, w, Scalar(1), Scalar(1)})));
  EXPECT_LE(steps_apart(net, random_tensor({4, 12}, 1)), 1);
  EXPECT_THAT(computing(net.graph), ElementsAre(quantizes, "taper::linear_q8", dequantizes));
}

TEST(fuse_quantized, says_what_stays_and_keeps_its_bits) {
  struct Case {
    std::function<Value*(Net&, Value*)> build;
    std::string why;
  };
  const Case cases[] = {
      {[](Net& n, Value* x) {
         return n.rounded(n.convolution(x, {4, 4, 3, 3}, 1, true));
       },
       "its weight has scales along another dimension than that of the outputs"},
      {[](Net& n, Value* x) {
         return n.convolution(x, {4, 4, 3, 3});
       },
       "it computes in f32, because nothing quantizes its result"},
      {[](Net& n, Value* x) {
         Value* y = n.convolution(x, {4, 4, 3, 3});
         return n.call(ops::add_Tensor, {n.rounded(y), y, Scalar(1)});
       },
       "its result is read in f32, too"},
      {[](Net& n, Value* x) {
         return n.rounded(n.call(ops::linear, {x, n.weight({5, 5}, 3), std::monostate()}));
       },
       "its weight has zero points other than 0"},
      {[](Net& n, Value* x) {
         return n.rounded(
             n.call(ops::linear,
                    {x, n.graph.add_constant("w", random_payload({5, 5}, 1)), std::monostate()}));
       },
       "its weight is not de-quantized from i8"},
      {[](Net& n, Value* x) {
         return n.rounded(n.call(ops::cumsum, {x, Dim(3), std::monostate()}));
       },
       "there is no integer kernel of it"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    Net net;
    net.output(c.build(net, net.rounded(net.input({1, 4, 5, 5}))));
    Fused f;
    EXPECT_EQ(steps_apart(net, random_tensor({1, 4, 5, 5}, 1), &f), 0);
    EXPECT_EQ(f.changes, 0);
    EXPECT_THAT(f.declined, Contains(HasSubstr(c.why)));
  }
}

TEST(fuse_quantized, does_not_run_in_exact_exports) {
  for (const bool exact : {true, false}) {
    Net net;
    net.output(net.rounded(net.convolution(net.rounded(net.input({1, 4, 5, 5})), {4, 4, 3, 3})));
    PassContext context({}, exact);
    run_passes(net.graph, context);
    EXPECT_EQ(std::ranges::count(computing(net.graph), "taper::conv2d_q8"), exact ? 0 : 1);
  }
}

}  // namespace
}  // namespace taper::passes
