// What becomes a half, and what does not, on graphs of a few nodes. Whole models against PyTorch:
// tests/exporter/importers/half_models_test.cpp.
#include "taper/exporter/passes/to_half.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using eager::Tensor;
using testing::ElementsAre;
using testing::FloatEq;
using testing::FloatNear;
using testing::HasSubstr;

/// A graph of text, with constants by name.
class Text {
 public:
  Text& constant(const std::string& name, const std::shared_ptr<const ir::Payload>& p) {
    const std::string key = ir::digest(*p);
    payloads_[key] = p;
    const ir::Type type = ir::dense_type(p->dtype, {p->sizes.begin(), p->sizes.end()});
    text_ += "constant \"" + name + "\" = %" + name + ": " + ir::to_string(type) + " " + key + "\n";
    return *this;
  }
  Text& operator<<(const std::string& line) {
    text_ += line + "\n";
    return *this;
  }
  std::unique_ptr<ir::Graph> graph() const { return ir::parse("graph f\n" + text_, payloads_); }
  /// Converted and verified.
  std::unique_ptr<ir::Graph> halved(DType half = DType::f16) const {
    auto g = graph();
    PassContext context(Target(), /*exact=*/true, half);
    ir::for_each_graph(*g, [&](ir::Graph& each) { to_half(each, context); });
    ir::verify(*g);
    return g;
  }

 private:
  std::string text_;
  ir::Payloads payloads_;
};

std::vector<float> run(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  return ir::Interpreter(graph).run(inputs).outputs[0].to_vector<float>();
}
Tensor tensor(const std::vector<float>& values, std::vector<int64_t> sizes) {
  return ir::tensor_of(ir::Payload::from(values, std::move(sizes))).clone();
}
/// The dtypes of an operator's first arguments, in the order of its nodes.
std::vector<DType> dtypes_of(const ir::Graph& graph, const Operator& op) {
  std::vector<DType> dtypes;
  for (const ir::Node& n : graph.nodes())
    if (n.op == &op) dtypes.push_back(n.result()->type.dtype);
  return dtypes;
}
std::vector<DType> constants_of(const ir::Graph& graph) {
  std::vector<DType> dtypes;
  for (const ir::Constant& c : graph.constants()) dtypes.push_back(c.payload->dtype);
  return dtypes;
}

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(to_half, computes_in_halves_between_inputs_and_outputs_that_stay) {
  const auto graph = (Text().constant("w", ir::Payload::from<float>({1.0009f, 2, 3, 4}, {2, 2}))
                      << "input \"x\" = %x: f32[2, 2]"
                      << "%a: f32[2, 2] = add.Tensor(%x, %w, 1)"
                      << "%r: f32[2, 2] = relu(%a)"
                      << "output \"y\" = %r")
                         .halved();
  EXPECT_THAT(dtypes_of(*graph, ops::add_Tensor), ElementsAre(DType::f16));
  EXPECT_THAT(dtypes_of(*graph, ops::relu), ElementsAre(DType::f16));
  EXPECT_THAT(constants_of(*graph), ElementsAre(DType::f16));
  EXPECT_EQ(graph->inputs()[0].value->type.dtype, DType::f32);
  EXPECT_EQ(graph->outputs()[0].value->type.dtype, DType::f32);
  EXPECT_THAT(run(*graph, {tensor({0, 0, 0, -9}, {2, 2})}), ElementsAre(1.0009765625f, 2, 3, 0));
}

// As eager does. The bias is a vector, which costs nothing as it is.
TEST(to_half, casts_around_an_operator_that_has_no_kernel_for_halves) {
  const auto graph = (Text()
                          .constant("w", ir::Payload::from<float>({1, 2, 3, 4}, {2, 2, 1}))
                          .constant("b", ir::Payload::from<float>({5, 6}, {2}))
                      << "input \"x\" = %x: f32[1, 2, 1]"
                      << "%y: f32[1, 2, 1] = convolution(%x, %w, %b, [1], [0], [1], false, [0], 1)"
                      << "output \"y\" = %y")
                         .halved(DType::bf16);
  EXPECT_THAT(dtypes_of(*graph, ops::convolution), ElementsAre(DType::f32));
  EXPECT_THAT(constants_of(*graph), ElementsAre(DType::f32, DType::bf16));
  EXPECT_THAT(run(*graph, {tensor({1, 1}, {1, 2, 1})}), ElementsAre(8, 13));
}

