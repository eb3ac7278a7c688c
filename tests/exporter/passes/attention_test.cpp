// Attention as models write it: distilled from exports of BERT, GPT-2, Llama, Swin and ViT.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

using testing::Contains, testing::ElementsAre, testing::HasSubstr, testing::IsEmpty, testing::Not;

/// Applies a pass, and returns its notes.
std::string notes_of(Run pass, ir::Graph& graph) {
  PassContext context(Target(), /*exact=*/false);
  pass(graph, context);
  std::string all;
  for (const Note& n : context.take_notes()) all += n.text + "\n";
  return all;
}

/// Applies the pass and expects the operators, and the results of before but for roundings.
void expect_fused(const std::string& text, const std::vector<Tensor>& inputs,
                  const std::vector<std::string>& wanted) {
  const auto graph = ir::parse(text);
  ir::verify(*graph);
  const std::vector<float> want = run(*graph, inputs);
  EXPECT_EQ(apply(fuse_attention, *graph), 1) << text;
  ir::verify(*graph);
  EXPECT_EQ(operators(*graph), wanted) << text;
  EXPECT_EQ(graph->outputs()[0].value->name, "y");
  const std::vector<float> got = run(*graph, inputs);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 3e-6) << i;
}
ir::Call<ops::scaled_dot_product_attention> attention_in(const ir::Graph& graph) {
  const auto at = std::ranges::find_if(
      graph.nodes(), [](const ir::Node& n) { return n.op == &ops::scaled_dot_product_attention; });
  return ir::Call<ops::scaled_dot_product_attention>(*at);
}

// ---- fuse_attention

/// BERT's: queries, keys and values (batch, position, head, feature) in memory. The lines between
/// the products can be others.
struct Written {
  std::string scores =
      "%scaled: f32[1, 4, 6, 7] = mul.Scalar(%product, 0.5)\n"
      "%scores: f32[1, 4, 6, 7] = add.Tensor(%scaled, %mask, 1)\n";
  std::string mask = "f32[1, 1, 6, 7]";
  std::string softmax = "_softmax(%scores, -1, false)";
  std::string query = "%q: f32[1, 4, 6, 8] strides [192, 8, 32, 1] = transpose.int(%a, 1, 2)\n";
  std::string extra;  ///< lines behind it

  std::string text() const {
    return "graph f\ninput \"a\" = %a: f32[1, 6, 4, 8]\ninput \"b\" = %b: f32[1, 7, 4, 8]\n"
           "input \"c\" = %c: f32[1, 7, 4, 5]\ninput \"mask\" = %mask: " +
           mask + "\n" + query +
           "%k: f32[1, 4, 7, 8] strides [224, 8, 32, 1] = transpose.int(%b, 1, 2)\n"
           "%v: f32[1, 4, 7, 5] strides [140, 5, 20, 1] = transpose.int(%c, 1, 2)\n"
           "%kt: f32[1, 4, 8, 7] strides [224, 8, 1, 32] = transpose.int(%k, 2, 3)\n"
           "%qe: f32[1, 4, 6, 8] = clone(%q)\n%qf: f32[4, 6, 8] = view(%qe, [4, 6, 8])\n"
           "%ke: f32[1, 4, 8, 7] strides [224, 8, 1, 32] = expand(%kt, [1, 4, 8, 7], false)\n"
           "%kf: f32[4, 8, 7] strides [8, 1, 32] = view(%ke, [4, 8, 7])\n"
           "%flat: f32[4, 6, 7] = bmm(%qf, %kf)\n"
           "%product: f32[1, 4, 6, 7] = view(%flat, [1, 4, 6, 7])\n" +
           scores + "%weights: f32[1, 4, 6, 7] = " + softmax +
           "\n"
           "%we: f32[1, 4, 6, 7] = expand(%weights, [1, 4, 6, 7], false)\n"
           "%wf: f32[4, 6, 7] = view(%we, [4, 6, 7])\n"
           "%ve: f32[1, 4, 7, 5] = clone(%v)\n%vf: f32[4, 7, 5] = view(%ve, [4, 7, 5])\n"
           "%result: f32[4, 6, 5] = bmm(%wf, %vf)\n"
           "%y: f32[1, 4, 6, 5] = view(%result, [1, 4, 6, 5])\noutput \"y\" = %y\n" +
           extra;
  }
};

