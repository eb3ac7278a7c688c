// Rotary embeddings as exporters write them: of halves (Llama) and of neighbours (GPT-J).
#include <gmock/gmock.h>

#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

using testing::ElementsAre;

/// The lines behind the turning of %x: f32[1, 4, 5, 8]. Each can be another one.
struct Sum {
  std::string kept = "mul.Tensor(%x, %cos)", added = "mul.Tensor(%turned, %sin)",
              sum = "add.Tensor(%k, %a, 1)", halves = "%negated, %low", end = "9223372036854775807";
};

/// As Llama's: positions before heads in memory.
std::string halves(const Sum& s = {}) {
  return "graph f\ninput \"q\" = %q: f32[1, 5, 4, 8]\ninput \"cos\" = %cos: f32[1, 1, 5, 8]\n"
         "input \"sin\" = %sin: f32[1, 1, 5, 8]\n"
         "%x: f32[1, 4, 5, 8] strides [160, 8, 32, 1] = transpose.int(%q, 1, 2)\n"
         "%k: f32[1, 4, 5, 8] = " +
         s.kept +
         "\n"
         "%low: f32[1, 4, 5, 4] strides [160, 8, 32, 1] = slice.Tensor(%x, 3, 0, 4, 1)\n"
         "%high: f32[1, 4, 5, 4] strides [160, 8, 32, 1] offset 4 = slice.Tensor(%x, 3, 4, " +
         s.end +
         ", 1)\n"
         "%negated: f32[1, 4, 5, 4] = neg(%high)\n"
         "%turned: f32[1, 4, 5, 8] = cat([" +
         s.halves +
         "], -1)\n"
         "%a: f32[1, 4, 5, 8] = " +
         s.added + "\n%y: f32[1, 4, 5, 8] = " + s.sum + "\noutput \"y\" = %y\n";
}

/// As GPT-J's, where only part of the features turns.
const char* const neighbours = R"(graph f
input "q" = %q: f32[1, 5, 4, 16]
input "cos" = %cos: f32[1, 5, 1, 8]
input "sin" = %sin: f32[1, 5, 1, 8]
%x: f32[1, 5, 4, 8] strides [320, 64, 16, 1] = slice.Tensor(%q, 3, 0, 8, 1)
%rest: f32[1, 5, 4, 8] strides [320, 64, 16, 1] offset 8 = slice.Tensor(%q, 3, 8, 16, 1)
%k: f32[1, 5, 4, 8] = mul.Tensor(%x, %cos)
%even: f32[1, 5, 4, 4] strides [320, 64, 16, 2] = slice.Tensor(%x, 3, 0, 9223372036854775807, 2)
%odd: f32[1, 5, 4, 4] strides [320, 64, 16, 2] offset 1 = slice.Tensor(%x, 3, 1, 9223372036854775807, 2)
%negated: f32[1, 5, 4, 4] = neg(%odd)
%first: f32[1, 5, 4, 4, 1] = unsqueeze(%negated, -1)
%second: f32[1, 5, 4, 4, 1] strides [320, 64, 16, 2, 1] = unsqueeze(%even, -1)
%stack: f32[1, 5, 4, 4, 2] = cat([%first, %second], -1)
%turned: f32[1, 5, 4, 8] = view(%stack, [1, 5, 4, 8])
%a: f32[1, 5, 4, 8] = mul.Tensor(%turned, %sin)
%s: f32[1, 5, 4, 8] = add.Tensor(%k, %a, 1)
%y: f32[1, 5, 4, 16] = cat([%s, %rest], -1)
output "y" = %y
)";

void expect_fused(const std::string& text, const std::vector<Tensor>& inputs,
                  const std::vector<std::string>& wanted) {
  const auto graph = ir::parse(text);
  ir::verify(*graph);
  const std::vector<float> want = run(*graph, inputs);
  EXPECT_EQ(apply(fuse_rotary_embedding, *graph), 1) << text;
  ir::verify(*graph);
  EXPECT_EQ(operators(*graph), wanted);
  EXPECT_EQ(graph->outputs()[0].value->name, "y");
  expect_same_bits(run(*graph, inputs), want);
}

TEST(fuse_rotary_embedding, takes_halves_in_every_order_of_factors) {
  const std::vector<Tensor> inputs = {random_tensor({1, 5, 4, 8}, 1),
                                      random_tensor({1, 1, 5, 8}, 2),
                                      random_tensor({1, 1, 5, 8}, 3)};
  const std::vector<std::string> fused = {"transpose.int", "taper::rotary_embedding"};
  expect_fused(halves(), inputs, fused);
  Sum exchanged;
  exchanged.kept = "mul.Tensor(%cos, %x)", exchanged.added = "mul.Tensor(%sin, %turned)";
  exchanged.sum = "add.Tensor(%a, %k, 1)", exchanged.end = "8";
  expect_fused(halves(exchanged), inputs, fused);
}

TEST(fuse_rotary_embedding, takes_neighbours_of_a_part_of_the_features) {
  expect_fused(neighbours,
               {random_tensor({1, 5, 4, 16}, 1), random_tensor({1, 5, 1, 8}, 2),
                random_tensor({1, 5, 1, 8}, 3)},
               {"slice.Tensor", "slice.Tensor", "taper::rotary_embedding", "cat"});
}

TEST(fuse_rotary_embedding, leaves_other_sums) {
  const auto after = [](const Sum& s, const std::string& extra = "") {
    const auto graph = ir::parse(halves(s) + extra);
    return apply(fuse_rotary_embedding, *graph);
  };
  EXPECT_EQ(after({}), 1);
  for (const char* part : {"k", "a", "turned"})
    EXPECT_EQ(after({}, std::string("output \"part\" = %") + part + "\n"), 0) << part;
  Sum doubled, unturned, no_product, unexchanged;
  doubled.sum = "add.Tensor(%k, %a, 2)";
  EXPECT_EQ(after(doubled), 0);
  unturned.added = "mul.Tensor(%x, %sin)";
  EXPECT_EQ(after(unturned), 0);
  no_product.kept = "neg(%x)";
  EXPECT_EQ(after(no_product), 0);
  unexchanged.halves = "%low, %negated";
  EXPECT_EQ(after(unexchanged), 0);
}

}  // namespace
}  // namespace taper::passes
