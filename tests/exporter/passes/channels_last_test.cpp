// Images with channels last, and the programs behind their convolutions: the same bits.
#include <gmock/gmock.h>

#include <algorithm>

#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::passes {
namespace {

using testing::ElementsAre;

/// Of a name, behind "%": f32 constants of these sizes.
struct Weights {
  ir::Payloads payloads;
  std::string lines;
  unsigned seed = 1;

  Weights& add(const std::string& name, std::vector<int64_t> sizes) {
    lines += constant(name, random_payload(std::move(sizes), seed++), payloads);
    return *this;
  }
};

std::string convolution(const std::string& input, const std::string& weight,
                        const std::string& bias, int padding, int groups = 1, int stride = 1) {
  const auto pair = [](int n) { return "[" + std::to_string(n) + ", " + std::to_string(n) + "]"; };
  return "convolution(%" + input + ", %" + weight + ", " + bias + ", " + pair(stride) + ", " +
         pair(padding) + ", [1, 1], false, [0, 0], " + std::to_string(groups) + ")\n";
}

/// Runs the passes on the graph, and compares its first output before and after them.
std::vector<std::string> operators_after(const std::string& text, const ir::Payloads& payloads,
                                         const std::vector<Tensor>& inputs,
                                         std::vector<Run> passes = {channels_last,
                                                                    fuse_pointwise}) {
  const auto graph = ir::parse(text, payloads);
  ir::verify(*graph);
  const std::vector<float> before = run(*graph, inputs);
  for (Run pass : passes) apply(pass, *graph);
  ir::verify(*graph);
  expect_same_bits(run(*graph, inputs), before);
  return operators(*graph);
}

TEST(channels_last, takes_in_all_between_two_convolutions) {
  Weights w;
  w.add("w1", {16, 3, 3, 3}).add("b1", {16}).add("w2", {16, 1, 3, 3}).add("w3", {32, 32, 1, 1});
  const std::string text =
      "graph f\ninput \"x\" = %x: f32[2, 3, 9, 11]\n" + w.lines +
      "%a: f32[2, 16, 9, 11] = " + convolution("x", "w1", "%b1", 1) +
      "%r: f32[2, 16, 9, 11] = hardtanh(%a, 0, 6)\n"
      "%p: f32[2, 16, 4, 5] = max_pool2d(%r, [2, 2], [], [0, 0], [1, 1], false)\n"
      "%d: f32[2, 16, 4, 5] = " +
      convolution("p", "w2", "%b1", 1, 16) +
      "%s: f32[2, 16, 4, 5] = sigmoid(%d)\n"
      "%m: f32[2, 16, 4, 5] = mul.Tensor(%d, %s)\n"
      "%t: f32[2, 16, 4, 5] = add.Tensor(%m, %p, 1)\n"
      "%c: f32[2, 32, 4, 5] = cat([%t, %p], 1)\n"
      "%v: f32[2, 32, 3, 4] = avg_pool2d(%c, [2, 2], [1, 1], [0, 0], false, true, none)\n"
      "%k: f32[2, 32, 3, 4] = relu(%v)\n"
      "%y: f32[2, 32, 3, 4] = " +
      convolution("k", "w3", "none", 0) +
      "%h: f32[2, 32] = mean.dim(%y, [2, 3], false, none)\noutput \"y\" = %h\n";
  EXPECT_THAT(
      operators_after(text, w.payloads, {random_tensor({2, 3, 9, 11}, 9)}, {channels_last}),
      ElementsAre("permute", "taper::convolution", "hardtanh", "taper::max_pool2d",
                  "taper::convolution", "sigmoid", "mul.Tensor", "add.Tensor", "cat",
                  "taper::avg_pool2d", "relu", "taper::convolution", "permute", "mean.dim"));
}

TEST(channels_last, copies_an_image_at_the_borders_only) {
  Weights w;
  w.add("w1", {16, 3, 3, 3}).add("b1", {16}).add("w2", {20, 16, 1, 1}).add("b2", {20});
  const std::string text = "graph f\ninput \"x\" = %x: f32[1, 3, 9, 11]\n" + w.lines +
                           "%a: f32[1, 16, 9, 11] = " + convolution("x", "w1", "%b1", 1) +
                           "%r: f32[1, 16, 9, 11] = relu(%a)\n%d: f32[1, 20, 9, 11] = " +
                           convolution("r", "w2", "%b2", 0) +
                           "%e: f32[1, 20, 9, 11] = hardswish(%d)\n"
                           "%f: f32[1, 20, 9, 11] = " +
                           convolution("r", "w2", "none", 0) +
                           "%g: f32[1, 20, 9, 11] = add.Tensor(%f, %e, 1)\n"
                           "%h: f32[1, 20] = mean.dim(%g, [2, 3], false, none)\n"
                           "output \"y\" = %h\n";
  EXPECT_THAT(operators_after(text, w.payloads, {random_tensor({1, 3, 9, 11}, 9)}),
              ElementsAre("permute", "taper::convolution", "taper::convolution",
                          "taper::convolution", "permute", "mean.dim"));
}

TEST(channels_last, gives_views_a_copy_that_lies_as_before) {
  Weights w;
  w.add("w1", {16, 3, 1, 1}).add("w2", {8, 16, 1, 1}).add("w3", {8, 8, 1, 1});
  const std::string text = "graph f\ninput \"x\" = %x: f32[1, 3, 4, 5]\n" + w.lines +
                           "%a: f32[1, 16, 4, 5] = " + convolution("x", "w1", "none", 0) +
                           "%b: f32[1, 8, 4, 5] = " + convolution("a", "w2", "none", 0) +
                           "%c: f32[1, 8, 4, 5] = " + convolution("b", "w3", "none", 0) +
                           "%d: f32[1, 8, 4, 5] = " + convolution("c", "w3", "none", 0) +
                           "%v: f32[1, 160] = view(%d, [1, 160])\noutput \"y\" = %v\n";
  EXPECT_THAT(operators_after(text, w.payloads, {random_tensor({1, 3, 4, 5}, 9)}),
              ElementsAre("permute", "taper::convolution", "taper::convolution",
                          "taper::convolution", "taper::convolution", "permute", "clone", "view"));
}

TEST(channels_last, meets_a_permute_of_the_model) {
  Weights w;
  w.add("w1", {16, 16, 1, 1}).add("w2", {16, 1, 3, 3});
  const std::string text =
      "graph f\ninput \"x\" = %x: f32[1, 4, 5, 16]\n" + w.lines +
      "%p: f32[1, 16, 4, 5] strides [320, 1, 80, 16] = permute(%x, [0, 3, 1, 2])\n"
      "%a: f32[1, 16, 4, 5] = " +
      convolution("p", "w2", "none", 1, 16) +
      "%q: f32[1, 4, 5, 16] strides [320, 5, 1, 20] = permute(%a, [0, 2, 3, 1])\n"
      "%y: f32[1, 4, 5, 16] = gelu(%q, \"none\")\noutput \"y\" = %y\n";
  EXPECT_THAT(operators_after(text, w.payloads, {random_tensor({1, 4, 5, 16}, 9)}),
              ElementsAre("permute", "permute", "taper::convolution"));
}

// A block of ConvNeXt: linear layers over channels that lie last, a factor for each channel, and
// the sum with an image that came with channels first.
TEST(channels_last, takes_in_a_view_that_lies_with_channels_last_and_factors_of_channels) {
  Weights w;
  w.add("w1", {16, 1, 7, 7}).add("w2", {16, 1, 7, 7}).add("scale", {16, 1, 1});
  const std::string text =
      "graph f\ninput \"x\" = %x: f32[1, 4, 5, 16]\n" + w.lines +
      "%p: f32[1, 16, 4, 5] strides [320, 1, 80, 16] = permute(%x, [0, 3, 1, 2])\n"
      "%a: f32[1, 16, 4, 5] = " +
      convolution("p", "w1", "none", 3, 16) +
      "%q: f32[1, 4, 5, 16] strides [320, 5, 1, 20] = permute(%a, [0, 2, 3, 1])\n"
      "%g: f32[1, 4, 5, 16] = gelu(%q, \"none\")\n"
      "%r: f32[1, 16, 4, 5] strides [320, 1, 80, 16] = permute(%g, [0, 3, 1, 2])\n"
      "%m: f32[1, 16, 4, 5] = mul.Tensor(%scale, %r)\n"
      "%s: f32[1, 16, 4, 5] = add.Tensor(%m, %p, 1)\n"
      "%b: f32[1, 16, 4, 5] = " +
      convolution("s", "w2", "none", 3, 16) +
      "%h: f32[1, 16] = mean.dim(%b, [2, 3], false, none)\noutput \"y\" = %h\n";
  const std::vector<std::string> operators =
      operators_after(text, w.payloads, {random_tensor({1, 4, 5, 16}, 9)}, {channels_last});
  EXPECT_EQ(std::ranges::count(operators, "taper::convolution"), 2);
  EXPECT_EQ(std::ranges::count(operators, "convolution"), 0);
  EXPECT_EQ(std::ranges::count(operators, "clone"), 0);
}

// The shortcut of ResNet-20: every second pixel, and zeros as further channels.
TEST(channels_last, takes_in_slices_and_padding) {
  Weights w;
  w.add("w1", {16, 3, 3, 3}).add("w2", {32, 16, 3, 3}).add("w3", {32, 32, 3, 3});
  const std::string text =
      "graph f\ninput \"x\" = %x: f32[2, 3, 8, 10]\n" + w.lines +
      "%a: f32[2, 16, 8, 10] = " + convolution("x", "w1", "none", 1) +
      "%b: f32[2, 32, 4, 5] = " + convolution("a", "w2", "none", 1, 1, 2) +
      "%s: f32[2, 16, 4, 10] strides [1280, 80, 20, 1] = slice.Tensor(%a, 2, 0, "
      "9223372036854775807, 2)\n"
      "%t: f32[2, 16, 4, 5] strides [1280, 80, 20, 2] = slice.Tensor(%s, -1, 0, "
      "9223372036854775807, 2)\n"
      "%p: f32[2, 32, 4, 5] = constant_pad_nd(%t, [0, 0, 0, 0, 7, 9], 0.5)\n"
      "%q: f32[2, 32, 4, 5] = constant_pad_nd(%p, [1, -1, -2, 2], 0.25)\n"
      "%r: f32[2, 32, 4, 5] = add.Tensor(%b, %q, 1)\n"
      "%c: f32[2, 32, 4, 5] = " +
      convolution("r", "w3", "none", 1) +
      "%h: f32[2, 32] = mean.dim(%c, [2, 3], false, none)\noutput \"y\" = %h\n";
  EXPECT_THAT(operators_after(text, w.payloads, {random_tensor({2, 3, 8, 10}, 9)}, {channels_last}),
              ElementsAre("permute", "taper::convolution", "taper::convolution", "slice.Tensor",
                          "slice.Tensor", "constant_pad_nd", "constant_pad_nd", "add.Tensor",
                          "taper::convolution", "permute", "mean.dim"));
}

TEST(channels_last, leaves_slices_that_others_read) {
  Weights w;
  w.add("w1", {16, 3, 3, 3}).add("w2", {16, 16, 3, 3});
  const std::string text =
      "graph f\ninput \"x\" = %x: f32[2, 3, 8, 10]\n" + w.lines +
      "%a: f32[2, 16, 8, 10] = " + convolution("x", "w1", "none", 1) +
      "%b: f32[2, 16, 8, 10] = " + convolution("a", "w2", "none", 1) +
      "%c: f32[2, 16, 8, 10] = " + convolution("b", "w2", "none", 1) +
      "%d: f32[2, 16, 8, 10] = " + convolution("c", "w2", "none", 1) +
      "%s: f32[2, 16, 4, 10] strides [1280, 80, 20, 1] = slice.Tensor(%d, 2, 0, "
      "9223372036854775807, 2)\n"
      "%t: f32[2, 16, 4, 5] strides [1280, 80, 20, 2] = slice.Tensor(%s, 3, 0, "
      "9223372036854775807, 2)\n"
      "%r: f32[2, 16, 4, 5] = relu(%t)\noutput \"y\" = %r\n";
  EXPECT_THAT(operators_after(text, w.payloads, {random_tensor({2, 3, 8, 10}, 9)}, {channels_last}),
              ElementsAre("permute", "taper::convolution", "taper::convolution",
                          "taper::convolution", "taper::convolution", "permute", "clone",
                          "slice.Tensor", "slice.Tensor", "relu"));
}

// A mask lies the same in both orders. What computes with it has nothing to do with images.
TEST(channels_last, does_not_count_what_lies_the_same_in_both_orders) {
  Weights w;
  w.add("w1", {16, 3, 3, 3}).add("w2", {16, 16, 3, 3});
  const std::string text =
      "graph f\ninput \"x\" = %x: f32[2, 3, 8, 10]\ninput \"m\" = %m: f32[2, 1, 6, 6]\n" + w.lines +
      "%a: f32[2, 16, 8, 10] = " + convolution("x", "w1", "none", 1) +
      "%b: f32[2, 16, 8, 10] = " + convolution("a", "w2", "none", 1) +
      "%h: f32[2, 16] = mean.dim(%b, [2, 3], false, none)\n"
      "%n: f32[2, 1, 6, 6] = mul.Scalar(%m, -10000.0)\n"
      "output \"y\" = %h\noutput \"n\" = %n\n";
  EXPECT_THAT(operators_after(text, w.payloads,
                              {random_tensor({2, 3, 8, 10}, 9), random_tensor({2, 1, 6, 6}, 8)},
                              {channels_last}),
              ElementsAre("permute", "taper::convolution", "taper::convolution", "permute",
                          "mean.dim", "mul.Scalar"));
}

TEST(channels_last, leaves_graphs_in_which_it_does_not_pay) {
  Weights w;
  w.add("w1", {16, 3, 3, 3});
  const std::string one = "graph f\ninput \"x\" = %x: f32[1, 3, 9, 11]\n" + w.lines +
                          "%a: f32[1, 16, 9, 11] = " + convolution("x", "w1", "none", 1) +
                          "output \"y\" = %a\n";
  const auto graph = ir::parse(one, w.payloads);
  PassContext context;
  EXPECT_EQ(channels_last(*graph, context), 0);
  EXPECT_EQ(context.take_notes().at(0).text,
            "images would be copied 2 times, to and from channels last, for 1 convolutions");

  // weights that are inputs, and other dtypes
  const auto others = ir::parse(
      "graph f\ninput \"x\" = %x: f32[1, 1, 9, 11]\ninput \"w\" = %w: f32[1, 1, 3, 3]\n"
      "%a: f32[1, 1, 7, 9] = " +
      convolution("x", "w", "none", 0) + "output \"y\" = %a\n");
  EXPECT_EQ(apply(channels_last, *others), 0);
}

TEST(fuse_pointwise, puts_a_tree_behind_the_last_convolution_it_reads) {
  Weights w;
  w.add("w1", {16, 16, 1, 1}).add("w2", {16, 16, 1, 1}).add("b", {16});
  const std::string text = "graph f\ninput \"x\" = %x: f32[1, 16, 1, 1]\n" + w.lines +
                           "%a: f32[1, 16, 1, 1] = " + convolution("x", "w1", "%b", 0) +
                           "%c: f32[1, 16, 1, 1] = " + convolution("x", "w2", "none", 0) +
                           "%s: f32[1, 16, 1, 1] = add.Tensor(%a, %c, 1)\n"
                           "%r: f32[1, 16, 1, 1] = relu(%s)\n"
                           "%l: f32[1, 16, 1, 1] = leaky_relu(%r, 0.1)\n"
                           "%m: f32[1, 16, 1, 1] = clamp(%l, 0.25, none)\n"
                           "output \"y\" = %m\n";
  const auto graph = ir::parse(text, w.payloads);
  const Tensor x = random_tensor({1, 16, 1, 1}, 5);
  const auto before = run(*graph, {x});
  apply(channels_last, *graph);
  PassContext context;
  EXPECT_EQ(fuse_pointwise(*graph, context), 1);
  ir::verify(*graph);
  EXPECT_THAT(operators(*graph),
              ElementsAre("permute", "taper::convolution", "taper::convolution", "permute"));
  EXPECT_THAT(context.take_notes().at(0).text,
              testing::StartsWith("ends a tree of 4 operators behind taper::convolution"));
  expect_same_bits(run(*graph, {x}), before);
}

TEST(fuse_pointwise, leaves_a_convolution_whose_result_others_read) {
  Weights w;
  w.add("w1", {16, 16, 1, 1});
  const std::string text = "graph f\ninput \"x\" = %x: f32[1, 16, 1, 1]\n" + w.lines +
                           "%a: f32[1, 16, 1, 1] = " + convolution("x", "w1", "none", 0) +
                           "%r: f32[1, 16, 1, 1] = relu(%a)\n%e: f32[1, 16, 1, 1] = exp(%a)\n"
                           "%m: f32[1, 16, 1, 1] = " +
                           convolution("r", "w1", "none", 0) +
                           "output \"y\" = %e\noutput \"z\" = %m\n";
  EXPECT_THAT(operators_after(text, w.payloads, {random_tensor({1, 16, 1, 1}, 5)}),
              testing::IsSupersetOf({"relu", "exp"}));
}

TEST(fuse_pointwise, computes_bounds_and_slopes_with_the_bits_of_their_operators) {
  const std::string names[] = {"hardtanh(%a, -0.5, 0.25)", "clamp(%a, none, 0.5)",
                               "clamp_min(%a, 0.125)",     "clamp_max(%a, -0.5)",
                               "leaky_relu(%a, 0.3)",      "hardswish(%a)",
                               "hardsigmoid(%a)"};
  for (const std::string& name : names) {
    const std::string text =
        "graph f\ninput \"x\" = %x: f32[3000]\n%a: f32[3000] = neg(%x)\n"
        "%b: f32[3000] = " +
        name + "\noutput \"y\" = %b\n";
    EXPECT_THAT(operators_after(text, {}, {random_tensor({3000}, 7)}, {fuse_pointwise}),
                ElementsAre("taper::pointwise"))
        << name;
  }
  // with bounds that cross, clamp gives the upper one and hardtanh the lower one
  EXPECT_THAT(operators_after("graph f\ninput \"x\" = %x: f32[300]\n%a: f32[300] = neg(%x)\n"
                              "%b: f32[300] = clamp(%a, 0.5, -0.5)\noutput \"y\" = %b\n",
                              {}, {random_tensor({300}, 7)}, {fuse_pointwise}),
              ElementsAre("neg", "clamp"));
}

}  // namespace
}  // namespace taper::passes