std::vector<Tensor> inputs_of_written(const Tensor& mask) {
  return {random_tensor({1, 6, 4, 8}, 1), random_tensor({1, 7, 4, 8}, 2),
          random_tensor({1, 7, 4, 5}, 3), mask};
}
void expect_fused(const Written& written) {
  expect_fused(written.text(), inputs_of_written(random_tensor({1, 1, 6, 7}, 4)),
               {"transpose.int", "transpose.int", "transpose.int", "scaled_dot_product_attention"});
}

TEST(fuse_attention, takes_scales_and_masks_as_models_write_them) {
  expect_fused(Written{});
  Written divided, plain, unscaled, unmasked, turned, two_masks;
  divided.scores =
      "%scaled: f32[1, 4, 6, 7] = div.Scalar(%product, 2.0)\n"
      "%scores: f32[1, 4, 6, 7] = add.Tensor(%mask, %scaled, 1)\n";
  expect_fused(divided);
  unscaled.scores = "%scores: f32[1, 4, 6, 7] = add.Tensor(%product, %mask, 1)\n";  // T5
  expect_fused(unscaled);
  unmasked.scores = "%scores: f32[1, 4, 6, 7] = mul.Scalar(%product, 0.5)\n";
  expect_fused(unmasked);
  turned.softmax = "_softmax(%scores, 3, false)";
  expect_fused(turned);
  plain.scores = "";
  plain.softmax = "_softmax(%product, -1, false)";
  expect_fused(plain);
  two_masks.scores =
      "%first: f32[1, 4, 6, 7] = add.Tensor(%product, %mask, 1)\n"
      "%scores: f32[1, 4, 6, 7] = add.Tensor(%first, %mask, 1)\n";
  expect_fused(two_masks.text(), inputs_of_written(random_tensor({1, 1, 6, 7}, 4)),
               {"transpose.int", "transpose.int", "transpose.int", "add.Tensor",
                "scaled_dot_product_attention"});
}

TEST(fuse_attention, takes_the_scale_from_wherever_it_stands) {
  Written scaled_query;
  scaled_query.query =
      "%q0: f32[1, 4, 6, 8] strides [192, 8, 32, 1] = transpose.int(%a, 1, 2)\n"
      "%q: f32[1, 4, 6, 8] = mul.Scalar(%q0, 0.25)\n";
  expect_fused(scaled_query);
  const auto graph = ir::parse(scaled_query.text());
  apply(fuse_attention, *graph);
  const double* scale = attention_in(*graph).get<"scale">();
  ASSERT_NE(scale, nullptr);
  EXPECT_EQ(*scale, 0.125);
}

TEST(fuse_attention, hides_what_masked_fill_hides) {
  Written hidden;
  hidden.mask = "bool[1, 1, 6, 7]";
  hidden.scores =
      "%scaled: f32[1, 4, 6, 7] = mul.Scalar(%product, 0.5)\n"
      "%scores: f32[1, 4, 6, 7] = masked_fill.Scalar(%scaled, %mask, -inf)\n";
  const Tensor mask = eager::gt(random_tensor({1, 1, 6, 7}, 4), Scalar(0.5));
  expect_fused(hidden.text(), inputs_of_written(mask),
               {"transpose.int", "transpose.int", "transpose.int", "logical_not",
                "scaled_dot_product_attention"});
  Written visible = hidden;
  visible.scores =
      "%scaled: f32[1, 4, 6, 7] = mul.Scalar(%product, 0.5)\n"
      "%scores: f32[1, 4, 6, 7] = masked_fill.Scalar(%scaled, %mask, 0.0)\n";
  EXPECT_EQ(apply(fuse_attention, *ir::parse(visible.text())), 0);
}

