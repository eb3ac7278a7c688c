// What becomes of a graph.
#include <cmath>
#include <limits>
#include <sstream>

#include "changed.h"

namespace taper::quantize {
namespace {

using passes::operators;
using passes::random_tensor;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(quantize, puts_the_weight_of_a_linear_layer_into_blocks) {
  const Changed c(linear_model(20, 64), int8(), {random_tensor({3, 64}, 3)}, 0.01);
  EXPECT_THAT(operators(*c.graph), ElementsAre("linear"));
  EXPECT_THAT(c.layouts(), ElementsAre(Layout::dense, Layout::q8_0));
  EXPECT_EQ(c.graph->outputs()[0].value->name, "y");
  ASSERT_EQ(c.report.weights.size(), 1u);
  const WeightReport& w = c.report.weights[0];
  EXPECT_EQ(w.path, "w");
  EXPECT_EQ(w.bytes_before, 20 * 64 * 4);
  EXPECT_EQ(w.bytes_after, 20 * 2 * 34);
  EXPECT_EQ(w.scheme, "q8_0 nearest");
  EXPECT_GT(w.measure.sqnr_db(), 40);
  EXPECT_GT(w.measure.cosine(), 0.9999);
  EXPECT_DOUBLE_EQ(c.report.bits(), 8.5);
}

TEST(quantize, lets_the_recipe_choose_the_products) {
  const Model model = linear_model(20, 64);
  const auto operator_for = [&](const char* activations) {
    const Recipe recipe =
        recipe_of(R"({"weights": "int8", "activations": ")" + std::string(activations) + "\"}");
    const Changed c(model, recipe, {random_tensor({3, 64}, 3)}, 0.02);
    return operators(*c.graph).at(0);
  };
  EXPECT_EQ(operator_for("as-exported"), "linear");
  EXPECT_EQ(operator_for("float"), "taper::block_linear");
  EXPECT_EQ(operator_for("int8-dynamic"), "taper::block_linear_q8");
}

TEST(quantize, puts_weights_into_floats_of_a_few_bits) {
  const std::tuple<const char*, Layout, double, double> formats[] = {
      {"nf4", Layout::nf4, 4.25, 0.15},
      {"mxfp4", Layout::mxfp4, 4.25, 0.2},
      {"mxfp6_e2m3", Layout::mxfp6_e2m3, 6.25, 0.05},
      {"mxfp6_e3m2", Layout::mxfp6_e3m2, 6.25, 0.1},
      {"mxfp8_e4m3", Layout::mxfp8_e4m3, 8.25, 0.05},
      {"mxfp8_e5m2", Layout::mxfp8_e5m2, 8.25, 0.1}};
  for (const auto& [name, layout, bits, tolerance] : formats) {
    SCOPED_TRACE(name);
    const Recipe recipe = recipe_of(R"({"weights": ")" + std::string(name) + "\"}");
    const Changed c(linear_model(20, 64), recipe, {random_tensor({3, 64}, 3)}, tolerance);
    EXPECT_THAT(c.layouts(), ElementsAre(Layout::dense, layout));
    EXPECT_DOUBLE_EQ(c.report.bits(), bits);
    EXPECT_EQ(c.report.weights[0].scheme, std::string(name) + " mse");
    const Changed padded(linear_model(20, 76), recipe, {random_tensor({3, 76}, 3)}, tolerance);
    EXPECT_EQ(padded.report.weights[0].padded_to, layout == Layout::nf4 ? 128 : 96);
  }
}

TEST(quantize, pads_rows_that_are_no_multiple_of_a_block) {
  const Changed c(linear_model(20, 44), int8(), {random_tensor({3, 44}, 3)}, 0.01);
  EXPECT_THAT(operators(*c.graph), ElementsAre("constant_pad_nd", "linear"));
  EXPECT_EQ(c.report.weights[0].padded_to, 64);
  EXPECT_EQ(c.graph->constants().back().payload->sizes, (std::vector<int64_t>{20, 64}));
}