TEST(to_half, sees_a_weight_through_its_view_after_the_cast) {
  const auto graph = (Text().constant("w", ir::Payload::from<float>({1, 2, 3, 4}, {2, 2}))
                      << "input \"x\" = %x: f32[1, 2]"
                      << "%t: f32[2, 2] strides [1, 2] = permute(%w, [1, 0])"
                      << "%y: f32[1, 2] = mm(%x, %t)"
                      << "output \"y\" = %y")
                         .halved();
  EXPECT_THAT(constants_of(*graph), ElementsAre(DType::f16));
  EXPECT_EQ(std::next(graph->nodes().begin())->op, &ops::permute);
  EXPECT_THAT(run(*graph, {tensor({1, 1}, {1, 2})}), ElementsAre(3, 7));
}

TEST(to_half, hands_f32_from_one_f32_kernel_to_the_next) {
  const auto graph =
      (Text().constant("w", ir::Payload::from<float>({1, 2, 3, 4}, {2, 2, 1}))
       << "input \"x\" = %x: f32[1, 2, 1]"
       << "%a: f32[1, 2, 1] = convolution(%x, %w, none, [1], [0], [1], false, [0], 1)"
       << "%g: f32[1, 2, 1] = relu(%a)"
       << "%b: f32[1, 2, 1] = convolution(%g, %w, none, [1], [0], [1], false, [0], 1)"
       << "output \"y\" = %b")
          .halved();
  EXPECT_THAT(dtypes_of(*graph, ops::_to_copy), ElementsAre(DType::f32)) << *graph;
}

// 3000 is 3000 or 3008 in bf16, whose cosines are far apart.
TEST(to_half, leaves_positions_f32_up_to_where_they_meet_data) {
  const auto graph = (Text().constant("frequency", ir::Payload::from<float>({1, 0.1f}, {2}))
                      << "input \"position\" = %p: i64[1]"
                      << "input \"x\" = %x: f32[2]"
                      << "%f: f32[1] = _to_copy(%p, f32)"
                      << "%a: f32[2] = mul.Tensor(%f, %frequency)"
                      << "%c: f32[2] = cos(%a)"
                      << "%y: f32[2] = mul.Tensor(%x, %c)"
                      << "output \"y\" = %y")
                         .halved(DType::bf16);
  EXPECT_THAT(dtypes_of(*graph, ops::mul_Tensor), ElementsAre(DType::f32, DType::bf16));
  const Tensor position = eager::full({1}, 3003, DType::i64);
  EXPECT_THAT(run(*graph, {position, tensor({1, 1}, {2})}),
              ElementsAre(FloatNear(std::cos(3003.0f), 0.01f), FloatNear(std::cos(300.3f), 0.01f)));
}

TEST(to_half, keeps_a_mask_of_the_lowest_f32_number_finite) {
  const std::string lowest = "-3.4028234663852886e+38";
  Text text;
  text << "input \"x\" = %x: f32[3]"
       << "input \"hidden\" = %h: bool[3]"
       << "%low: f32[3] = full([3], " + lowest + ", f32)"
       << "%zero: f32[3] = full([3], 0, f32)"
       << "%mask: f32[3] = where.self(%h, %low, %zero)"
       << "%a: f32[3] = add.Tensor(%x, %mask, 1)"
       << "%n: f32[3] = neg(%a)"
       << "%m: f32[3] = abs(%n)"
       << "%k: f32[3] = mul.Tensor(%m, %n)"
       << "output \"y\" = %m"
       << "output \"z\" = %k";
  const Tensor hidden = eager::zeros({3}, DType::boolean);
  hidden.select(0, 1).fill_(1);
  for (const DType half : {DType::f16, DType::bf16}) {
    const auto graph = text.halved(half);
    EXPECT_THAT(run(*graph, {tensor({1, 2, -infinity}, {3}), hidden}),
                ElementsAre(1, half == DType::f16 ? 65504 : 0x1.fep127f, infinity))
        << *graph;
  }
}