// MPT adds a bias and then hides by masked_fill.
TEST(fuse_attention, joins_what_is_added_and_what_is_hidden) {
  const char* const hidden =
      "%late: bool[1, 1, 6, 7] = gt.Scalar(%mask, 0.5)\n"
      "%biased: f32[1, 4, 6, 7] = add.Tensor(%product, %mask, 1)\n"
      "%scores: f32[1, 4, 6, 7] = masked_fill.Scalar(%biased, %late, -3.4028234663852886e+38)\n";
  Written written;
  written.scores = hidden;
  expect_fused(written.text(), inputs_of_written(random_tensor({1, 1, 6, 7}, 4)),
               {"transpose.int", "transpose.int", "transpose.int", "gt.Scalar",
                "masked_fill.Scalar", "scaled_dot_product_attention"});
}

// GPT-Neo keeps a score or takes the lowest number.
TEST(fuse_attention, takes_a_choice_between_scores_and_the_lowest_number) {
  ir::Payloads payloads;
  const auto with = [&](float number) {
    const std::string lowest = constant("lowest", ir::Payload::from<float>({number}, {}), payloads);
    Written written;
    written.mask = "bool[1, 1, 6, 7]";
    written.scores = "%scores: f32[1, 4, 6, 7] = where.self(%mask, %product, %lowest)\n";
    std::string text = written.text();
    return ir::parse(text.insert(text.find("input"), lowest), payloads);
  };
  const std::vector<Tensor> inputs =
      inputs_of_written(eager::gt(random_tensor({1, 1, 6, 7}, 4), Scalar(-0.5)));
  const auto graph = with(std::numeric_limits<float>::lowest());
  const std::vector<float> want = run(*graph, inputs);
  EXPECT_EQ(apply(fuse_attention, *graph), 1);
  ir::verify(*graph);
  EXPECT_EQ(attention_in(*graph).get<"attn_mask">()->name, "mask");
  const std::vector<float> got = run(*graph, inputs);
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 3e-6) << i;
  EXPECT_EQ(apply(fuse_attention, *with(-1.0f)), 0);
}

// run_decompositions() writes a softmax that gives zeros where a query has no key.
TEST(fuse_attention, takes_the_softmax_of_core_aten) {
  ir::Payloads payloads;
  const auto with = [&](float zero) {
    const std::string zeros = constant(
        "zeros", ir::Payload::from<float>(std::vector<float>(4 * 6 * 7, zero), {1, 4, 6, 7}),
        payloads);
    Written written;
    written.softmax = "where.self(%none, %zeros, %unsafe)";
    written.scores +=
        "%unsafe: f32[1, 4, 6, 7] = _softmax(%scores, -1, false)\n"
        "%eq: bool[1, 4, 6, 7] = eq.Scalar(%scores, -inf)\n"
        "%visible: bool[1, 4, 6, 7] = logical_not(%eq)\n"
        "%any: bool[1, 4, 6, 1] = any.dim(%visible, -1, true)\n"
        "%none: bool[1, 4, 6, 1] = logical_not(%any)\n";
    std::string text = written.text();
    return ir::parse(text.insert(text.find("input"), zeros), payloads);
  };
  Tensor mask = random_tensor({1, 1, 6, 7}, 4);
  mask = eager::masked_fill(mask, eager::gt(mask, Scalar(0.5)), Scalar(-HUGE_VAL));
  const auto graph = with(0);
  const std::vector<float> want = run(*graph, inputs_of_written(mask));
  EXPECT_EQ(apply(fuse_attention, *graph), 1);
  ir::verify(*graph);
  EXPECT_THAT(operators(*graph), ElementsAre("transpose.int", "transpose.int", "transpose.int",
                                             "scaled_dot_product_attention"));
  const std::vector<float> got = run(*graph, inputs_of_written(mask));
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 3e-6) << i;
  EXPECT_EQ(apply(fuse_attention, *with(1)), 0);
}

