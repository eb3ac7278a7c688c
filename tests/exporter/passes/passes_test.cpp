#include "taper/exporter/passes/passes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <sstream>

#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

TEST(remove_dead_code, keeps_what_outputs_and_writes_need) {
  const auto graph = ir::parse(
      "graph f\ninput \"x\" = %x: f32[2]\nstate \"s\" = %s: f32[2] buffer zeros\n%a: f32[2] = "
      "neg(%x)\n%b: f32[2] = relu(%a)\n"
      "%c: f32[2] = exp(%a)\n%d: f32[2] = log(%c)\n%e: f32[2] = abs(%s)\noutput \"y\" = %b\nwrite "
      "\"s\" = %e\n");
  EXPECT_EQ(apply(remove_dead_code, *graph), 2);
  EXPECT_EQ(operators(*graph), (std::vector<std::string>{"neg", "relu", "abs"}));
  ir::verify(*graph);
}

TEST(fold_constants, computes_what_follows_from_constants_and_leaves_the_rest) {
  ir::Payloads payloads;
  const std::string w = constant("w", random_payload({3, 4}, 1), payloads);
  const auto graph = ir::parse("graph f\ninput \"x\" = %x: f32[2, 3]\n" + w +
                                   "%t: f32[4, 3] strides [1, 4] = permute(%w, [1, 0])\n%e: f32[4, "
                                   "3] = exp(%t)\n%n: f32[4, 3] = neg(%e)\n"
                                   "%tt: f32[3, 4] strides [1, 3] = permute(%n, [1, 0])\n%y: "
                                   "f32[2, 4] = mm(%x, %tt)\noutput \"y\" = %y\n",
                               payloads);
  const Tensor x = random_tensor({2, 3}, 2);
  const auto before = run(*graph, {x});
  EXPECT_GT(apply(fold_constants, *graph), 0);
  ir::verify(*graph);
  EXPECT_EQ(operators(*graph), (std::vector<std::string>{"permute", "mm"}));
  EXPECT_EQ(graph->constants().size(), 1u);
  expect_same_bits(run(*graph, {x}), before);
}

TEST(fold_constants, does_not_blow_a_small_constant_up) {
  ir::Payloads payloads;
  const std::string w = constant("w", random_payload({1}, 1), payloads);
  const auto graph = ir::parse(
      "graph f\n" + w + "%r: f32[100000] = repeat(%w, [100000])\noutput \"y\" = %r\n", payloads);
  EXPECT_EQ(apply(fold_constants, *graph), 0);
}

TEST(merge_common_subexpressions, keeps_one_of_equal_calls) {
  const auto graph = ir::parse(
      "graph f\ninput \"x\" = %x: f32[2]\n%a: f32[2] = exp(%x)\n%b: f32[2] = exp(%x)\n%c: f32[2] = "
      "mul.Scalar(%a, 2)\n"
      "%d: f32[2] = mul.Scalar(%b, 2)\n%e: f32[2] = mul.Scalar(%b, 2.0)\n%f: f32[2] = "
      "add.Tensor(%c, %d, 1)\n"
      "%g: f32[2] = add.Tensor(%f, %e, 1)\noutput \"y\" = %g\n");
  EXPECT_EQ(apply(merge_common_subexpressions, *graph), 2);
  ir::verify(*graph);
  EXPECT_EQ(operators(*graph), (std::vector<std::string>{"exp", "mul.Scalar", "mul.Scalar",
                                                         "add.Tensor", "add.Tensor"}));
}

TEST(drop_unused_results, gives_the_same_bits_without_indices) {
  const std::string parameters = ", [3, 3], [2, 2], [1, 1], [1, 1], false)";
  const auto graph = ir::parse(
      "graph f\ninput \"x\" = %x: f32[2, 3, 8, 9]\n%y: f32[2, 3, 4, 5], %i: i64[2, 3, 4, 5] = "
      "max_pool2d_with_indices(%x" +
      parameters + "  @ \"net.py\" 14 \"forward\" in \"pool\"\noutput \"y\" = %y\n");
  const Tensor x = random_tensor({2, 3, 8, 9}, 1);
  const auto before = run(*graph, {x});
  PassContext context;
  EXPECT_EQ(drop_unused_results(*graph, context), 1);
  ir::verify(*graph);
  EXPECT_EQ(operators(*graph), (std::vector<std::string>{"max_pool2d"}));
  EXPECT_EQ(graph->nodes().front().result()->name, "y");
  EXPECT_EQ(context.take_notes().at(0).node, "max_pool2d at net.py:14 (pool)");
  expect_same_bits(run(*graph, {x}), before);
}

