// Which weights become halves, and who reads them, on graphs of a few nodes. Whole models against
// PyTorch: tests/exporter/importers/half_models_test.cpp.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using eager::Tensor;
using testing::Contains;
using testing::ElementsAre;
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
  /// Halved and verified.
  std::unique_ptr<ir::Graph> halved(DType half = DType::f16) const {
    auto g = graph();
    PassContext context(Target(), /*exact=*/false, half);
    ir::for_each_graph(*g, [&](ir::Graph& each) { halve_weights(each, context); });
    ir::verify(*g);
    return g;
  }

 private:
  std::string text_;
  ir::Payloads payloads_;
};

Tensor tensor(const std::vector<float>& values, std::vector<int64_t> sizes) {
  return ir::tensor_of(ir::Payload::from(values, std::move(sizes))).clone();
}
std::vector<float> random(size_t count) {
  std::mt19937 engine(7);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(count);
  for (float& v : values) v = distribution(engine);
  return values;
}
std::shared_ptr<const ir::Payload> weight(std::vector<int64_t> sizes) {
  size_t count = 1;
  for (const int64_t n : sizes) count *= static_cast<size_t>(n);
  return ir::Payload::from(random(count), std::move(sizes));
}
std::vector<float> run(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  return ir::Interpreter(graph).run(inputs).outputs[0].to_vector<float>();
}
std::vector<std::string> operators_of(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (const ir::Node& n : graph.nodes()) names.emplace_back(name_of(*n.op));
  return names;
}
std::vector<Layout> layouts_of(const ir::Graph& graph) {
  std::vector<Layout> layouts;
  for (const ir::Constant& c : graph.constants()) layouts.push_back(c.payload->layout);
  return layouts;
}
/// That each result differs from that of the graph before by what rounded weights make.
void expect_near(const Text& text, const ir::Graph& halved, const std::vector<Tensor>& inputs) {
  const std::vector<float> want = run(*text.graph(), inputs), got = run(halved, inputs);
  ASSERT_EQ(want.size(), got.size());
  bool rounded = false;
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(want[i], got[i], 0.02) << i;
    rounded = rounded || want[i] != got[i];
  }
  EXPECT_TRUE(rounded);
}

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(halve_weights, gives_products_f32_weights_that_lie_in_halves) {
  Text text;
  text.constant("w", weight({20, 16})).constant("b", weight({20}))
      << "input \"x\" = %x: f32[3, 16]"
      << "%y: f32[3, 20] = linear(%x, %w, %b)"
      << "output \"y\" = %y";
  for (const DType half : {DType::f16, DType::bf16}) {
    const auto graph = text.halved(half);
    EXPECT_THAT(operators_of(*graph), ElementsAre("linear"));
    EXPECT_THAT(
        layouts_of(*graph),
        ElementsAre(half == DType::f16 ? Layout::dense_f16 : Layout::dense_bf16, Layout::dense));
    const ir::Constant& w = graph->constants().front();
    EXPECT_EQ(w.value->type.dtype, DType::f32);
    EXPECT_EQ(w.payload->size_bytes, size_t{20 * 16 * 2});
    expect_near(text, *graph, {tensor(random(48), {3, 16})});
  }
}

TEST(halve_weights, sees_a_weight_through_its_view) {
  Text text;
  text.constant("w", weight({20, 16})) << "input \"x\" = %x: f32[3, 16]"
                                       << "%t: f32[16, 20] strides [1, 16] = permute(%w, [1, 0])"
                                       << "%y: f32[3, 20] = mm(%x, %t)"
                                       << "output \"y\" = %y";
  const auto graph = text.halved();
  EXPECT_THAT(operators_of(*graph), ElementsAre("permute", "mm"));
  EXPECT_THAT(layouts_of(*graph), ElementsAre(Layout::dense_f16));
  expect_near(text, *graph, {tensor(random(48), {3, 16})});
}

TEST(halve_weights, halves_the_filters_of_convolutions) {
  Text text;
  text.constant("w", weight({8, 4, 3, 3}))
      << "input \"x\" = %x: f32[1, 4, 3, 3]"
      << "%y: f32[1, 8, 1, 1] = convolution(%x, %w, none, [1, 1], [0, 0], [1, 1], false, [0, 0], 1)"
      << "output \"y\" = %y";
  const auto graph = text.halved();
  EXPECT_THAT(operators_of(*graph), ElementsAre("convolution"));
  EXPECT_THAT(layouts_of(*graph), ElementsAre(Layout::dense_f16));
  expect_near(text, *graph, {tensor(random(36), {1, 4, 3, 3})});
}