// Bloom adds a bias of each head by baddbmm, before batch and heads are apart.
TEST(fuse_attention, takes_the_bias_of_a_product) {
  expect_fused(
      R"(graph f
input "q" = %q: f32[6, 5, 8]
input "k" = %k: f32[6, 5, 8]
input "v" = %v: f32[6, 5, 8]
input "bias" = %bias: f32[6, 1, 5]
input "mask" = %mask: f32[2, 1, 5, 5]
%kt: f32[6, 8, 5] strides [40, 1, 8] = transpose.int(%k, -1, -2)
%flat: f32[6, 5, 5] = baddbmm(%bias, %q, %kt, 1.0, 0.25)
%split: f32[2, 3, 5, 5] = view(%flat, [2, 3, 5, 5])
%scores: f32[2, 3, 5, 5] = add.Tensor(%split, %mask, 1)
%weights: f32[2, 3, 5, 5] = _softmax(%scores, -1, false)
%wf: f32[6, 5, 5] = view(%weights, [6, 5, 5])
%y: f32[6, 5, 8] = bmm(%wf, %v)
output "y" = %y
)",
      {random_tensor({6, 5, 8}, 1), random_tensor({6, 5, 8}, 2), random_tensor({6, 5, 8}, 3),
       random_tensor({6, 1, 5}, 4), random_tensor({2, 1, 5, 5}, 5)},
      {"transpose.int", "view", "view", "transpose.int", "view", "view", "add.Tensor",
       "scaled_dot_product_attention", "view"});
}

TEST(fuse_attention, says_why_a_softmax_stays) {
  const auto note = [](const Written& written) {
    const auto graph = ir::parse(written.text());
    const std::vector<std::string> before = operators(*graph);
    const std::string notes = notes_of(fuse_attention, *graph);
    EXPECT_EQ(operators(*graph), before);
    return notes;
  };
  Written rows, returned, scores_returned, scaled_mask, other;
  rows.softmax = "_softmax(%scores, 2, false)";
  EXPECT_THAT(note(rows), HasSubstr("another dimension"));
  returned.extra = "output \"w\" = %weights\n";
  EXPECT_THAT(note(returned), HasSubstr("its weights are used elsewhere"));
  scores_returned.extra = "output \"s\" = %product\n";
  EXPECT_THAT(note(scores_returned), HasSubstr("its scores are no scaled product"));
  scaled_mask.scores =
      "%sum: f32[1, 4, 6, 7] = add.Tensor(%product, %mask, 1)\n"
      "%scores: f32[1, 4, 6, 7] = mul.Scalar(%sum, 0.5)\n";
  EXPECT_THAT(note(scaled_mask), HasSubstr("its scores are no scaled product"));
  other.scores = "%scores: f32[1, 4, 6, 7] = tanh(%product)\n";
  EXPECT_THAT(note(other), HasSubstr("its scores are no scaled product"));
}

// The softmax runs over rows of another grouping: queries of a group count as queries of one head.
TEST(fuse_attention, leaves_matrices_that_are_reshaped) {
  const auto text = [](const std::string& wide, const std::string& narrow) {
    return "graph f\ninput \"q\" = %q: f32[2, 6, 8]\ninput \"k\" = %k: f32[2, 8, 6]\n"
           "input \"v\" = %v: f32[2, 6, 5]\n"
           "%flat: f32[2, 6, 6] = bmm(%q, %k)\n"
           "%scores: f32" +
           wide + " = view(%flat, " + wide +
           ")\n"
           "%weights: f32" +
           wide +
           " = _softmax(%scores, -1, false)\n"
           "%wf: f32" +
           narrow + " = view(%weights, " + narrow +
           ")\n"
           "%y: f32[2, 6, 5] = bmm(%wf, %v)\noutput \"y\" = %y\n";
  };
  for (const char* wide : {"[4, 3, 6]", "[2, 12, 3]", "[2, 2, 3, 6]"}) {
    const auto graph = ir::parse(text(wide, "[2, 6, 6]"));
    EXPECT_EQ(apply(fuse_attention, *graph), 0) << wide;
  }
  EXPECT_EQ(apply(fuse_attention, *ir::parse(text("[2, 1, 6, 6]", "[2, 6, 6]"))), 1);
}