TEST(drop_unused_results, leaves_a_call_whose_indices_are_used_or_whose_dtype_has_no_kernel) {
  const auto graph = ir::parse(
      "graph f\ninput \"x\" = %x: f32[3, 8, 8]\ninput \"z\" = %z: f64[3, 8, 8]\n"
      "%y: f32[3, 4, 4], %i: i64[3, 4, 4] = max_pool2d_with_indices(%x, [2, 2], [], [0, 0], [1, "
      "1], false)\n"
      "%w: f64[3, 4, 4], %j: i64[3, 4, 4] = max_pool2d_with_indices(%z, [2, 2], [], [0, 0], [1, "
      "1], false)\n"
      "output \"y\" = %y\noutput \"i\" = %i\noutput \"w\" = %w\n");
  PassContext context;
  EXPECT_EQ(drop_unused_results(*graph, context), 0);
  EXPECT_EQ(graph->nodes().size(), 2u);
  const std::vector<Note> notes = context.take_notes();
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(notes[0].declined);
  EXPECT_EQ(notes[0].text, "the target has no kernel for max_pool2d of this dtype");
}

TEST(fold_batch_norm, gives_the_same_numbers_within_rounding) {
  for (const std::string bias : {"none", "%b"}) {
    ir::Payloads payloads;
    const std::string text =
        "graph f\ninput \"x\" = %x: f32[2, 3, 5, 5]\n" +
        constant("w", random_payload({4, 3, 3, 3}, 1), payloads) +
        constant("g", random_payload({4}, 2), payloads) +
        constant("b", random_payload({4}, 3), payloads) +
        constant("m", random_payload({4}, 4), payloads) +
        constant("v", random_payload({4}, 5, 0.5, 2), payloads) +
        "%c: f32[2, 4, 3, 3] = convolution(%x, %w, " + bias +
        ", [1, 1], [0, 0], [1, 1], false, [0, 0], 1)\n"
        "%n: f32[2, 4, 3, 3], %n1: f32[0], %n2: f32[0] = _native_batch_norm_legit_no_training(%c, "
        "%g, %b, %m, %v, 0.1, 1e-05)\n"
        "output \"y\" = %n\n";
    const auto graph = ir::parse(text, payloads);
    const Tensor x = random_tensor({2, 3, 5, 5}, 9);
    const auto before = run(*graph, {x});
    EXPECT_EQ(apply(fold_batch_norm, *graph), 1);
    ir::verify(*graph);
    EXPECT_EQ(operators(*graph), (std::vector<std::string>{"convolution"}));
    const auto after = run(*graph, {x});
    for (size_t i = 0; i < after.size(); ++i) ASSERT_NEAR(after[i], before[i], 1e-5) << bias;
  }
}

TEST(fuse_pointwise, gives_the_same_bits) {
  const auto graph = ir::parse(
      "graph f\nsymbol n in [1, 64]\ninput \"x\" = %x: f32[n, 7]\ninput \"y\" = %y: f32[n, "
      "7]\ninput \"lr\" = %lr: f32[]\n"
      "%a: f32[n, 7] = mul.Tensor(%x, %y)\n%b: f32[n, 7] = add.Tensor(%a, %x, 0.3)\n%c: f32[n, 7] "
      "= tanh(%b)\n%d: f32[n, 7] = mul.Tensor(%c, %lr)\n"
      "%e: f32[n, 7] = sub.Tensor(%y, %d, 1)\n%f: f32[n, 7] = sigmoid(%e)\n%g: f32[n, 7] = "
      "add.Scalar(%f, 0.1, 3)\n"
      "%h: f32[n, 7] = threshold_backward(%g, %x, 0)\n%i: f32[n, 7] = div.Tensor(%h, %f)\noutput "
      "\"y\" = %i\n"
      "bind n = extent 0 of input 0\ncheck n == n \"\"\n");
  const std::vector<Tensor> inputs{random_tensor({9, 7}, 1), random_tensor({9, 7}, 2),
                                   random_tensor({}, 3)};
  const auto before = run(*graph, inputs);
  EXPECT_EQ(apply(fuse_pointwise, *graph), 2) << "sigmoid has two readers, so it ends one tree";
  ir::verify(*graph);
  EXPECT_EQ(graph->nodes().front().result()->name, "f") << "as the last of those it replaces";
  EXPECT_EQ(graph->nodes().back().result()->name, "i");
  EXPECT_EQ(operators(*graph), (std::vector<std::string>{"taper::pointwise", "taper::pointwise"}));
  expect_same_bits(run(*graph, inputs), before);
}

