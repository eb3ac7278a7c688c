#include "taper/exporter/inspect/module_tree.h"

#include <gmock/gmock.h>

#include <random>

namespace taper::inspect {
namespace {

using testing::ElementsAre;

MethodGraph graph_of(const std::vector<std::string>& modules,
                     const std::vector<std::pair<int, int>>& edges) {
  MethodGraph graph;
  for (const std::string& m : modules)
    graph.nodes.push_back({GraphNode::Kind::instruction, "relu", {}, {}, "", m});
  for (const auto& [from, to] : edges) graph.edges.push_back({from, to, {}});
  return graph;
}
MethodGraph chain(const std::vector<std::string>& modules) {
  std::vector<std::pair<int, int>> edges;
  for (int i = 1; i < static_cast<int>(modules.size()); ++i) edges.emplace_back(i - 1, i);
  return graph_of(modules, edges);
}

std::vector<std::string> titles(const ModuleTree& tree) {
  std::vector<std::string> result;
  for (const ModuleGroup& g : tree.groups) result.push_back(g.title);
  return result;
}

/// Whatever is folded, lines lead forward: in the order edges do, and groups have no gaps.
void expect_foldable(const MethodGraph& graph, const ModuleTree& tree) {
  std::vector<int> place(graph.nodes.size(), -1), first(tree.groups.size(), -1), last(first),
      members(tree.groups.size(), 0), children(members);
  ASSERT_EQ(tree.order.size(), graph.nodes.size());
  for (size_t i = 0; i < tree.order.size(); ++i) place[tree.order[i]] = static_cast<int>(i);
  for (const GraphEdge& e : graph.edges) EXPECT_LT(place[e.from], place[e.to]);
  for (size_t i = 0; i < tree.order.size(); ++i) {
    const int node = tree.order[i];
    ++children[tree.group_of[node]];
    for (int g = tree.group_of[node]; g >= 0; g = tree.groups[g].parent) {
      if (first[g] < 0) first[g] = static_cast<int>(i);
      last[g] = static_cast<int>(i);
      ++members[g];
      EXPECT_TRUE(graph.nodes[node].module.starts_with(tree.groups[g].path));
    }
  }
  for (size_t g = 1; g < tree.groups.size(); ++g) {
    EXPECT_LT(tree.groups[g].parent, static_cast<int>(g));
    EXPECT_GE(members[g], 2);
    EXPECT_EQ(last[g] - first[g] + 1, members[g]);
    ++children[tree.groups[g].parent];
  }
  for (const int n : children) EXPECT_LE(n, 128);
}

TEST(module_tree, follows_the_dots_of_module_paths) {
  const MethodGraph graph =
      chain({"", "features.0", "features.3.conv", "features.3.norm", "features.3", "head"});
  const ModuleTree tree = module_tree(graph);
  EXPECT_THAT(titles(tree), ElementsAre("", "features", "features.3"));
  EXPECT_THAT(tree.group_of, ElementsAre(0, 1, 2, 2, 2, 0));
  expect_foldable(graph, tree);
}

TEST(module_tree, makes_one_group_of_a_module_that_holds_one_module) {
  const ModuleTree tree = module_tree(chain({"x", "model.layers.0.a", "model.layers.0.b", "y"}));
  EXPECT_THAT(titles(tree), ElementsAre("", "model.layers.0"));
}

TEST(module_tree, counts_the_calls_of_a_module) {
  const MethodGraph graph = chain({"conv", "conv", "", "conv", "conv"});
  EXPECT_THAT(titles(module_tree(graph)), ElementsAre("", "conv", "conv (2)"));
  expect_foldable(graph, module_tree(graph));
}

TEST(module_tree, brings_parallel_branches_together) {
  // two branches whose operators were written in turns
  const MethodGraph graph = graph_of({"", "left", "right", "left", "right", ""},
                                     {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 5}});
  const ModuleTree tree = module_tree(graph);
  EXPECT_THAT(titles(tree), ElementsAre("", "left", "right"));
  EXPECT_THAT(tree.order, ElementsAre(0, 1, 3, 2, 4, 5));
}

TEST(module_tree, cuts_long_lists_into_parts) {
  for (const size_t length : {128u, 129u, 4096u, 10000u}) {
    const MethodGraph graph = chain(std::vector<std::string>(length, "m"));
    const ModuleTree tree = module_tree(graph);
    expect_foldable(graph, tree);
    EXPECT_EQ(tree.groups[1].title, "m");
    if (length == 129) {
      EXPECT_THAT(titles(tree), ElementsAre("", "m", "part 1 of 3", "part 2 of 3", "part 3 of 3"));
    }
  }
}

TEST(module_tree, takes_any_path) {
  const std::string deep(1000000, '.');
  const MethodGraph graph = chain({deep, deep, ".", ".", "a..b", "a..c", "<b>", "<b>"});
  expect_foldable(graph, module_tree(graph));
  EXPECT_EQ(module_tree({}).groups.size(), 1u);
}

TEST(module_tree, of_random_graphs_can_be_folded) {
  const char* names[] = {"", "a", "b", "a.x", "a.y", "a.x.u", "b.z", "b.z.v", "b.z.w.t"};
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::string> modules(2 + random() % 120);
    for (std::string& m : modules) m = names[random() % std::size(names)];
    std::vector<std::pair<int, int>> edges;
    for (unsigned to = 1; to < modules.size(); ++to)
      for (unsigned k = random() % 3; k > 0; --k)
        edges.emplace_back(static_cast<int>(random() % to), static_cast<int>(to));
    const MethodGraph graph = graph_of(modules, edges);
    expect_foldable(graph, module_tree(graph));
  }
}

}  // namespace
}  // namespace taper::inspect