TEST(quantize, takes_the_first_format_that_fits) {
  const Recipe recipe = recipe_of(R"({"weights": ["q4_k", "q4_1"]})");
  const auto layout = [&](int64_t depth) {
    return Changed(linear_model(8, depth), recipe, {random_tensor({3, depth}, 3)}, 0.3)
        .layouts()
        .back();
  };
  EXPECT_EQ(layout(256), Layout::q4_k);
  EXPECT_EQ(layout(128), Layout::q4_1);
  EXPECT_EQ(layout(100), Layout::q4_1) << "with zeros";
  EXPECT_THAT(refusal(linear_model(8, 100), recipe_of("\"q4_k\"")),
              HasSubstr("its rows are no multiple of 256, the block of q4_k"));
}

TEST(quantize, makes_linear_layers_of_products) {
  Model m;
  m.add("w", random_payload({64, 20}, 1))
      .add("v", random_payload({20, 64}, 2))
      .add("b", random_payload({20}, 4));
  m.nodes =
      "input \"x\" = %x: f32[3, 64]\n"
      "%p: f32[3, 20] = mm(%x, %w)\n"
      "%t: f32[64, 20] strides [1, 64] = permute(%v, [1, 0])\n"
      "%q: f32[3, 20] = addmm(%b, %x, %t, 1, 1)\n"
      "%y: f32[3, 20] = add.Tensor(%p, %q, 1)\noutput \"y\" = %y\n";
  const Changed c(m, int8(), {random_tensor({3, 64}, 3)}, 0.01);
  EXPECT_THAT(operators(*c.graph), ElementsAre("linear", "linear", "add.Tensor"));
  EXPECT_THAT(c.layouts(), ElementsAre(Layout::dense, Layout::q8_0, Layout::q8_0));
}

TEST(quantize, keeps_a_weight_that_is_shared_one_constant) {
  Model m;
  m.add("w", random_payload({20, 64}, 1));
  m.nodes =
      "input \"i\" = %i: i64[3]\n"
      "%x: f32[3, 64] = embedding(%w, %i, -1, false, false)\n"
      "%y: f32[3, 20] = linear(%x, %w, none)\noutput \"y\" = %y\n";
  const Changed c(m, int8(), {eager::arange(3)}, 0.01);
  EXPECT_THAT(operators(*c.graph), ElementsAre("embedding", "linear"));
  EXPECT_THAT(c.layouts(), ElementsAre(Layout::q8_0));
  // methods of one program share it, too
  const std::unique_ptr<ir::Graph> a = m.graph(), b = m.graph();
  const Report both = quantize({a.get(), b.get()}, int8());
  EXPECT_EQ(both.weights.size(), 1u);
  EXPECT_EQ(a->constants().front().payload, b->constants().front().payload);
}

TEST(quantize, reads_weights_that_are_stored_in_halves) {
  Model m;
  std::vector<Half> halves;
  for (int i = 0; i < 20 * 64; ++i) halves.emplace_back(std::sin(static_cast<float>(i)));
  m.add("w", ir::Payload::copy(DType::f16, {20, 64}, halves.data()));
  m.nodes =
      "input \"x\" = %x: f32[3, 64]\n"
      "%v: f32[20, 64] = _to_copy(%w, f32)\n"
      "%y: f32[3, 20] = linear(%x, %v, none)\noutput \"y\" = %y\n";
  const Changed c(m, int8(), {random_tensor({3, 64}, 3)}, 0.01);
  EXPECT_THAT(operators(*c.graph), ElementsAre("linear"));
  EXPECT_THAT(c.layouts(), ElementsAre(Layout::q8_0));
}