/// Swin's: the windows of two images, with a bias of the heads, and a mask of the windows.
const char* const windows = R"(graph f
input "x" = %x: f32[8, 5, 3, 2, 6]
input "bias" = %bias: f32[1, 2, 5, 5]
input "mask" = %mask: f32[1, 4, 1, 5, 5]
%p: f32[3, 8, 2, 5, 6] strides [12, 180, 6, 36, 1] = permute(%x, [2, 0, 3, 1, 4])
%q0: f32[8, 2, 5, 6] strides [180, 6, 36, 1] = select.int(%p, 0, 0)
%k: f32[8, 2, 5, 6] strides [180, 6, 36, 1] offset 12 = select.int(%p, 0, 1)
%v: f32[8, 2, 5, 6] strides [180, 6, 36, 1] offset 24 = select.int(%p, 0, 2)
%q: f32[8, 2, 5, 6] = mul.Scalar(%q0, 0.5)
%kt: f32[8, 2, 6, 5] strides [180, 6, 1, 36] offset 12 = transpose.int(%k, -2, -1)
%qf: f32[16, 5, 6] = view(%q, [16, 5, 6])
%kc: f32[8, 2, 6, 5] = clone(%kt)
%kf: f32[16, 6, 5] = view(%kc, [16, 6, 5])
%flat: f32[16, 5, 5] = bmm(%qf, %kf)
%product: f32[8, 2, 5, 5] = view(%flat, [8, 2, 5, 5])
%biased: f32[8, 2, 5, 5] = add.Tensor(%product, %bias, 1)
%split: f32[2, 4, 2, 5, 5] = view(%biased, [2, 4, 2, 5, 5])
%masked: f32[2, 4, 2, 5, 5] = add.Tensor(%split, %mask, 1)
%scores: f32[8, 2, 5, 5] = view(%masked, [8, 2, 5, 5])
%weights: f32[8, 2, 5, 5] = _softmax(%scores, -1, false)
%wf: f32[16, 5, 5] = view(%weights, [16, 5, 5])
%vc: f32[8, 2, 5, 6] = clone(%v)
%vf: f32[16, 5, 6] = view(%vc, [16, 5, 6])
%result: f32[16, 5, 6] = bmm(%wf, %vf)
%heads: f32[8, 2, 5, 6] = view(%result, [8, 2, 5, 6])
%turned: f32[8, 5, 2, 6] strides [60, 6, 30, 1] = transpose.int(%heads, 1, 2)
%y: f32[8, 5, 2, 6] = clone(%turned)
output "y" = %y
)";
std::vector<Tensor> inputs_of_windows() {
  return {random_tensor({8, 5, 3, 2, 6}, 1), random_tensor({1, 2, 5, 5}, 2),
          random_tensor({1, 4, 1, 5, 5}, 3)};
}

TEST(fuse_attention, splits_the_batch_where_windows_are_masked) {
  expect_fused(windows, inputs_of_windows(),
               {"permute", "select.int", "select.int", "select.int", "view", "view", "view",
                "add.Tensor", "scaled_dot_product_attention", "view", "transpose.int", "clone"});
}

TEST(heads_last, sees_through_the_split_of_a_batch) {
  const auto graph = ir::parse(windows);
  apply(fuse_attention, *graph);
  const std::vector<float> want = run(*graph, inputs_of_windows());
  EXPECT_EQ(apply(heads_last, *graph), 1);
  ir::verify(*graph);
  EXPECT_THAT(operators(*graph), Not(Contains("clone")));
  EXPECT_EQ(graph->outputs()[0].value->name, "y");
  expect_same_bits(run(*graph, inputs_of_windows()), want);
}

// ---- heads_last

