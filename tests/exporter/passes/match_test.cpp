#include "taper/exporter/passes/match.h"

#include <gtest/gtest.h>

#include "taper/exporter/ir/parser.h"

namespace taper::passes::match {
namespace {

/// x times what `line` makes of it; the last node is matched.
std::unique_ptr<ir::Graph> graph_with(const std::string& line) {
  const auto payload = ir::Payload::from<float>({1, 2}, {2});
  const std::string digest = ir::digest(*payload);
  return ir::parse(
      "graph f\ninput \"x\" = %x: f32[2]\ninput \"y\" = %y: f32[2]\n"
      "constant \"w\" = %w: f32[2] " +
          digest + "\n%e: f32[2] = exp(%x)\n" + line +
          "\noutput \"r\" = %r\noutput \"e\" = %e\noutput \"y\" = %y\n",
      {{digest, payload}});
}
std::optional<Match> find_in(const ir::Graph& graph, const Pattern& pattern) {
  return find(pattern, graph.nodes().back());
}

TEST(match, takes_a_variable_twice_for_one_value_only) {
  const Variable x;
  const Pattern square = call<ops::mul_Tensor>(arg<"self">(any(x)), arg<"other">(any(x)));
  const auto of_one = graph_with("%r: f32[2] = mul.Tensor(%e, %e)");
  const auto found = find_in(*of_one, square);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[x]->name, "e");
  EXPECT_FALSE(find_in(*graph_with("%r: f32[2] = mul.Tensor(%e, %x)"), square));
  EXPECT_FALSE(find_in(*graph_with("%r: f32[2] = div.Tensor(%e, %e)"), square));
}

TEST(match, tries_commutative_operands_in_both_orders_and_forgets_the_first) {
  const Variable x, w, e;
  const Pattern scaled = commutative<ops::mul_Tensor, "self", "other">(
      as(e, call<ops::exp>(arg<"self">(any(x)))), constant(w));
  for (const char* line : {"%r: f32[2] = mul.Tensor(%e, %w)", "%r: f32[2] = mul.Tensor(%w, %e)"}) {
    const auto graph = graph_with(line);
    const auto found = find_in(*graph, scaled);
    ASSERT_TRUE(found) << line;
    EXPECT_EQ((*found)[x]->name, "x");
    EXPECT_EQ((*found)[w]->name, "w");
    EXPECT_EQ((*found)[e]->name, "e");
  }
  EXPECT_FALSE(find_in(*graph_with("%r: f32[2] = mul.Tensor(%w, %w)"), scaled));
  EXPECT_FALSE(find_in(*graph_with("%r: f32[2] = mul.Tensor(%e, %y)"), scaled));

  // The first order binds x before it fails: the second begins anew.
  const Variable either_value;
  const Pattern with_y = commutative<ops::mul_Tensor, "self", "other">(
      any(either_value), call<ops::exp>(arg<"self">(any(x))));
  const auto graph = graph_with("%r: f32[2] = mul.Tensor(%e, %y)");
  const auto found = find_in(*graph, with_y);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[either_value]->name, "y");
}

TEST(match, compares_numbers_of_every_kind) {
  const auto sum = graph_with("%r: f32[2] = add.Tensor(%e, %y, 2)");
  const auto by_alpha = [](double n) { return call<ops::add_Tensor>(arg<"alpha">(number(n))); };
  EXPECT_TRUE(find_in(*sum, by_alpha(2)));
  EXPECT_FALSE(find_in(*sum, by_alpha(1)));
  const auto reduced = graph_with("%r: f32[1] = sum.dim_IntList(%e, [0], true, none)");
  const auto by_keepdim = [](double n) {
    return call<ops::sum_dim_IntList>(arg<"keepdim">(number(n)));
  };
  EXPECT_TRUE(find_in(*reduced, by_keepdim(1)));
  EXPECT_FALSE(find_in(*reduced, by_keepdim(0)));
  const auto product = graph_with("%r: f32[2] = softmax.int(%e, -1, none)");
  EXPECT_TRUE(find_in(*product, call<ops::softmax_int>(arg<"dim">(number(-1)))));
}

TEST(match, takes_an_optional_argument_that_is_absent) {
  const Variable low;
  const Pattern clamped = call<ops::clamp_Tensor>(arg<"min">(absent_or(constant(low))));
  const auto absent = graph_with("%r: f32[2] = clamp.Tensor(%e, none, %y)");
  const auto found = find_in(*absent, clamped);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[low], nullptr);
  const auto given = graph_with("%r: f32[2] = clamp.Tensor(%e, %w, %y)");
  const auto with_low = find_in(*given, clamped);
  ASSERT_TRUE(with_low);
  EXPECT_EQ((*with_low)[low]->name, "w");
  EXPECT_FALSE(find_in(*graph_with("%r: f32[2] = clamp.Tensor(%e, %y, %y)"), clamped));
}

TEST(call, reads_arguments_by_name_with_the_types_of_the_row) {
  const auto graph = ir::parse(
      "graph f\ninput \"x\" = %x: f32[1, 2, 5, 5]\ninput \"w\" = %w: f32[3, 2, 3, 3]\n"
      "%r: f32[1, 3, 3, 3] = convolution(%x, %w, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)\n"
      "output \"r\" = %r\n");
  const ir::Call<ops::convolution> conv(graph->nodes().front());
  EXPECT_EQ(conv.get<"weight">()->name, "w");
  EXPECT_EQ(conv.get<"bias">(), nullptr);
  EXPECT_FALSE(conv.get<"transposed">());
  EXPECT_EQ(conv.get<"stride">().size(), 2u);
  EXPECT_EQ(conv.get<"groups">().value(), 1);
  static_assert(std::is_same_v<decltype(conv.get<"stride">()), const std::vector<Dim>&>);
  static_assert(std::is_same_v<decltype(conv.get<"input">()), ir::Value*>);
  static_assert(ir::Call<ops::convolution>::position<"groups"> == 8);
}

}  // namespace
}  // namespace taper::passes::match
