// Which nodes become integers, which values share a grid, and what stands in the graph afterwards.
#include <gmock/gmock.h>

#include <limits>
#include <sstream>

#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/quantize/static/static.h"
#include "taper/tests/exporter/passes/apply.h"
#include "taper/tests/support/throw_message.h"

namespace taper::quantize {
namespace {

using eager::Tensor;
using testing::ElementsAre, testing::HasSubstr, testing::IsEmpty;
using Texts = std::map<std::string, std::string>;

/// A graph over images of 1 x 2 x 4 x 4, with a weight for 3 x 3 filters between 2 channels, one
/// for 8 outputs of 32 inputs, and their biases.
std::unique_ptr<ir::Graph> graph_of(const std::string& lines) {
  ir::Payloads payloads;
  std::string text = "graph f\ninput \"x\" = %x: f32[1, 2, 4, 4]\n";
  text += passes::constant("w", passes::random_payload({2, 2, 3, 3}, 1), payloads);
  text += passes::constant("b", passes::random_payload({2}, 2), payloads);
  text += passes::constant("fc", passes::random_payload({8, 32}, 3), payloads);
  text += passes::constant("c", passes::random_payload({1, 2, 1, 1}, 4), payloads);
  auto graph = ir::parse(text + lines, payloads);
  ir::verify(*graph);
  return graph;
}
std::string conv(const std::string& y, const std::string& x) {
  return "%" + y + ": f32[1, 2, 4, 4] = convolution(%" + x +
         ", %w, %b, [1, 1], [1, 1], [1, 1], false, [0], 1)\n";
}
std::string image(const std::string& y, const std::string& call) {
  return "%" + y + ": f32[1, 2, 4, 4] = " + call + "\n";
}

Examples random_examples(size_t count = 3) {
  return Examples(count, [](size_t i) {
    return std::vector{passes::random_tensor({1, 2, 4, 4}, static_cast<unsigned>(i) + 50)};
  });
}

/// Quantizes the graph. It must be valid afterwards, and its outputs must be near those before.
Texts quantized(ir::Graph& graph, const StaticOptions& options = {}, double tolerance = 0.03) {
  const Examples examples = random_examples();
  const std::vector<float> want = passes::run(graph, examples.at(0));
  const Ranges ranges = calibrate(graph, examples, options);
  const StaticResult result = quantize_static(graph, ranges, options);
  ir::verify(graph);
  const std::vector<float> got = passes::run(graph, examples.at(0));
  float most = 0;
  for (const float x : want) most = std::max(most, std::abs(x));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance * most);
  Texts texts;
  for (const Decision& d : result.decisions)
    texts[d.name] = d.quantized ? (d.why.empty() ? "int8" : "int8, " + d.why) : d.why;
  return texts;
}

/// The scale and zero point at which `value` is rounded, as text; "" if it is not.
std::string grid_of(const ir::Graph& graph, const std::string& value) {
  for (const ir::Node& node : graph.nodes())
    if (node.op == &ops::quantized_decomposed_quantize_per_tensor &&
        std::get<ir::Value*>(node.arguments[0])->name == value)
      return std::to_string(std::get<double>(node.arguments[1])) + " " +
             std::get<Dim>(node.arguments[2]).to_string();
  return "";
}

constexpr const char* quantize = "quantized_decomposed::quantize_per_tensor";
constexpr const char* dequantize = "quantized_decomposed::dequantize_per_tensor";
constexpr const char* dequantize_weight = "quantized_decomposed::dequantize_per_channel";

TEST(static_graph, rounds_input_weight_and_result_of_a_convolution) {
  const auto graph = graph_of(conv("y", "x") + "output \"y\" = %y\n");
  quantized(*graph);
  EXPECT_THAT(passes::operators(*graph), ElementsAre(quantize, dequantize_weight, dequantize,
                                                     "convolution", quantize, dequantize));
  EXPECT_EQ(graph->outputs()[0].value->node->op, &ops::quantized_decomposed_dequantize_per_tensor);
  for (const ir::Constant& c : graph->constants())
    EXPECT_TRUE(c.path != "w" || c.payload->dtype == DType::i8);
}

TEST(static_graph, gives_a_weight_one_scale_if_asked) {
  const auto graph = graph_of(conv("y", "x") + "output \"y\" = %y\n");
  quantized(*graph, {.per_channel = false});
  EXPECT_THAT(passes::operators(*graph),
              ElementsAre(quantize, dequantize, dequantize, "convolution", quantize, dequantize));
}

TEST(static_graph, a_limit_joins_the_node_before_it) {
  const auto graph = graph_of(conv("a", "x") + image("y", "relu(%a)") +
                              image("s",
                                    "add.Tensor(%y, "
                                    "%x, 1)") +
                              image("z", "hardtanh(%s, 0, 6)") + "output \"z\" = %z\n");
  const Texts texts = quantized(*graph);
  EXPECT_EQ(texts.at("y"), "int8, joins the node before it");
  EXPECT_EQ(texts.at("z"), "int8, joins the node before it");
  EXPECT_EQ(grid_of(*graph, "a"), "");
  EXPECT_EQ(grid_of(*graph, "s"), "");
  EXPECT_THAT(grid_of(*graph, "y"), HasSubstr(" -128"));
}

TEST(static_graph, a_limit_does_not_join_a_node_that_others_read) {
  const auto graph = graph_of(conv("a", "x") + image("y", "relu(%a)") +
                              image("z", "add.Tensor(%a, %y, 1)") + "output \"z\" = %z\n");
  EXPECT_EQ(quantized(*graph).at("y"), "int8, has the scale of its input");
  EXPECT_EQ(grid_of(*graph, "a"), grid_of(*graph, "y"));
}

TEST(static_graph, sums_have_scales_of_their_own_and_moves_have_those_of_their_inputs) {
  const auto graph =
      graph_of(conv("a", "x") + image("s", "add.Tensor(%a, %x, 1)") +
               "%p: f32[1, 2, 2, 2] = max_pool2d(%s, [2, 2], [], [0, 0], [1, 1], false)\n"
               "%q: f32[1, 2, 4, 4] = constant_pad_nd(%p, [1, 1, 1, 1], 0.0)\n"
               "%t: f32[1, 4, 4, 4] = cat([%q, %a], 1)\n"
               "%v: f32[1, 64] = view(%t, [1, 64])\noutput \"v\" = %v\n");
  quantized(*graph);
  EXPECT_NE(grid_of(*graph, "x"), grid_of(*graph, "a"));
  for (const char* name : {"s", "p", "q", "t", "v"})  // cat joins the groups of s and a
    EXPECT_EQ(grid_of(*graph, name), grid_of(*graph, "a")) << name;
}

TEST(static_graph, views_of_rounded_values_look_at_dense_memory) {
  const auto graph = graph_of(conv("a", "x") +
                              "%p: f32[1, 4, 4, 2] strides [32, 4, 1, 16] = permute(%a, [0, 2, 3, "
                              "1])\n"
                              "%s: f32[1, 4, 4] strides [32, 4, 1] offset 16 = select.int(%p, 3, "
                              "1)\noutput \"s\" = %s\n");
  quantized(*graph);  // verifies the types
  EXPECT_EQ(grid_of(*graph, "p"), grid_of(*graph, "s"));
}

TEST(static_graph, quantizes_matrix_products_through_transposing_views) {
  const auto graph = graph_of(
      "%v: f32[1, 32] = view(%x, [1, 32])\n%t: f32[32, 8] strides [1, 32] = permute(%fc, [1, 0])\n"
      "%y: f32[1, 8] = mm(%v, %t)\noutput \"y\" = %y\n");
  const Texts texts = quantized(*graph);
  EXPECT_EQ(texts.at("y"), "int8");
  EXPECT_EQ(texts.at("v"), "its input is float");
  EXPECT_FALSE(texts.contains("t"));
  EXPECT_THAT(passes::operators(*graph), ElementsAre("view", quantize, dequantize_weight, "permute",
                                                     dequantize, "mm", quantize, dequantize));
}

TEST(static_graph, leaves_the_weight_of_a_float_node_as_it_was) {
  const auto graph = graph_of(
      "%v: f32[1, 32] = view(%x, [1, 32])\n%t: f32[32, 8] strides [1, 32] = permute(%fc, [1, 0])\n"
      "%y: f32[1, 8] = mm(%v, %t)\n%z: f32[1, 8] = mm(%v, %t)\n%u: f32[1, 8] = mm(%v, %t)\n"
      "output \"z\" = %z\noutput \"y\" = %y\noutput \"u\" = %u\n");
  const Tensor x = random_examples().at(0)[0];
  const std::vector<float> want = passes::run(*graph, {x});
  const Texts texts = quantized(*graph, {.exclude = {"z"}});
  EXPECT_EQ(texts.at("y"), "int8");
  EXPECT_EQ(texts.at("u"), "int8");
  passes::expect_same_bits(passes::run(*graph, {x}), want);
}

TEST(static_graph, a_constant_operand_becomes_integers) {
  const auto graph =
      graph_of(conv("a", "x") + image("y", "mul.Tensor(%a, %c)") + "output \"y\" = %y\n");
  quantized(*graph);
  int integers = 0;
  for (const ir::Constant& c : graph->constants())
    integers += c.path == "c" && c.payload->dtype == DType::i8;
  EXPECT_EQ(integers, 1);
}

TEST(static_graph, knows_the_ranges_of_bounded_functions) {
  const auto graph =
      graph_of(conv("a", "x") + image("y", "sigmoid(%a)") + image("z", "mul.Tensor(%a, %y)") +
               image("t", "tanh(%z)") + conv("o", "t") + "output \"o\" = %o\n");
  quantized(*graph, {}, 0.06);
  EXPECT_EQ(grid_of(*graph, "y"), "0.003906 -128");
  EXPECT_EQ(grid_of(*graph, "t"), "0.007812 0");
}

TEST(static_graph, says_why_nodes_stay_float) {
  const auto graph =
      graph_of(image("n", "cos(%x)") + image("m", "relu(%n)") + conv("a", "m") +
               image("d", "div.Tensor(%a, %x)") + image("f", "add.Tensor(%a, %d, 2)") +
               image("y", "sigmoid(%f)") + "output \"y\" = %y\n");
  const Texts texts = quantized(*graph);
  EXPECT_EQ(texts.at("n"), "there is no int8 form of cos");
  EXPECT_EQ(texts.at("m"), "its input is float");
  EXPECT_EQ(texts.at("a"), "int8");
  EXPECT_EQ(texts.at("d"), "there is no int8 form of div.Tensor");
  EXPECT_EQ(texts.at("f"), "it multiplies an operand by a factor");
  EXPECT_EQ(texts.at("y"), "its result is an output of the model");
}

TEST(static_graph, excludes_nodes_by_patterns) {
  const auto make = [] {
    return graph_of(conv("a", "x") + conv("b1", "a") + "output \"y\" = %b1\n");
  };
  const auto graph = make();
  const Texts texts = quantized(*graph, {.exclude = {"b?"}});
  EXPECT_EQ(texts.at("a"), "int8");
  EXPECT_EQ(texts.at("b1"), "excluded by \"b?\"");
  const auto other = make();
  EXPECT_EXPORT_ERROR(calibrate(*other, random_examples(), {.exclude = {"fc*"}}),
                      "nothing is excluded by \"fc*\": it fits no module, operator or result");
  EXPECT_EXPORT_ERROR(calibrate(*other, random_examples(), {.exclude = {"conv*"}}),
                      "f: there is nothing to quantize: convolution is excluded by \"conv*\"");
}

TEST(static_graph, needs_the_ranges_of_its_own_options) {
  const auto graph = graph_of(conv("a", "x") + conv("b1", "a") + "output \"y\" = %b1\n");
  const Ranges ranges = calibrate(*graph, random_examples(), {.exclude = {"b1"}});
  EXPECT_EXPORT_ERROR(quantize_static(*graph, ranges, {}), "there is no range for %b1");
}

TEST(static_graph, makes_the_scale_of_a_weight_larger_for_a_large_bias) {
  ir::Payloads payloads;
  std::string text = "graph f\ninput \"x\" = %x: f32[1, 4]\n";
  text +=
      passes::constant("w", ir::Payload::from<float>({1e-3f, 2e-3f, 1e-3f, 0}, {1, 4}), payloads);
  text += passes::constant("b", ir::Payload::from<float>({1e6f}, {1}), payloads);
  const auto graph =
      ir::parse(text + "%y: f32[1, 1] = linear(%x, %w, %b)\noutput \"y\" = %y\n", payloads);
  const Examples examples(1, [](size_t) {
    return std::vector{Tensor::from<float>({1e-3f, 0, -1e-3f, 1e-3f}, {1, 4})};
  });
  const Ranges ranges = calibrate(*graph, examples, {});
  const StaticResult result = quantize_static(*graph, ranges, {});
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_THAT(result.warnings[0], HasSubstr("1 scale of the weight grew"));
  EXPECT_THAT(result.warnings[0], HasSubstr("32 bits would not hold the bias"));
  EXPECT_NEAR(passes::run(*graph, examples.at(0))[0], 1e6f, 4000);
}

TEST(calibration, refuses_what_it_cannot_learn_from) {
  const auto graph = graph_of(conv("a", "x") + "output \"y\" = %a\n");
  EXPECT_EXPORT_ERROR(calibrate(*graph, Examples(), {}),
                      "f: there is no calibration data; give at least one example");
  const auto with = [&](Tensor x) {
    return Examples(2, [x](size_t i) {
      return std::vector{i == 0 ? passes::random_tensor({1, 2, 4, 4}, 1) : x};
    });
  };
  EXPECT_EXPORT_ERROR(calibrate(*graph, with(Tensor::empty({1, 3, 4, 4})), {}),
                      "example 1: f: input x must be f32[1, 2, 4, 4], not (1, 3, 4, 4)");
  const Tensor bad = passes::random_tensor({1, 2, 4, 4}, 2);
  bad.data<float>()[5] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EXPORT_ERROR(calibrate(*graph, with(bad), {}), "example 1: %x, is NaN in element 5");
  Tensor(bad).fill_(3e38);
  EXPECT_EXPORT_ERROR(calibrate(*graph, with(bad), {}), "example 1: %a, convolution, is infinite");
}

TEST(calibration, refuses_models_without_products_and_quantized_ones) {
  const auto graph = graph_of(image("y", "cos(%x)") + "output \"y\" = %y\n");
  EXPECT_EXPORT_ERROR(calibrate(*graph, random_examples(), {}),
                      "the model has no convolution or linear layer whose weight is a constant");
  const auto twice = graph_of(conv("a", "x") + "output \"y\" = %a\n");
  quantized(*twice);
  EXPECT_EXPORT_ERROR(calibrate(*twice, random_examples(), {}),
                      "f: the model is quantized already: it has quantized_decomposed::");
}

TEST(prepare_static, brings_relus_before_pools_and_finds_those_that_look_like_others) {
  const auto graph = graph_of(conv("a", "x") +
                              "%p: f32[1, 2, 2, 2] = max_pool2d(%a, [2, 2], [], [0, 0], [1, 1], "
                              "false)\n%y: f32[1, 2, 2, 2] = leaky_relu(%p, 0.0)\n"
                              "%z: f32[1, 2, 2, 2] = leaky_relu(%y, 0.5)\noutput \"z\" = %z\n");
  const std::vector<float> want = passes::run(*graph, random_examples().at(0));
  prepare_static(*graph);
  ir::verify(*graph);
  EXPECT_THAT(passes::operators(*graph),
              ElementsAre("convolution", "relu", "max_pool2d", "leaky_relu"));
  passes::expect_same_bits(passes::run(*graph, random_examples().at(0)), want);
}

TEST(calibration, warns_of_activations_that_never_change) {
  const auto graph = graph_of(conv("a", "x") + "output \"y\" = %a\n");
  const Examples zeros(2, [](size_t) {
    Tensor x = Tensor::empty({1, 2, 4, 4});
    x.zero_();
    return std::vector{x};
  });
  const Ranges ranges = calibrate(*graph, zeros, {});
  ASSERT_EQ(ranges.warnings.size(), 1u);
  EXPECT_THAT(ranges.warnings[0], HasSubstr("%x, is always 0"));
}

TEST(calibration, tells_how_far_it_is) {
  const auto graph = graph_of(conv("a", "x") + "output \"y\" = %a\n");
  std::vector<std::pair<size_t, size_t>> seen;
  calibrate(*graph, random_examples(2), {.correct_bias = true},
            [&](size_t done, size_t all) { seen.emplace_back(done, all); });
  EXPECT_THAT(seen,
              ElementsAre(std::pair(1, 4), std::pair(2, 4), std::pair(3, 4), std::pair(4, 4)));
}

TEST(bias_correction, brings_the_means_of_channels_back) {
  const auto mean_error = [](bool corrected) {
    const auto graph = graph_of(conv("a", "x") + "output \"y\" = %a\n");
    const auto before = graph_of(conv("a", "x") + "output \"y\" = %a\n");
    // Values of one sign make the error of rounded weights a shift.
    const Examples examples(8, [](size_t i) {
      return std::vector{ir::tensor_of(
          passes::random_payload({1, 2, 4, 4}, static_cast<unsigned>(i), 0.0f, 40.0f))};
    });
    const StaticOptions options{.per_channel = false, .correct_bias = corrected};
    const Ranges ranges = calibrate(*graph, examples, options);
    EXPECT_EQ(ranges.bias_shifts.size(), corrected ? 1u : 0u);
    quantize_static(*graph, ranges, options);
    double sum = 0;
    for (size_t i = 0; i < examples.count; ++i) {
      const auto got = passes::run(*graph, examples.at(i)),
                 want = passes::run(*before, examples.at(i));
      for (size_t k = 0; k < 16; ++k) sum += got[k] - want[k];
    }
    return std::abs(sum / 128);
  };
  EXPECT_LT(mean_error(true), mean_error(false) / 2);
}

TEST(bias_correction, gives_a_bias_to_products_that_have_none) {
  const auto graph = graph_of(
      "%v: f32[1, 32] = view(%x, [1, 32])\n%y: f32[1, 8] = linear(%v, %fc, none)\n"
      "output \"y\" = %y\n");
  const Ranges ranges = calibrate(*graph, random_examples(), {.per_channel = false});
  quantize_static(*graph, ranges, {.per_channel = false});
  ir::verify(*graph);
  const std::vector<float>& shift = ranges.bias_shifts.at("y");
  int found = 0;
  for (const ir::Constant& c : graph->constants())
    found += c.path == "bias" && ir::tensor_of(c.payload).to_vector<float>() == shift;
  EXPECT_EQ(found, 1);
}

TEST(decisions, are_printed_with_reasons) {
  std::ostringstream text;
  print(text, {{"a", "convolution (conv1)", true, ""}, {"n", "cos at net.py:3", false, "why"}});
  EXPECT_EQ(text.str(), "1 of 2 nodes in int8; float are:\n  %n, cos at net.py:3: why\n");
}

}  // namespace
}  // namespace taper::quantize