/// One attention whose result `lines` read.
std::unique_ptr<ir::Graph> attention_then(const std::string& lines) {
  auto graph = ir::parse(
      "graph f\nsymbol t in [2, 9]\ninput \"q\" = %q: f32[1, 4, t, 8]\n"
      "%a: f32[1, 4, t, 8] = scaled_dot_product_attention(%q, %q, %q, none, 0.0, true, none, "
      "false)\n" +
      lines + "output \"y\" = %y\nbind t = extent 2 of input 0\n");
  ir::verify(*graph);
  return graph;
}

TEST(heads_last, needs_no_copy_of_the_result) {
  const char* const forms[] = {
      "%v: f32[1, 4, t, 8] = view(%a, [1, 4, t, 8])\n"
      "%t: f32[1, t, 4, 8] strides [t*32, 8, t*8, 1] = transpose.int(%v, 1, 2)\n"
      "%y: f32[1, t, 4, 8] = clone(%t)\n",
      "%t: f32[t, 1, 4, 8] strides [8, t*32, t*8, 1] = permute(%a, [2, 0, 1, 3])\n"
      "%y: f32[t, 1, 4, 8] = clone(%t)\n"};
  const Tensor q = random_tensor({1, 4, 5, 8}, 1);
  for (const char* form : forms) {
    const auto graph = attention_then(form);
    const std::vector<float> want = run(*graph, {q});
    EXPECT_EQ(apply(heads_last, *graph), 1) << form;
    ir::verify(*graph);
    EXPECT_EQ(operators(*graph)[0], "taper::attention");
    EXPECT_THAT(operators(*graph), Not(Contains("clone")));
    expect_same_bits(run(*graph, {q}), want);
  }
}

// Models in half precision have attention in f32.
TEST(heads_last, sees_through_a_cast) {
  const auto graph = attention_then(
      "%h: bf16[1, 4, t, 8] = _to_copy(%a, bf16)\n"
      "%t: bf16[1, t, 4, 8] strides [t*32, 8, t*8, 1] = transpose.int(%h, 1, 2)\n"
      "%c: bf16[1, t, 4, 8] = clone(%t)\n%y: f32[1, t, 4, 8] = _to_copy(%c, f32)\n");
  const Tensor q = random_tensor({1, 4, 5, 8}, 1);
  const std::vector<float> want = run(*graph, {q});
  EXPECT_EQ(apply(heads_last, *graph), 1);
  ir::verify(*graph);
  EXPECT_THAT(operators(*graph), ElementsAre("taper::attention", "_to_copy", "_to_copy"));
  expect_same_bits(run(*graph, {q}), want);
}

TEST(heads_last, leaves_results_that_others_read_or_that_are_turned_in_another_way) {
  const char* const forms[] = {
      "%t: f32[1, t, 4, 8] strides [t*32, 8, t*8, 1] = transpose.int(%a, 1, 2)\n"
      "%y: f32[1, t, 4, 8] = clone(%t)\noutput \"a\" = %a\n",
      "%t: f32[1, 4, 8, t] strides [t*32, t*8, 1, 8] = transpose.int(%a, 2, 3)\n"
      "%y: f32[1, 4, 8, t] = clone(%t)\n",
      "%y: f32[1, 4, t, 8] = clone(%a)\n"};
  for (const char* form : forms) EXPECT_EQ(apply(heads_last, *attention_then(form)), 0) << form;
}

// ---- constant_masks

/// One attention of 3 queries and 3 keys with this mask.
std::unique_ptr<ir::Graph> masked_by(const std::shared_ptr<const ir::Payload>& mask) {
  ir::Payloads payloads;
  const std::string line = constant("mask", mask, payloads);
  return ir::parse(
      "graph f\ninput \"q\" = %q: f32[2, 4, 3, 8]\n" + line +
          "%m: " + std::string(taper::name_of(mask->dtype)) +
          "[2, 1, 3, 3] strides [0, 0, 3, 1] = expand(%mask, [2, 1, 3, 3], false)\n"
          "%y: f32[2, 4, 3, 8] = scaled_dot_product_attention(%q, %q, %q, %m, 0.0, false, none, "
          "false)\noutput \"y\" = %y\n",
      payloads);
}
/// Applies the pass. The results may differ by roundings.
void expect_dropped(ir::Graph& graph, bool is_causal) {
  ir::verify(graph);
  const Tensor q = random_tensor({2, 4, 3, 8}, 1);
  const std::vector<float> want = run(graph, {q});
  EXPECT_EQ(apply(constant_masks, graph), 1);
  ir::verify(graph);
  EXPECT_THAT(operators(graph), ElementsAre("scaled_dot_product_attention"));
  EXPECT_EQ(attention_in(graph).get<"is_causal">(), is_causal);
  const std::vector<float> got = run(graph, {q});
  for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-6) << i;
}