// No kernel of a transposed convolution reads halves.
TEST(halve_weights, widens_for_other_products_before_views) {
  Text text;
  text.constant("w", weight({4, 9, 8}))
      << "input \"x\" = %x: f32[1, 4, 3]"
      << "%t: f32[4, 8, 9] strides [72, 1, 8] = permute(%w, [0, 2, 1])"
      << "%c: f32[4, 8, 9] = clone(%t)"
      << "%v: f32[4, 8, 9] = view(%w, [4, 8, 9])"
      << "%y: f32[1, 8, 11] = convolution(%x, %v, none, [1], [0], [1], true, [0], 1)"
      << "output \"y\" = %y"
      << "output \"c\" = %c";
  const auto graph = text.halved();
  EXPECT_THAT(operators_of(*graph),
              ElementsAre("_to_copy", "permute", "clone", "_to_copy", "view", "convolution"));
  EXPECT_THAT(layouts_of(*graph), ElementsAre(Layout::dense));
  EXPECT_EQ(graph->constants().front().payload->dtype, DType::f16);
  expect_near(text, *graph, {tensor(random(12), {1, 4, 3})});
}

// The elements lie in a file once: as f32 in halves for the product, and as halves for the look-up.
TEST(halve_weights, looks_up_rows_in_halves_beside_a_product) {
  Text text;
  text.constant("w", weight({20, 16})) << "input \"i\" = %i: i64[2]"
                                       << "%e: f32[2, 16] = embedding(%w, %i, -1, false, false)"
                                       << "%y: f32[2, 20] = linear(%e, %w, none)"
                                       << "output \"y\" = %y";
  const auto graph = text.halved();
  EXPECT_THAT(operators_of(*graph), ElementsAre("embedding", "_to_copy", "linear"));
  const ir::Payload &product = *graph->constants().front().payload,
                    &table = *graph->constants().back().payload;
  EXPECT_EQ(product.layout, Layout::dense_f16);
  EXPECT_EQ(table.dtype, DType::f16);
  EXPECT_EQ(product.bytes, table.bytes);
  expect_near(text, *graph, {Tensor::from<int64_t>({3, 17}, {2})});
}

TEST(halve_weights, leaves_what_is_no_weight_of_a_product) {
  Text text;
  text.constant("positions", weight({20, 16})).constant("small", weight({2, 16}))
      << "input \"x\" = %x: f32[20, 16]"
      << "%a: f32[20, 16] = add.Tensor(%x, %positions, 1)"
      << "%y: f32[20, 2] = linear(%a, %small, none)"
      << "output \"y\" = %y";
  const auto graph = text.graph();
  const std::string before = ir::to_string(*graph);
  PassContext context(Target(), /*exact=*/false, DType::bf16);
  EXPECT_EQ(halve_weights(*graph, context), 0);
  EXPECT_EQ(ir::to_string(*graph), before);
}

// Branches, loops and lists take f32, and so does the caller.
TEST(halve_weights, leaves_a_weight_that_is_a_result_or_an_element_of_a_list) {
  for (const char* other :
       {"output \"w\" = %w", "%c: f32[40, 16] = cat([%w, %w], 0)\noutput \"c\" = %c"}) {
    Text text;
    text.constant("w", weight({20, 16})) << "input \"x\" = %x: f32[3, 16]"
                                         << "%y: f32[3, 20] = linear(%x, %w, none)"
                                         << "output \"y\" = %y" << other;
    const auto graph = text.halved();
    EXPECT_THAT(layouts_of(*graph), ElementsAre(Layout::dense));
    EXPECT_EQ(graph->constants().front().payload->dtype, DType::f32);
  }
}

TEST(halve_weights, says_who_reads_halves_and_who_widens_them) {
  Text text;
  text.constant("w", weight({16, 16, 2}))
      << "input \"x\" = %x: f32[1, 16, 4]"
      << "%a: f32[1, 16, 3] = convolution(%x, %w, none, [1], [0], [1], false, [0], 1)"
      << "%y: f32[1, 16, 4] = convolution(%a, %w, none, [1], [0], [1], true, [0], 1)"
      << "output \"y\" = %y";
  const auto graph = text.graph();
  PassContext context(Target(), /*exact=*/false, DType::bf16);
  EXPECT_EQ(halve_weights(*graph, context), 1);
  std::vector<std::string> did, declined;
  for (const Note& note : context.take_notes())
    (note.declined ? declined : did).push_back(note.text);
  EXPECT_THAT(did, ElementsAre("it reads w in bf16"));
  EXPECT_THAT(declined, ElementsAre("each call widens w: no kernel reads it in bf16"));
}

TEST(halve_weights, refuses_a_method_that_trains) {
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

TEST(halve_weights, keeps_weights_that_are_too_large_finite) {
  std::vector<float> values(256, 1);
  values[0] = 1e6f, values[1] = -1e6f, values[2] = infinity;
  const auto graph = (Text().constant("w", ir::Payload::from(values, {16, 16}))
                      << "input \"x\" = %x: f32[1, 16]"
                      << "%y: f32[1, 16] = linear(%x, %w, none)"
                      << "output \"y\" = %y")
                         .halved();
  const std::vector<float> wide =
      ir::tensor_of(graph->constants().front().payload).to_vector<float>();
  EXPECT_EQ(wide[0], 65504);
  EXPECT_EQ(wide[1], -65504);
  EXPECT_EQ(wide[2], infinity);
  EXPECT_EQ(wide[3], 1);
}

}  // namespace
}  // namespace taper::passes
