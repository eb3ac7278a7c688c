// The graph on docs/ir.md as text, and how the page edits one.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/printer.h"
#include "taper/exporter/ir/verifier.h"

namespace taper {
namespace {

std::shared_ptr<const ir::Payload> ones(const std::vector<int64_t>& sizes, size_t count) {
  return ir::Payload::from(std::vector<float>(count, 1), sizes);
}

TEST(documentation, shows_a_graph_that_can_be_read_and_printed) {
  std::ifstream in(DOCS_BLOCKS "/graph.txt");
  std::stringstream page;
  page << in.rdbuf();
  ir::Payloads payloads;
  for (const auto& elements : {ones({3, 4}, 12), ones({4}, 4)})
    payloads[ir::digest(*elements)] = elements;

  const auto graph = ir::parse(page.str(), payloads);
  ir::verify(*graph);
  EXPECT_EQ(ir::to_string(*graph), page.str());
}

TEST(documentation, replaces_a_node) {
  const auto parsed = ir::parse(
      "graph f\ninput \"x\" = %x: f32[4]\n"
      "%y: f32[4] = clamp_min(%x, 0)\noutput \"y\" = %y\n");
  ir::Graph& graph = *parsed;
  ir::Node* node = &*graph.nodes().begin();
  {
    using namespace ir;
#include "editing.inc"
  }
  ir::verify(graph);
  EXPECT_EQ(ir::to_string(graph),
            "graph f\ninput \"x\" = %x: f32[4]\n"
            "%relu: f32[4] = relu(%x)\noutput \"y\" = %relu\n");
}

}  // namespace
}  // namespace taper