TEST(constant_masks, makes_attention_causal_or_drops_what_hides_nothing) {
  constexpr float no = std::numeric_limits<float>::lowest(), never = -HUGE_VALF;
  const std::vector<float> later = {0, no, no, 0, 0, never, 0, 0, 0}, none(9, 0);
  const uint8_t shown[] = {1, 0, 0, 1, 1, 0, 1, 1, 1};
  expect_dropped(*masked_by(ir::Payload::from(later, {1, 1, 3, 3})), true);
  expect_dropped(*masked_by(ir::Payload::copy(DType::boolean, {3, 3}, shown)), true);
  expect_dropped(*masked_by(ir::Payload::from(none, {1, 3, 3})), false);
}

// Constants are folded only if the result is not much larger. So a long mask is made in each call.
TEST(constant_masks, computes_masks_from_constants) {
  ir::Payloads payloads;
  std::vector<int64_t> positions(70);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
  const std::string line = constant("positions", ir::Payload::from(positions, {70}), payloads);
  const auto with = [&](const std::string& compare) {
    return ir::parse("graph f\ninput \"q\" = %q: f32[1, 2, 70, 4]\n" + line +
                         "%query: i64[70, 1] = unsqueeze(%positions, 1)\n"
                         "%m: bool[70, 70] = " +
                         compare +
                         "(%positions, %query)\n"
                         "%y: f32[1, 2, 70, 4] = scaled_dot_product_attention(%q, %q, %q, %m, 0.0, "
                         "false, none, false)\noutput \"y\" = %y\n",
                     payloads);
  };
  const auto graph = with("le.Tensor");
  ir::verify(*graph);
  EXPECT_EQ(apply(fold_constants, *graph), 0);
  EXPECT_EQ(apply(constant_masks, *graph), 1);
  EXPECT_THAT(operators(*graph), ElementsAre("scaled_dot_product_attention"));
  EXPECT_TRUE(attention_in(*graph).get<"is_causal">());
  EXPECT_EQ(apply(constant_masks, *with("lt.Tensor")), 0);
}

TEST(constant_masks, leaves_other_masks) {
  constexpr float no = std::numeric_limits<float>::lowest();
  const std::vector<float> others[] = {{0, no, no, 0, 0, no, no, 0, 0},     // a window
                                       {0, no, no, 0, 0, no, 0.5, 0, 0},    // a bias
                                       {0, 0, 0, no, 0, 0, no, no, 0},      // earlier keys
                                       {0, -10, -10, 0, 0, -10, 0, 0, 0}};  // not quite hidden
  for (const std::vector<float>& mask : others)
    EXPECT_EQ(apply(constant_masks, *masked_by(ir::Payload::from(mask, {1, 1, 3, 3}))), 0);
}

// ---- group_heads

/// Llama's: each head of keys and values serves three heads of the queries.
struct Repeated {
  std::string key = "%kr", value = "%vr", unsqueezed = "unsqueeze(%k, 2)";

