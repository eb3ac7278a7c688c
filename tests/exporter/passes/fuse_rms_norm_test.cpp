// RMS norms as models write them, and what only looks like one.
#include <gmock/gmock.h>

#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

using testing::ElementsAre, testing::HasSubstr, testing::SizeIs;

/// The lines of a norm of %x: f32[2, 3, 20] with weights %w: f32[20]. Each can be another one.
struct RmsNorm {
  std::string square = "pow.Tensor_Scalar(%x, 2)";
  std::string mean = "mean.dim(%s, [-1], true, none)";
  std::string sum = "add.Scalar(%m, 1e-06, 1)";
  std::string root = "rsqrt(%e)";
  std::string norm = "mul.Tensor(%x, %r)";
  std::string weighted = "mul.Tensor(%w, %n)";
  std::string extra;  ///< lines behind it

  std::unique_ptr<ir::Graph> graph() const {
    const std::string text =
        "graph f\ninput \"x\" = %x: f32[2, 3, 20]\ninput \"w\" = %w: f32[20]\n"
        "%s: f32[2, 3, 20] = " +
        square + "\n%m: f32[2, 3, 1] = " + mean + "\n%e: f32[2, 3, 1] = " + sum +
        "\n%r: f32[2, 3, 1] = " + root + "\n%n: f32[2, 3, 20] = " + norm +
        "\n%y: f32[2, 3, 20] = " + weighted + "\noutput \"y\" = %y\n" + extra;
    auto graph = ir::parse(text);
    ir::verify(*graph);
    return graph;
  }
};

/// Applies the pass, and expects these operators and the bits of before.
void expect_after(const ir::Graph& before, ir::Graph& graph, const std::vector<Tensor>& inputs,
                  const std::vector<std::string>& wanted) {
  const std::vector<float> want = run(before, inputs);
  EXPECT_GT(apply(fuse_rms_norm, graph), 0);
  ir::verify(graph);
  EXPECT_EQ(operators(graph), wanted);
  EXPECT_EQ(graph.outputs()[0].value->name, "y");
  expect_same_bits(run(graph, inputs), want);
}
void expect_fused(const RmsNorm& norm, const std::vector<std::string>& wanted) {
  expect_after(*norm.graph(), *norm.graph(), {random_tensor({2, 3, 20}, 1), random_tensor({20}, 2)},
               wanted);
}

TEST(fuse_rms_norm, takes_every_form_that_models_write) {
  const std::vector<std::string> fused = {"_fused_rms_norm"};
  expect_fused({}, fused);
  RmsNorm product, exchanged, power, last, weight_behind;
  product.square = "mul.Tensor(%x, %x)";
  expect_fused(product, fused);
  exchanged.norm = "mul.Tensor(%r, %x)";
  expect_fused(exchanged, fused);
  power.root = "pow.Tensor_Scalar(%e, -0.5)";
  expect_fused(power, fused);
  last.mean = "mean.dim(%s, [2], true, none)";
  expect_fused(last, fused);
  weight_behind.weighted = "mul.Tensor(%n, %w)";
  expect_fused(weight_behind, fused);
}

TEST(fuse_rms_norm, keeps_a_product_that_is_no_weight) {
  RmsNorm without, of_elements, read_twice;
  without.weighted = "neg(%n)";
  expect_fused(without, {"_fused_rms_norm", "neg"});
  of_elements.weighted = "mul.Tensor(%x, %n)";
  expect_fused(of_elements, {"_fused_rms_norm", "mul.Tensor"});
  read_twice.extra = "output \"n\" = %n\n";
  expect_fused(read_twice, {"_fused_rms_norm", "mul.Tensor"});
}