// GPT-2's gelu is written out.
TEST(fuse_pointwise, takes_powers) {
  for (const char* exponent : {"2", "3.0", "0.5", "-0.5", "-2", "1.7"}) {
    const auto graph = ir::parse(
        "graph f\ninput \"x\" = %x: f32[99]\n%p: f32[99] = abs(%x)\n"
        "%c: f32[99] = pow.Tensor_Scalar(%p, " +
        std::string(exponent) +
        ")\n"
        "%m: f32[99] = mul.Scalar(%c, 0.044715)\n%y: f32[99] = add.Tensor(%x, %m, 1)\n"
        "output \"y\" = %y\n");
    const std::vector<Tensor> inputs = {random_tensor({99}, 1)};
    const auto before = run(*graph, inputs);
    EXPECT_EQ(apply(fuse_pointwise, *graph), 1);
    EXPECT_EQ(operators(*graph), (std::vector<std::string>{"taper::pointwise"})) << exponent;
    expect_same_bits(run(*graph, inputs), before);
  }
}
TEST(fuse_pointwise, leaves_other_dtypes_broadcasts_and_outputs_alone) {
  const auto graph = ir::parse(
      "graph f\ninput \"x\" = %x: f64[4, 4]\ninput \"y\" = %y: f32[4, 4]\ninput \"row\" = %row: "
      "f32[4]\n"
      "%a: f64[4, 4] = neg(%x)\n%b: f64[4, 4] = exp(%a)\n%c: f32[4, 4] = add.Tensor(%y, %row, "
      "1)\n%d: f32[4, 4] = relu(%c)\n"
      "%e: f32[4, 4] = exp(%d)\noutput \"a\" = %b\noutput \"d\" = %d\noutput \"e\" = %e\n");
  EXPECT_EQ(apply(fuse_pointwise, *graph), 0);
}

TEST(run_passes, leaves_approximate_ones_out_of_an_exact_export) {
  ir::Graph graph("f");
  graph.add_output("y", graph.add_input("x", ir::dense_type(DType::f32, {2})));
  const auto names = [&](const Target& target, bool exact, std::optional<DType> dtype) {
    PassContext context(target, exact, dtype);
    std::vector<std::string> list;
    for (const PassResult& r : run_passes(graph, context)) list.push_back(r.name);
    return list;
  };
  using testing::Contains, testing::Not;
  EXPECT_THAT(names({}, true, {}), Not(Contains("fold_batch_norm")));
  EXPECT_THAT(names({}, true, {}), Not(Contains("halve_weights")));
  EXPECT_THAT(names({}, false, {}), Contains("fold_batch_norm"));
  EXPECT_THAT(names({}, true, DType::f16), Contains("halve_weights"));
}

TEST(run_passes, shows_the_graph_after_each_pass_in_the_order_of_the_list) {
  const auto graph = ir::parse(
      "graph f\ninput \"x\" = %x: f32[4]\n%a: f32[4] = exp(%x)\n%b: f32[4] = exp(%x)\n"
      "%c: f32[4] = add.Tensor(%a, %b, 1)\noutput \"y\" = %c\n");
  std::vector<std::string> names;
  std::map<std::string, size_t> nodes;
  PassContext context;
  run_passes(*graph, context, [&](const PassResult& result, const ir::Graph& after) {
    if (std::ranges::find(names, result.name) == names.end()) names.push_back(result.name);
    nodes[result.name] = after.nodes().size();
  });
  std::vector<std::string> expected = pass_names();
  std::erase_if(expected, [](const std::string& n) {
    return n == "fuse_quantized" || n == "fold_batch_norm" || n == "fuse_attention" ||
           n == "constant_masks" || n == "halve_weights" || n == "delegate" || n == "winograd" ||
           n == "group_for_backend";
  });
  EXPECT_EQ(names, expected);
  EXPECT_EQ(nodes["fold_constants"], 3u);
  EXPECT_EQ(nodes["merge_common_subexpressions"], 2u);
  EXPECT_EQ(nodes["fuse_pointwise"], 1u);
}

TEST(run_passes, tells_what_a_pass_did_and_why_it_left_a_node_as_it_was) {
  ir::Payloads payloads;
  const auto w = random_payload({1}, 1);
  const std::string text = "graph f\ninput \"x\" = %x: f32[100000]\n" + constant("w", w, payloads) +
                           "%r: f32[100000] = repeat(%w, [100000])  @ \"net.py\" 14 \"forward\" in "
                           "\"head\"\n%a: f32[100000] = add.Tensor(%x, %r, 1)\n"
                           "%b: f32[100000] = relu(%a)\noutput \"y\" = %b\n";
  const auto graph = ir::parse(text, payloads);
  PassContext context;
  std::string said;
  for (const PassResult& r : run_passes(*graph, context)) {
    std::ostringstream line;
    line << r;
    said += line.str();
  }
  using testing::HasSubstr;
  EXPECT_THAT(said,
              HasSubstr("# after fold_constants: 0 changes\n#   left repeat at net.py:14 (head): "
                        "it makes 400000 bytes of 4\n"));
  EXPECT_THAT(
      said, HasSubstr("# after fuse_pointwise: 1 change\n#   relu: ends a tree of 2 operators\n"));
}

}  // namespace
}  // namespace taper::passes