TEST(quantize, leaves_what_is_read_in_another_way) {
  Model m = linear_model(20, 64);
  m.add("v", random_payload({20, 20}, 5)).add("u", random_payload({4, 3, 3, 3}, 6));
  m.nodes =
      "input \"x\" = %x: f32[3, 64]\ninput \"z\" = %z: f32[1, 3, 5, 5]\n"
      "%l: f32[3, 20] = linear(%x, %w, %b)\n"
      "%p: f32[3, 20] = linear(%l, %v, none)\n"
      "%s: f32[20, 20] = relu(%v)\n"
      "%c: f32[1, 4, 3, 3] = convolution(%z, %u, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)\n"
      "output \"y\" = %p\noutput \"s\" = %s\noutput \"c\" = %c\n";
  const std::unique_ptr<ir::Graph> graph = m.graph();
  const Report report = quantize({graph.get()}, int8());
  ASSERT_EQ(report.weights.size(), 3u);
  EXPECT_TRUE(report.weights[0].is_quantized());
  EXPECT_EQ(report.weights[1].why, "relu reads it as f32");
  EXPECT_EQ(report.weights[2].why, "no kernel reads weights of convolutions in blocks");
  std::ostringstream text;
  text << report;
  EXPECT_THAT(text.str(), HasSubstr("left 1 weight, 1.6 kB: relu reads it as f32"));
}

TEST(quantize, uses_the_first_rule_that_matches) {
  Model m;
  m.add("fc1.weight", random_payload({64, 64}, 1))
      .add("fc2.weight", random_payload({64, 64}, 2))
      .add("fc3.weight", random_payload({64, 64}, 3));
  m.nodes =
      "input \"x\" = %x: f32[3, 64]\n"
      "%a: f32[3, 64] = linear(%x, %fc1.weight, none) @ \"m.py\" 1 \"f\" in \"fc1\"\n"
      "%b: f32[3, 64] = linear(%a, %fc2.weight, none) @ \"m.py\" 2 \"f\" in \"fc2\"\n"
      "%c: f32[3, 64] = linear(%b, %fc3.weight, none) @ \"m.py\" 3 \"f\" in \"fc3\"\n"
      "output \"y\" = %c\n";
  const Recipe recipe = parse_recipe(
      R"([{"match": "first", "scheme": "q8_0"}, {"match": "fc2", "scheme": "q5_1"},
          {"match": "nothing*", "scheme": "q4_0"}, {"match": "linear", "scheme": "q4_1"}])",
      "recipe");
  const Changed c(m, recipe, {random_tensor({3, 64}, 3)}, 0.2);
  EXPECT_THAT(c.layouts(), ElementsAre(Layout::q8_0, Layout::q5_1, Layout::q4_1));
  EXPECT_THAT(c.report.notes, ElementsAre("the rule for \"nothing*\" decided about no weight"));
}

TEST(quantize, learns_from_calibration_data) {
  const Model model = linear_model(20, 64);
  const Recipe gptq = recipe_of(R"({"weights": "int4", "method": "gptq"})");
  Options options;
  // inputs that are strongly correlated
  const eager::Tensor mix = random_tensor({4, 64}, 9);
  options.samples = {20, [&](size_t i) {
                       const auto seed = static_cast<unsigned>(i);
                       return std::vector{eager::mm(random_tensor({3, 4}, seed), mix)};
                     }};
  const auto output_db = [&](const Recipe& recipe) {
    const Changed c(model, recipe, options.samples.at(0), 0.2, options);
    return c.report.weights[0].measure.output_sqnr_db();
  };
  EXPECT_GT(output_db(gptq), output_db(recipe_of(R"({"weights": "int4", "method": "mse"})")) + 5);
  EXPECT_EQ(Changed(model, recipe_of("\"int4\""), options.samples.at(0), 0.2, options)
                .report.weights[0]
                .scheme,
            "q4_1 gptq");
  EXPECT_THAT(refusal(model, gptq), HasSubstr("weight w: the method gptq needs calibration data"));
}