TEST(to_half, masks_scores_with_a_number_beyond_its_range) {
  const auto graph =
      (Text() << "input \"x\" = %x: f32[1, 3]"
              << "input \"hidden\" = %h: bool[1, 3]"
              << "%m: f32[1, 3] = masked_fill.Scalar(%x, %h, -3.4028234663852886e+38)"
              << "%s: f32[1, 3] = _softmax(%m, -1, false)"
              << "output \"y\" = %s")
          .halved();
  const Tensor all_hidden = eager::full({1, 3}, 1, DType::boolean);
  EXPECT_THAT(run(*graph, {tensor({1, 2, 3}, {1, 3}), all_hidden}),
              ElementsAre(FloatEq(1 / 3.0f), FloatEq(1 / 3.0f), FloatEq(1 / 3.0f)));
}

// 300 * 300 is more than f16 holds, and 1e-12 less.
TEST(to_half, norms_rows_whose_squares_leave_its_range) {
  for (const char* square : {"pow.Tensor_Scalar(%d, 2)", "mul.Tensor(%d, %d)"}) {
    const auto graph = (Text() << "input \"x\" = %x: f32[2, 2]"
                               << "%d: f32[2, 2] = add.Tensor(%x, %x, 1)"
                               << std::string("%p: f32[2, 2] = ") + square
                               << "%m: f32[2, 1] = mean.dim(%p, [-1], true, none)"
                               << "%e: f32[2, 1] = add.Scalar(%m, 1e-12, 1)"
                               << "%r: f32[2, 1] = rsqrt(%e)"
                               << "%y: f32[2, 2] = mul.Tensor(%d, %r)"
                               << "output \"y\" = %y")
                           .halved();
    EXPECT_THAT(run(*graph, {tensor({150, -150, 0, 0}, {2, 2})}),
                ElementsAre(FloatNear(1, 1e-3f), FloatNear(-1, 1e-3f), 0, 0))
        << square;
  }
}

TEST(to_half, leaves_arithmetic_that_quantizes_alone) {
  Text text;
  text.constant("q", ir::Payload::from<int8_t>({1, -2, 3, 4}, {2, 2}))
      .constant("scale", ir::Payload::from<float>({0.3f, 0.7f}, {2, 1}));
  text << "input \"x\" = %x: f32[1, 2]"
       << "%r: f32[1, 2] = relu(%x)"
       << "%s: f32[1, 2] = mul.Scalar(%r, 10.123)"
       << "%n: f32[1, 2] = round(%s)"
       << "%c: f32[1, 2] = clamp(%n, -128, 127)"
       << "%i: i8[1, 2] = _to_copy(%c, i8)"
       << "%b: f32[1, 2] = _to_copy(%i, f32)"
       << "%f: f32[2, 2] = _to_copy(%q, f32)"
       << "%w: f32[2, 2] = mul.Tensor(%f, %scale)"
       << "%y: f32[1, 2] = linear(%b, %w, none)"
       << "output \"y\" = %y";
  const Tensor x = tensor({3.3f, 5.5f}, {1, 2});
  EXPECT_EQ(run(*text.halved(), {x}), run(*text.graph(), {x}));
}

TEST(to_half, leaves_f64_and_integers_alone_and_changes_dtypes_that_are_named) {
  const auto graph = (Text() << "input \"x\" = %x: f32[2]"
                             << "input \"d\" = %d: f64[2]"
                             << "%i: i64[2] = _to_copy(%x, i64)"
                             << "%j: i64[2] = neg(%i)"
                             << "%e: f64[2] = neg(%d)"
                             << "%s: f32[2] = _to_copy(%e, f32)"
                             << "%w: f64[2] = _to_copy(%x, f64)"
                             << "%z: f32[2] = zeros_like(%x, f32)"
                             << "%y: f32[2] = add.Tensor(%z, %s, 1)"
                             << "output \"y\" = %y"
                             << "output \"w\" = %w"
                             << "output \"j\" = %j")
                         .halved();
  EXPECT_THAT(dtypes_of(*graph, ops::neg), ElementsAre(DType::i64, DType::f64));
  EXPECT_THAT(dtypes_of(*graph, ops::add_Tensor), ElementsAre(DType::f16));
  EXPECT_EQ(graph->outputs()[1].value->type.dtype, DType::f64);
}

