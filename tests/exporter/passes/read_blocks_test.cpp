// Which operators read constants in blocks.
#include <gmock/gmock.h>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/exporter/passes/passes.h"
#include "taper/tests/support/blocks.h"

namespace taper::passes {
namespace {

using eager::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

struct Changed {
  std::unique_ptr<ir::Graph> graph;
  int changes;
  std::vector<Note> notes;

  std::vector<std::string> operators() const {
    std::vector<std::string> names;
    for (const ir::Node& n : graph->nodes()) names.emplace_back(name_of(*n.op));
    return names;
  }
  std::vector<Layout> layouts() const {
    std::vector<Layout> layouts;
    for (const ir::Constant& c : graph->constants()) layouts.push_back(c.payload->layout);
    return layouts;
  }
};

/// A graph with the constant "w" in blocks: before the pass and after it.
class Blocks {
 public:
  Blocks(Layout layout, const std::string& lines, const std::vector<int64_t>& sizes = {20, 256})
      : payload_(tests::random_blocks(layout, sizes)) {
    const std::string key = ir::digest(*payload_);
    payloads_[key] = payload_;
    std::string text;
    for (const int64_t n : sizes) text += (text.empty() ? "" : ", ") + std::to_string(n);
    text_ = "graph f\nconstant \"w\" = %w: f32[" + text + "] " + key + "\n" + lines;
  }
  std::unique_ptr<ir::Graph> graph() const { return ir::parse(text_, payloads_); }
  Changed changed(bool exact) const {
    Changed c{graph(), 0, {}};
    PassContext context(Target(), exact);
    c.changes = read_blocks(*c.graph, context);
    c.notes = context.take_notes();
    ir::verify(*c.graph);
    return c;
  }

 private:
  std::shared_ptr<const ir::Payload> payload_;
  std::string text_;
  ir::Payloads payloads_;
};

TEST(merge_common_subexpressions, leaves_each_look_up_of_rows_in_blocks) {
  const std::unique_ptr<ir::Graph> graph =
      Blocks(Layout::q4_0,
             "input \"i\" = %i: i64[3]\n"
             "%a: f32[3, 256] = embedding(%w, %i, -1, false, false)\n"
             "%b: f32[3, 256] = embedding(%w, %i, -1, false, false)\n"
             "%c: f32[3, 256] = exp(%a)\n%d: f32[3, 256] = exp(%a)\n"
             "output \"b\" = %b\noutput \"c\" = %c\noutput \"d\" = %d\n")
          .graph();
  PassContext context(Target(), true);
  EXPECT_EQ(merge_common_subexpressions(*graph, context), 1) << "the functions";
  ir::verify(*graph);
}

Tensor numbers(int64_t rows) {
  return eager::sin(eager::arange(rows * 256).to(DType::f32)).reshape({rows, 256});
}
std::vector<float> run(const ir::Graph& graph, const std::vector<Tensor>& inputs) {
  return ir::Interpreter(graph).run(inputs).outputs[0].to_vector<float>();
}

TEST(read_blocks, multiplies_and_looks_up_blocks_exactly) {
  const Blocks blocks(Layout::q6_k,
                      "input \"i\" = %i: i64[3]\n"
                      "%x: f32[3, 256] = embedding(%w, %i, 5, false, false)\n"
                      "%y: f32[3, 20] = linear(%x, %w, none)\noutput \"y\" = %y\n");
  const Changed c = blocks.changed(true);
  EXPECT_EQ(c.changes, 2);
  EXPECT_THAT(c.operators(), ElementsAre("taper::block_embedding", "taper::block_linear"));
  EXPECT_THAT(c.layouts(), ElementsAre(Layout::q6_k));
  EXPECT_EQ(c.graph->outputs()[0].value->name, "y");
  const Tensor words = eager::arange(3);
  EXPECT_EQ(run(*c.graph, {words}), run(*blocks.graph(), {words})) << "the same bits";
}

TEST(read_blocks, rounds_inputs_unless_the_export_is_exact) {
  const Blocks blocks(Layout::q8_0,
                      "input \"x\" = %x: f32[3, 256]\n"
                      "%y: f32[3, 20] = linear(%x, %w, none)\noutput \"y\" = %y\n");
  const Changed c = blocks.changed(false);
  EXPECT_THAT(c.operators(), ElementsAre("taper::block_linear_q8"));
  const Tensor x = numbers(3);
  const std::vector<float> want = run(*blocks.graph(), {x}), got = run(*c.graph, {x});
  float most = 0;
  for (const float v : want) most = std::max(most, std::fabs(v));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.01 * most);
  EXPECT_NE(got, want);
}

/// Their elements are no integers, so that a rounded input would gain nothing.
TEST(read_blocks, rounds_no_inputs_of_weights_in_floats) {
  for (const Layout layout : {Layout::nf4, Layout::mxfp6_e2m3, Layout::mxfp8_e5m2}) {
    const Blocks blocks(layout,
                        "input \"x\" = %x: f32[3, 256]\n"
                        "%y: f32[3, 20] = linear(%x, %w, none)\noutput \"y\" = %y\n");
    const Changed c = blocks.changed(false);
    EXPECT_THAT(c.operators(), ElementsAre("taper::block_linear"));
    const Tensor x = numbers(3);
    EXPECT_EQ(run(*c.graph, {x}), run(*blocks.graph(), {x})) << "the same bits";
  }
}

TEST(read_blocks, leaves_nodes_that_read_blocks_already) {
  const Blocks blocks(Layout::q8_0,
                      "input \"x\" = %x: f32[3, 256]\n"
                      "%y: f32[3, 20] = taper::block_linear(%x, %w, none)\noutput \"y\" = %y\n");
  const Changed c = blocks.changed(false);
  EXPECT_EQ(c.changes, 0);
  EXPECT_THAT(c.operators(), ElementsAre("taper::block_linear"));
  EXPECT_THAT(c.layouts(), ElementsAre(Layout::q8_0));
}

/// The matrices of three experts, which five rows choose: none the first one.
TEST(read_blocks, multiplies_rows_of_groups_with_blocks) {
  const std::vector<int64_t> sizes{3, 20, 256};
  const std::string lines =
      "input \"x\" = %x: f32[5, 256]\ninput \"offs\" = %offs: i32[3]\n"
      "%t: f32[3, 256, 20] strides [5120, 1, 256] = transpose.int(%w, -2, -1)\n"
      "%y: f32[5, 20] = _grouped_mm(%x, %t, %offs, none, none)\n";
  const Tensor x = numbers(5), offs = Tensor::from<int32_t>({0, 2, 5}, {3});
  const Blocks blocks(Layout::mxfp4, lines + "output \"y\" = %y\n", sizes);
  const std::vector<float> want = run(*blocks.graph(), {x, offs});

  const Changed exact = blocks.changed(true);
  EXPECT_THAT(exact.operators(), ElementsAre("taper::grouped_block_linear"));
  EXPECT_THAT(exact.layouts(), ElementsAre(Layout::mxfp4));
  EXPECT_EQ(run(*exact.graph, {x, offs}), want) << "the same bits";

  const Changed rounded = blocks.changed(false);
  EXPECT_THAT(rounded.operators(), ElementsAre("taper::grouped_block_linear_q8"));
  const std::vector<float> got = run(*rounded.graph, {x, offs});
  const float most = *std::max_element(want.begin(), want.end());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.01 * most);
  EXPECT_NE(got, want);