/// Layers that follow each other.
struct Chain {
  std::vector<std::shared_ptr<const ir::Payload>> weights;  ///< in the order of their uses
  std::vector<bool> is_transposed;                          ///< stored so
  std::string nodes;
  std::vector<eager::Tensor> inputs;

  /// The list of constants begins with the last one.
  std::unique_ptr<ir::Graph> graph() const {
    Model m;
    for (size_t i = weights.size(); i-- > 0;) m.add("w" + std::to_string(i), weights[i]);
    m.nodes = nodes;
    return m.graph();
  }
  /// The blocks of each weight.
  std::vector<std::shared_ptr<const ir::Payload>> quantized(const std::string& more) const {
    const std::unique_ptr<ir::Graph> g = graph();
    Options options;
    options.samples = Examples({inputs});
    quantize({g.get()},
             recipe_of(R"({"weights": "q3_z", "method": "gptq", "widen": true)" + more + "}"),
             options);
    std::vector<std::shared_ptr<const ir::Payload>> blocks(weights.size());
    for (const ir::Constant& c : g->constants())
      if (c.payload->layout == Layout::q3_z)
        blocks.at(static_cast<size_t>(c.path.at(1) - '0')) = c.payload;
    return blocks;
  }
  /// Puts the numbers of blocks in the place of a weight.
  void round(size_t i, const std::shared_ptr<const ir::Payload>& blocks) {
    const std::vector<int64_t> sizes = weights[i]->sizes;
    int64_t depth = 1;
    for (size_t d = 1; d < sizes.size(); ++d) depth *= sizes[d];
    if (sizes.size() == 3) depth = sizes[is_transposed[i] ? 1 : 2];
    if (sizes.size() == 2) depth = sizes[is_transposed[i] ? 0 : 1];
    eager::Tensor t = ir::tensor_of(blocks).slice(-1, 0, depth).contiguous();
    if (is_transposed[i]) t = t.transpose(-2, -1).contiguous();
    weights[i] = ir::payload_of(t.reshape({sizes.begin(), sizes.end()}));
  }
};

std::vector<std::byte> bytes_of(const ir::Payload& p) {
  return {p.bytes.get(), p.bytes.get() + p.size_bytes};
}

/// Each weight is what it becomes in a model whose other weights were rounded by hand.
TEST(quantize, learns_behind_weights_that_are_rounded_if_the_recipe_says_so) {
  const Chain products{
      {random_payload({40, 64}, 1), random_payload({40, 48}, 2), random_payload({8, 48}, 3)},
      {false, true, false},
      "input \"x\" = %x: f32[16, 64]\n%a: f32[16, 40] = linear(%x, %w0, none)\n"
      "%b: f32[16, 48] = mm(%a, %w1)\n%y: f32[16, 8] = linear(%b, %w2, none)\n"
      "output \"y\" = %y\n",
      {random_tensor({16, 64}, 4)}};
  const Chain stack{
      {random_payload({40, 64}, 1), random_payload({3, 40, 48}, 2), random_payload({8, 48}, 3)},
      {false, true, false},
      "input \"x\" = %x: f32[16, 64]\ninput \"ends\" = %ends: i32[3]\n"
      "%a: f32[16, 40] = linear(%x, %w0, none)\n"
      "%b: f32[16, 48] = _grouped_mm(%a, %w1, %ends, none, none)\n"
      "%y: f32[16, 8] = linear(%b, %w2, none)\noutput \"y\" = %y\n",
      {random_tensor({16, 64}, 4), eager::Tensor::from(std::vector<int32_t>{5, 9, 16}, {3})}};
  const std::string same = ", none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)\n";
  const Chain convolutions{{random_payload({6, 3, 3, 3}, 1), random_payload({4, 6, 3, 3}, 2)},
                           {false, false},
                           "input \"x\" = %x: f32[2, 3, 9, 9]\n"
                           "%a: f32[2, 6, 9, 9] = convolution(%x, %w0" +
                               same + "%y: f32[2, 4, 9, 9] = convolution(%a, %w1" + same +
                               "output \"y\" = %y\n",
                           {random_tensor({2, 3, 9, 9}, 4)}};
  for (const Chain& chain : {products, stack, convolutions}) {
    const auto in_turn = chain.quantized(R"(, "sequential": true)"), apart = chain.quantized("");
    Chain by_hand = chain;
    for (size_t i = 0; i < chain.weights.size(); ++i) {
      SCOPED_TRACE(chain.nodes + "weight " + std::to_string(i));
      ASSERT_NE(in_turn[i], nullptr);
      EXPECT_EQ(bytes_of(*in_turn[i]), bytes_of(*by_hand.quantized("")[i]));
      EXPECT_EQ(bytes_of(*in_turn[i]) == bytes_of(*apart[i]), i == 0);
      by_hand.round(i, in_turn[i]);
    }
  }
  EXPECT_THAT(
      refusal(linear_model(20, 64), recipe_of(R"({"weights": "q4_0", "sequential": true})")),
      HasSubstr("\"sequential\" needs calibration data"));
}