TEST(to_half, holds_states_in_halves) {
  const auto graph = (Text() << "input \"x\" = %x: f32[2]"
                             << "state \"s\" = %s: f32[2] buffer zeros"
                             << "%y: f32[2] = add.Tensor(%s, %x, 1)"
                             << "output \"y\" = %y"
                             << "write \"s\" = %y")
                         .halved();
  EXPECT_EQ(graph->states().front().value->type.dtype, DType::f16);
  EXPECT_EQ(graph->writes()[0].value->type.dtype, DType::f16);
}

// A round that casts all of them makes the work of a loop quadratic.
TEST(to_half, casts_the_part_that_a_round_takes_and_not_the_whole) {
  const auto graph =
      (Text() << "input \"x\" = %x: f32[99, 4]"
              << "input \"n\" = %n: i64[]"
              << "%y: f32[99, 4] = full([99, 4], 0, f32)"
              << "%last: i64[], %ys: f32[99, 4] = higher_order::while_loop([%n, %y], [%x]) {"
              << "graph condition\ninput \"i\" = %i: i64[]\ninput \"y\" = %y: f32[99, 4]\ninput "
                 "\"x\" = %x: f32[99, 4]"
              << "%more: bool[] = lt.Scalar(%i, 99)\noutput \"more\" = %more\n} {"
              << "graph body\ninput \"i\" = %i: i64[]\ninput \"y\" = %y: f32[99, 4]\ninput \"x\" = "
                 "%x: f32[99, 4]"
              << "%at: i64[1] = view(%i, [1])\n%row: f32[1, 4] = index_select(%x, 0, %at)"
              << "%r: f32[1, 4] = relu(%row)\n%new: f32[99, 4] = index_copy(%y, 0, %at, %r)"
              << "%next: i64[] = add.Scalar(%i, 1, 1)"
              << "output \"i\" = %next\noutput \"y\" = %new\n}"
              << "output \"y\" = %ys")
          .halved();
  const ir::Graph& body = *std::prev(graph->nodes().end())->bodies.at(1);
  EXPECT_THAT(dtypes_of(body, ops::relu), ElementsAre(DType::f16));
  for (const ir::Node& node : body.nodes())
    if (node.op == &ops::_to_copy) {
      EXPECT_EQ(node.result()->type.sizes[0].value(), 1) << body;
    }
  const std::vector<float> y =
      ir::Interpreter(*graph)
          .run({eager::full({99, 4}, 1.0009), Tensor::from<int64_t>({1}, {})})
          .outputs[0]
          .to_vector<float>();
  EXPECT_EQ(y[3], 0);
  EXPECT_EQ(y[4], 1.0009765625f);
}

TEST(to_half, refuses_a_method_that_trains) {
  Text text;
  text << "state \"fc.weight\" = %w: f32[2] parameter zeros"
       << "%y: f32[2] = neg(%w)"
       << "output \"y\" = %y"
       << "write \"fc.weight\" = %y";
  try {
    (void)text.halved();
    FAIL() << "nothing was refused";
  } catch (const ExportError& e) {
    EXPECT_THAT(e.what(), HasSubstr("fc.weight"));
    EXPECT_THAT(e.what(), HasSubstr("training stays f32"));
  }
}

TEST(to_half, keeps_weights_that_are_too_large_finite) {
  const auto graph =
      (Text().constant("w", ir::Payload::from<float>({1e6f, -1e6f, infinity, 1}, {2, 2}))
       << "input \"x\" = %x: f32[2, 2]"
       << "%y: f32[2, 2] = mul.Tensor(%x, %w)"
       << "output \"y\" = %y")
          .halved();
  EXPECT_THAT(run(*graph, {tensor({1, 1, 1, 1}, {2, 2})}), ElementsAre(65504, -65504, infinity, 1));
}

}  // namespace
}  // namespace taper::passes