  std::unique_ptr<ir::Graph> graph() const {
    auto graph = ir::parse(
        "graph f\nsymbol t in [1, 9]\ninput \"q\" = %q: f32[1, 6, t, 8]\n"
        "input \"k\" = %k: f32[1, 2, t, 8]\ninput \"w\" = %w: f32[1, t, 2, 8]\n"
        "%v: f32[1, 2, t, 8] strides [t*16, 8, 16, 1] = transpose.int(%w, 1, 2)\n"
        "%ku: f32[1, 2, 1, t, 8] = " +
        unsqueezed +
        "\n"
        "%ke: f32[1, 2, 3, t, 8] strides [t*16, t*8, 0, 8, 1] = expand(%ku, [1, 2, 3, t, 8], "
        "false)\n"
        "%kc: f32[1, 2, 3, t, 8] = clone(%ke)\n%kr: f32[1, 6, t, 8] = view(%kc, [1, 6, t, 8])\n"
        "%vu: f32[1, 2, 1, t, 8] strides [t*16, 8, t*16, 16, 1] = unsqueeze(%v, 2)\n"
        "%ve: f32[1, 2, 3, t, 8] strides [t*16, 8, 0, 16, 1] = expand(%vu, [1, 2, 3, t, 8], "
        "false)\n"
        "%vc: f32[1, 2, 3, t, 8] = clone(%ve)\n%vr: f32[1, 6, t, 8] = view(%vc, [1, 6, t, 8])\n"
        "%y: f32[1, 6, t, 8] = scaled_dot_product_attention(%q, " +
        key + ", " + value +
        ", none, 0.0, false, none, false)\n"
        "output \"y\" = %y\nbind t = extent 2 of input 0\n");
    ir::verify(*graph);
    return graph;
  }
};

TEST(group_heads, reads_keys_and_values_unrepeated) {
  for (const int64_t t : {1, 5}) {
    const auto graph = Repeated().graph();
    const std::vector<Tensor> inputs = {random_tensor({1, 6, t, 8}, 1),
                                        random_tensor({1, 2, t, 8}, 2),
                                        random_tensor({1, t, 2, 8}, 3)};
    const std::vector<float> want = run(*graph, inputs);
    EXPECT_EQ(apply(group_heads, *graph), 1);
    ir::verify(*graph);
    EXPECT_THAT(operators(*graph), ElementsAre("transpose.int", "scaled_dot_product_attention"));
    EXPECT_TRUE(attention_in(*graph).get<"enable_gqa">());
    expect_same_bits(run(*graph, inputs), want);
  }
}

TEST(group_heads, casts_what_is_not_repeated) {
  const auto graph = ir::parse(R"(graph f
input "q" = %q: f32[1, 6, 5, 8]
input "k32" = %k32: f32[1, 2, 5, 8]
%k: bf16[1, 2, 5, 8] = _to_copy(%k32, bf16)
%u: bf16[1, 2, 1, 5, 8] = unsqueeze(%k, 2)
%e: bf16[1, 2, 3, 5, 8] strides [80, 40, 0, 8, 1] = expand(%u, [1, 2, 3, 5, 8], false)
%c: bf16[1, 2, 3, 5, 8] = clone(%e)
%r: bf16[1, 6, 5, 8] = view(%c, [1, 6, 5, 8])
%f: f32[1, 6, 5, 8] = _to_copy(%r, f32)
%y: f32[1, 6, 5, 8] = scaled_dot_product_attention(%q, %f, %f, none, 0.0, false, none, false)
output "y" = %y
)");
  const std::vector<Tensor> inputs = {random_tensor({1, 6, 5, 8}, 1),
                                      random_tensor({1, 2, 5, 8}, 2)};
  const std::vector<float> want = run(*graph, inputs);
  EXPECT_EQ(apply(group_heads, *graph), 1);
  ir::verify(*graph);
  EXPECT_THAT(operators(*graph),
              ElementsAre("_to_copy", "_to_copy", "_to_copy", "scaled_dot_product_attention"));
  expect_same_bits(run(*graph, inputs), want);
}

TEST(group_heads, leaves_keys_and_values_that_differ) {
  Repeated keys_only;
  keys_only.value = "%q";
  EXPECT_THAT(notes_of(group_heads, *keys_only.graph()), HasSubstr("not repeated in the same way"));
  Repeated neither;
  neither.key = neither.value = "%q";
  EXPECT_THAT(notes_of(group_heads, *neither.graph()), IsEmpty());
}

}  // namespace
}  // namespace taper::passes