  const Changed other =
      Blocks(Layout::mxfp4, lines + "output \"y\" = %y\noutput \"t\" = %t\n", sizes).changed(true);
  EXPECT_THAT(other.operators(), ElementsAre("transpose.int", "_grouped_mm"));
  EXPECT_THAT(other.layouts(), ElementsAre(Layout::mxfp4, Layout::dense)) << "the first is unused";
}

/// What the gradient of a linear layer's input reads.
TEST(read_blocks, widens_blocks_for_a_product_the_other_way_round) {
  const Blocks blocks(Layout::q4_0,
                      "input \"x\" = %x: f32[3, 256]\n"
                      "%y: f32[3, 20] = linear(%x, %w, none)\n"
                      "%dx: f32[3, 256] = mm(%y, %w)\noutput \"dx\" = %dx\n");
  const Changed c = blocks.changed(true);
  EXPECT_THAT(c.operators(), ElementsAre("taper::block_linear", "taper::block_embedding", "mm"));
  EXPECT_THAT(c.layouts(), ElementsAre(Layout::q4_0, Layout::dense));
  EXPECT_EQ(c.graph->constants().back().payload->sizes, (std::vector<int64_t>{20}));
  const Tensor x = numbers(3);
  EXPECT_EQ(run(*c.graph, {x}), run(*blocks.graph(), {x})) << "the same bits";
}

TEST(read_blocks, gives_other_readers_f32) {
  const Blocks blocks(Layout::q4_k,
                      "input \"x\" = %x: f32[3, 256]\n"
                      "%t: f32[256, 20] strides [1, 256] = permute(%w, [1, 0])\n"
                      "%y: f32[3, 20] = mm(%x, %t)\noutput \"y\" = %y\noutput \"w\" = %w\n");
  const Changed c = blocks.changed(false);
  EXPECT_THAT(c.operators(), ElementsAre("permute", "mm"));
  ASSERT_EQ(c.notes.size(), 1u);
  EXPECT_TRUE(c.notes[0].declined);
  EXPECT_THAT(c.notes[0].text, HasSubstr("products of experts read weights in blocks"));
  const Tensor x = numbers(3);
  EXPECT_EQ(run(*c.graph, {x}), run(*blocks.graph(), {x}));
}

}  // namespace
}  // namespace taper::passes