// Gemma multiplies with 1 + w.
TEST(fuse_rms_norm, takes_weights_that_are_computed) {
  const char* text = R"(graph f
input "x" = %x: f32[3, 20]
input "w" = %w: f32[20]
%s: f32[3, 20] = pow.Tensor_Scalar(%x, 2)
%m: f32[3, 1] = mean.dim(%s, [-1], true, none)
%e: f32[3, 1] = add.Scalar(%m, 1e-06, 1)
%r: f32[3, 1] = rsqrt(%e)
%n: f32[3, 20] = mul.Tensor(%x, %r)
%one: f32[20] = add.Scalar(%w, 1.0, 1)
%y: f32[3, 20] = mul.Tensor(%n, %one)
output "y" = %y
)";
  expect_after(*ir::parse(text), *ir::parse(text),
               {random_tensor({3, 20}, 1), random_tensor({20}, 2)},
               {"add.Scalar", "_fused_rms_norm"});
}

// Qwen 3 and Gemma 3 normalise the heads of queries and keys.
TEST(fuse_rms_norm, normalises_heads_before_they_are_exchanged) {
  const char* text = R"(graph f
symbol t in [1, 9]
input "q" = %q: f32[1, t, 4, 16]
input "w" = %w: f32[16]
%x: f32[1, 4, t, 16] strides [t*64, 16, 64, 1] = transpose.int(%q, 1, 2)
%s: f32[1, 4, t, 16] = pow.Tensor_Scalar(%x, 2)
%m: f32[1, 4, t, 1] = mean.dim(%s, [-1], true, none)
%e: f32[1, 4, t, 1] = add.Scalar(%m, 1e-06, 1)
%r: f32[1, 4, t, 1] = rsqrt(%e)
%n: f32[1, 4, t, 16] = mul.Tensor(%x, %r)
%y: f32[1, 4, t, 16] = mul.Tensor(%n, %w)
output "y" = %y
bind t = extent 1 of input 0
)";
  expect_after(*ir::parse(text), *ir::parse(text),
               {random_tensor({1, 5, 4, 16}, 1), random_tensor({16}, 2)},
               {"_fused_rms_norm", "transpose.int"});
}

TEST(fuse_rms_norm, leaves_means_of_something_else) {
  const auto after = [](const RmsNorm& norm) {
    const auto graph = norm.graph();
    return apply(fuse_rms_norm, *graph);
  };
  RmsNorm cubes, other_root, other_product, twice;
  cubes.square = "pow.Tensor_Scalar(%x, 3)";
  EXPECT_EQ(after(cubes), 0);
  other_root.root = "sqrt(%e)";
  EXPECT_EQ(after(other_root), 0);
  other_product.norm = "mul.Tensor(%s, %r)";
  EXPECT_EQ(after(other_product), 0);
  twice.sum = "add.Scalar(%m, 1e-06, 2)";
  EXPECT_EQ(after(twice), 0);

  const auto columns = ir::parse(R"(graph f
input "x" = %x: f32[1, 3, 20]
%s: f32[1, 3, 20] = pow.Tensor_Scalar(%x, 2)
%m: f32[1, 1, 20] = mean.dim(%s, [1], true, none)
%e: f32[1, 1, 20] = add.Scalar(%m, 1e-06, 1)
%r: f32[1, 1, 20] = rsqrt(%e)
%y: f32[1, 3, 20] = mul.Tensor(%x, %r)
output "y" = %y
)");
  EXPECT_EQ(apply(fuse_rms_norm, *columns), 0);
}

// As the gradient does: the parts would be computed twice.
TEST(fuse_rms_norm, leaves_parts_that_others_read) {
  for (const char* part : {"s", "m", "e", "r"}) {
    RmsNorm norm;
    norm.extra = std::string("output \"part\" = %") + part + "\n";
    const auto graph = norm.graph();
    PassContext context;
    EXPECT_EQ(fuse_rms_norm(*graph, context), 0) << part;
    EXPECT_THAT(context.take_notes()[0].text, HasSubstr("used elsewhere"));
  }
}

TEST(fuse_rms_norm, says_what_it_did) {
  const auto graph = RmsNorm().graph();
  PassContext context;
  fuse_rms_norm(*graph, context);
  const std::vector<Note> notes = context.take_notes();
  ASSERT_THAT(notes, SizeIs(1));
  EXPECT_FALSE(notes[0].declined);
  EXPECT_THAT(notes[0].text, HasSubstr("RMS norm"));
}

}  // namespace
}  // namespace taper::passes