/// Of a weight that was pruned: every other element is zero.
TEST(quantize, keeps_zeros_where_the_format_has_one) {
  const auto whole = random_payload({8, 40}, 1);
  std::vector<float> elements = ir::tensor_of(whole).to_vector<float>();
  for (size_t i = 0; i < elements.size(); i += 2) elements[i] = 0;
  Model model;
  model.add("w", ir::Payload::from(elements, {8, 40})).add("b", random_payload({8}, 2));
  model.nodes =
      "input \"x\" = %x: f32[64, 40]\n%y: f32[64, 8] = linear(%x, %w, %b)\noutput \"y\" = %y\n";
  Options options;
  options.samples = Examples({{random_tensor({64, 40}, 4)}});
  const auto report_of = [&](const std::string& scheme) {
    const std::unique_ptr<ir::Graph> graph = model.graph();
    return quantize({graph.get()}, recipe_of(scheme), options);
  };
  for (const char* scheme : {R"({"weights": "q4_0", "method": "gptq"})",
                             R"({"weights": "q4_0", "method": "gptq-act-order"})",
                             R"({"weights": "q5_0", "method": "mse"})", "\"int8\""}) {
    const Report report = report_of(scheme);
    EXPECT_EQ(report.weights[0].measure.zeros, 160) << scheme;  // without those that fill up rows
    EXPECT_EQ(report.weights[0].measure.lost, 0) << scheme;
    EXPECT_THAT(report.notes, testing::IsEmpty());
  }
  const Report report = report_of(R"({"weights": "q4_1", "method": "mse"})");
  EXPECT_GT(report.weights[0].measure.lost, 80);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes[0], HasSubstr("of 160 zeros of w are none in q4_1 mse"));
}

/// Rows of 40 elements, which fill up blocks of 64.
TEST(quantize, warns_of_fewer_inputs_than_a_row_has_elements) {
  const auto notes_for = [](int64_t inputs) {
    const std::string count = std::to_string(inputs);
    Model model;
    model.add("w", random_payload({8, 40}, 1)).add("b", random_payload({8}, 2));
    model.nodes = "input \"x\" = %x: f32[" + count + ", 40]\n%y: f32[" + count +
                  ", 8] = linear(%x, %w, %b)\noutput \"y\" = %y\n";
    Options options;
    options.samples = Examples({{random_tensor({inputs, 40}, 4)}});
    const std::unique_ptr<ir::Graph> graph = model.graph();
    return quantize({graph.get()}, recipe_of(R"({"weights": "q4_0", "method": "gptq"})"), options)
        .notes;
  };
  EXPECT_THAT(notes_for(40), testing::IsEmpty());
  EXPECT_THAT(notes_for(39),
              ElementsAre(HasSubstr("1 weight learned from fewer rows than a row has elements, "
                                    "such as 39 rows for 40")));
}

