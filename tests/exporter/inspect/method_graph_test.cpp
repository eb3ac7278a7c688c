#include "taper/exporter/inspect/method_graph.h"

#include <gmock/gmock.h>

#include "taper/examples/my_backend/delegate.h"
#include "taper/exporter/eager/kernel_sets.h"
#include "taper/exporter/exporter.h"
#include "taper/exporter/inspect/program_file.h"

namespace taper::inspect {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

MethodGraph graph_of(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function) {
  Exporter exporter;
  exporter.method("forward", function, {input("x", {2, 2})}, {"y"});
  const ProgramFile file("f.taper", exporter.write(ExportOptions{}), eager::all_kernels());
  return method_graph(file.program(), 0);
}

/// Whose results the nodes called `title` read.
std::vector<std::string> sources_of(const MethodGraph& graph, const std::string& title) {
  std::vector<std::string> sources;
  for (const GraphEdge& e : graph.edges)
    if (graph.nodes[static_cast<size_t>(e.to)].title == title)
      sources.push_back(graph.nodes[static_cast<size_t>(e.from)].title);
  return sources;
}

TEST(method_graph, leads_from_who_wrote_last) {
  const MethodGraph graph = graph_of([](const auto& in) {
    const Tensor a = matmul(in[0], in[0]);
    return std::vector{sin(matmul(a, in[0]))};
  });
  EXPECT_THAT(sources_of(graph, "mm"), UnorderedElementsAre("x", "x", "mm"));
  EXPECT_THAT(sources_of(graph, "sin"), ElementsAre("mm"));
  EXPECT_THAT(sources_of(graph, "y"), ElementsAre("sin"));
}

TEST(method_graph, tells_what_a_backend_runs) {
  static const mine::MyDelegate delegate;
  partition::hand_in(delegate);
  ExportOptions options;
  options.backend = delegate.name(), options.quiet = true;
  Exporter exporter;
  exporter.method("forward", [](const Tensor& x) { return sin((x + x) * x); }, {input("x", {2, 2})},
                  {"y"});
  const ProgramFile file("f.taper", exporter.write(options), eager::all_kernels());
  const MethodGraph graph = method_graph(file.program(), 0);
  using enum GraphNode::Kind;
  std::vector<GraphNode::Kind> kinds;
  for (const GraphNode& node : graph.nodes) kinds.push_back(node.kind);
  EXPECT_THAT(kinds, ElementsAre(input, delegated, instruction, output));
  EXPECT_EQ(graph.nodes[1].title, "mine");
  EXPECT_THAT(sources_of(graph, "sin"), ElementsAre("mine"));
}

TEST(method_graph, leads_from_both_sides_of_a_branch_and_never_across) {
  const MethodGraph graph = graph_of([](const auto& in) {
    const auto then = [](const auto& x) { return std::vector{tan(cos(x[0] + 1))}; };
    const auto otherwise = [](const auto& x) { return std::vector{exp(matmul(x[0], x[0]))}; };
    return std::vector{sin(cond(sum(in[0]) > 0, then, otherwise, {in[0]})[0])};
  });
  EXPECT_THAT(sources_of(graph, "sin"), UnorderedElementsAre("tan", "exp"));
  EXPECT_THAT(sources_of(graph, "exp"), ElementsAre("mm"));
  EXPECT_THAT(sources_of(graph, "mm"), ElementsAre("x"));
  EXPECT_THAT(sources_of(graph, "bind"), ElementsAre("gt.Scalar"));
}

TEST(method_graph, leads_from_before_a_loop_and_from_its_last_round) {
  const MethodGraph graph = graph_of([](const auto& in) {
    const auto last =
        while_loop([](const auto& x) { return sum(x[0]) < 9; },
                   [](const auto& x) { return std::vector{exp(x[0])}; }, {tan(in[0])});
    return std::vector{sin(last[0])};
  });
  EXPECT_THAT(sources_of(graph, "sin"), UnorderedElementsAre("tan", "exp"));
  EXPECT_THAT(sources_of(graph, "exp"), ElementsAre("tan"));
  EXPECT_THAT(sources_of(graph, "nobody"), IsEmpty());
}

/// Who decides about the nodes called `title`.
std::vector<std::string> deciders_of(const MethodGraph& graph, const std::string& title) {
  std::vector<std::string> deciders;
  for (const GraphEdge& e : graph.control)
    if (graph.nodes[static_cast<size_t>(e.to)].title == title)
      deciders.push_back(graph.nodes[static_cast<size_t>(e.from)].title);
  return deciders;
}
TEST(method_graph, says_what_a_branch_or_a_loop_decides) {
  const MethodGraph branch = graph_of([](const auto& in) {
    const auto then = [](const auto& x) { return std::vector{tan(cos(x[0] + 1))}; };
    const auto otherwise = [](const auto& x) { return std::vector{exp(x[0])}; };
    return std::vector{sin(cond(sum(in[0]) > 0, then, otherwise, {in[0]})[0])};
  });
  EXPECT_THAT(deciders_of(branch, "jump_unless"), ElementsAre("bind"));
  EXPECT_THAT(deciders_of(branch, "exp"), ElementsAre("jump_unless"));
  EXPECT_THAT(deciders_of(branch, "tan"), IsEmpty());
  const MethodGraph loop = graph_of([](const auto& in) {
    return while_loop([](const auto& x) { return sum(x[0]) < 9; },
                      [](const auto& x) { return std::vector{exp(x[0])}; }, {tan(in[0])});
  });
  EXPECT_THAT(deciders_of(loop, "exp"), ElementsAre("jump_unless"));
  EXPECT_THAT(deciders_of(loop, "loop_end"), testing::Contains("exp"));
  EXPECT_THAT(deciders_of(loop, "tan"), IsEmpty());
}

}  // namespace
}  // namespace taper::inspect