/// No kernel reads weights of convolutions in blocks.
TEST(quantize, widens_weights_of_convolutions_if_the_recipe_says_so) {
  Model m;
  m.add("conv.weight", random_payload({6, 3, 3, 3}, 1)).add("b", random_payload({6}, 2));
  m.nodes =
      "input \"x\" = %x: f32[2, 3, 9, 9]\n"
      "%y: f32[2, 6, 9, 9] = convolution(%x, %conv.weight, %b, [1, 1], [1, 1], [1, 1], false, [0, "
      "0], 1)\noutput \"y\" = %y\n";
  const std::vector<eager::Tensor> x = {random_tensor({2, 3, 9, 9}, 3)};
  EXPECT_THAT(refusal(m, int8()), HasSubstr("no kernel reads weights of convolutions in blocks"));
  Options options;
  options.samples = Examples({x});
  for (const char* weights : {"q8_0", "q4_1"}) {
    const Changed c(m,
                    recipe_of("{\"weights\": \"" + std::string(weights) + "\", \"widen\": true}"),
                    x, 0.2, options);
    EXPECT_THAT(operators(*c.graph), ElementsAre("taper::block_embedding", "slice.Tensor", "clone",
                                                 "view", "convolution"));
    EXPECT_EQ(c.report.weights[0].padded_to, 32);
    EXPECT_THAT(c.report.weights[0].scheme, HasSubstr(", widened"));
    EXPECT_LT(c.report.weights[0].bytes_after, c.report.weights[0].bytes_before / 3);
  }
  // the results are those of the numbers that the report is about
  const Changed c(m, recipe_of(R"({"weights": "q8_0", "widen": true})"), x, 0.01);
  EXPECT_GT(c.report.weights[0].measure.sqnr_db(), 40);
}

TEST(quantize, widens_what_is_read_both_ways) {
  Model m;
  m.add("w", random_payload({16, 16}, 1));
  m.nodes =
      "input \"x\" = %x: f32[3, 16]\n"
      "%y: f32[3, 16] = linear(%x, %w, none)\n"
      "%z: f32[3, 16] = mm(%y, %w)\noutput \"z\" = %z\n";
  EXPECT_THAT(refusal(m, int8()), HasSubstr("both as it is and transposed"));
  const Changed c(m, recipe_of(R"({"weights": "int8", "widen": true})"),
                  {random_tensor({3, 16}, 3)}, 0.02);
  EXPECT_THAT(operators(*c.graph), ElementsAre("taper::block_embedding", "slice.Tensor", "clone",
                                               "view", "linear", "mm"));
}

/// The zeros that fill up rows do not keep readers from a view of the weight.
TEST(quantize, widens_what_a_view_merges) {
  Model m;
  m.add("w", random_payload({4, 4, 3}, 1));
  m.nodes =
      "input \"x\" = %x: f32[1, 5, 16]\n"
      "%v: f32[1, 16, 3] = view(%w, [1, 16, 3])\n"
      "%y: f32[1, 5, 3] = bmm(%x, %v)\noutput \"y\" = %y\n";
  const Changed c(m, recipe_of(R"({"weights": "int8", "widen": true})"),
                  {random_tensor({1, 5, 16}, 3)}, 0.02);
  EXPECT_THAT(operators(*c.graph), ElementsAre("taper::block_embedding", "slice.Tensor", "clone",
                                               "view", "view", "bmm"));
}

/// The positions of affine_grid, which no one trained, stand where other products have their input.
TEST(quantize, leaves_computed_inputs_of_products) {
  Model m;
  m.add("grid", random_payload({4, 4, 8}, 1));
  m.constants.replace(m.constants.find("\"grid\""), 6, "\"\"");  // it has no name
  m.nodes =
      "input \"t\" = %t: f32[1, 8, 2]\n"
      "%v: f32[1, 16, 8] = view(%grid, [1, 16, 8])\n"
      "%y: f32[1, 16, 2] = bmm(%v, %t)\noutput \"y\" = %y\n";
  for (const Recipe& recipe :
       {recipe_of(R"({"weights": "int8", "widen": true})"), recipe_of("\"f8_e4m3fn\"")})
    EXPECT_THAT(refusal(m, recipe), HasSubstr("no weights of products"));
}

TEST(quantize, leaves_adapters_as_they_are) {
  Model m;
  m.add("w", random_payload({64, 64}, 1));
  m.add("lora_down", random_payload({32, 64}, 2)).add("lora_up", random_payload({64, 32}, 3));
  m.nodes =
      "input \"x\" = %x: f32[3, 64]\n%y: f32[3, 64] = linear(%x, %w, none)\n"
      "%d: f32[3, 32] = linear(%x, %lora_down, none)\n"
      "%u: f32[3, 64] = linear(%d, %lora_up, none)\n"
      "%z: f32[3, 64] = add.Tensor(%y, %u, 1)\noutput \"z\" = %z\n";
  for (const Recipe& recipe : {int8(), recipe_of("\"f8_e4m3fn\"")}) {
    const Changed c(m, recipe, {random_tensor({3, 64}, 4)}, 0.05);
    for (const WeightReport& w : c.report.weights)
      EXPECT_EQ(w.why, w.path == "w" ? "" : "it is of an adapter, which stays as it is") << w.path;
  }
}

TEST(quantize, refuses_what_would_make_a_bad_model) {
  EXPECT_THAT(refusal(linear_model(20, 64), recipe_of("\"int8\"", "conv*")),
              HasSubstr("matches no weight of the model, such as w"));
  EXPECT_THAT(refusal(linear_model(20, 64), recipe_of("\"float\"")),
              HasSubstr("quantizes nothing: the recipe leaves it as float"));
  Model none;
  none.nodes = "input \"x\" = %x: f32[3]\n%y: f32[3] = relu(%x)\noutput \"y\" = %y\n";
  EXPECT_THAT(refusal(none, int8()), HasSubstr("no weights of products or look-ups"));
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    Model m = linear_model(1, 64);
    std::vector<float> elements(64, 1);
    elements[5] = bad;
    m.constants.clear();
    m.add("w", ir::Payload::from(elements, {1, 64})).add("b", random_payload({1}, 2));
    EXPECT_THAT(refusal(m, int8()), HasSubstr("weight w: element (0, 5) is "));
  }
  EXPECT_THAT(refusal(linear_model(20, 64), find_recipe("int8")),
              HasSubstr("static activations are those of quantize_static"));
  Options options;
  options.samples = {1, [](size_t) {
                       constexpr float infinite = std::numeric_limits<float>::infinity();
                       return std::vector{eager::full({3, 64}, infinite)};
                     }};
  EXPECT_THAT(refusal(linear_model(20, 64), recipe_of("\"int4\""), options),
              HasSubstr("example 0: calibration: x is not finite"));
}

TEST(quantize, counts_rows_of_zeros) {
  Model m = linear_model(2, 64);
  std::vector<float> elements(128);
  for (size_t i = 0; i < 64; ++i) elements[i] = static_cast<float>(i);
  m.constants.clear();
  m.add("w", ir::Payload::from(elements, {2, 64})).add("b", random_payload({2}, 2));
  const std::unique_ptr<ir::Graph> graph = m.graph();
  const Report report = quantize({graph.get()}, int8());
  EXPECT_EQ(report.weights[0].zero_rows, 1);
  std::ostringstream text;
  text << report;
  EXPECT_THAT(text.str(), HasSubstr("w (2, 64), 1 row of zeros"));
}

}  // namespace
}  // namespace taper::quantize
