// Parts of graphs. The delegate of these tests takes some operators, and compiles nothing.
#include "taper/exporter/partition/partition.h"

#include <gmock/gmock.h>

#include "taper/exporter/ir/delegate.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/exporter/passes/apply.h"

namespace taper::partition {
namespace {

using passes::operators, passes::random_tensor;
using testing::ElementsAre, testing::HasSubstr;

class Takes : public Delegate {
 public:
  explicit Takes(std::vector<std::string> names, size_t least = 1)
      : names_(std::move(names)), least_(least) {}
  std::string name() const override { return "test"; }
  uint32_t version() const override { return 1; }
  std::string refuses(const ir::Node& node) const override {
    return std::ranges::count(names_, name_of(*node.op)) > 0 ? "" : "no such operator";
  }
  bool pays(const std::vector<const ir::Node*>& part) const override {
    return part.size() >= least_;
  }
  Compiled compile(const ir::Graph&) const override { throw ExportError("never"); }
  Backend* backend() const override { return nullptr; }

 private:
  std::vector<std::string> names_;
  size_t least_;
};

/// Takes sums, and `neg` only together with the `relu` before it.
class TakesPairs : public Takes {
 public:
  TakesPairs() : Takes({"add.Tensor", "taper::delegate"}) {}
  std::vector<Group> groups(ir::Graph& graph) const override {
    std::vector<Group> groups;
    for (ir::Node& node : graph.nodes()) {
      if (node.op != &ops::neg) continue;
      ir::Node* before = std::get<ir::Value*>(node.arguments[0])->node;
      if (before != nullptr && before->op == &ops::relu) groups.push_back({before, &node});
    }
    return groups;
  }
};

class TakesReluAlone : public Takes {
 public:
  using Takes::Takes;
  bool stands_alone(const ir::Node& node) const override { return node.op == &ops::relu; }
};

/// A graph over %x: f32[3, 4] with these lines.
std::unique_ptr<ir::Graph> graph_of(const std::string& lines) {
  auto graph = ir::parse("graph f\ninput \"x\" = %x: f32[3, 4]\n" + lines);
  ir::verify(*graph);
  return graph;
}

/// Partitions the graph, which must still be valid and give the same bits.
PartitionReport partitioned(ir::Graph& graph, const Delegate& delegate) {
  const std::string text = ir::to_string(graph);
  const std::vector<eager::Tensor> inputs = {random_tensor({3, 4}, 1)};
  const std::vector<float> want = passes::run(*ir::parse(text), inputs);
  group(graph, delegate);
  ir::verify(graph, "group");
  passes::expect_same_bits(passes::run(graph, inputs), want);
  const PartitionReport report = partition(graph, delegate);
  ir::verify(graph, "partition");
  passes::expect_same_bits(passes::run(graph, inputs), want);
  // the text with its bodies reads back
  EXPECT_EQ(ir::to_string(*ir::parse(ir::to_string(graph))), ir::to_string(graph));
  return report;
}

TEST(partition, makes_one_delegate_of_connected_nodes) {
  auto graph = graph_of(
      "%a: f32[3, 4] = relu(%x)\n%b: f32[3, 4] = neg(%a)\n%c: f32[3, 4] = add.Tensor(%a, %b, 1)\n"
      "%d: f32[3, 4] = exp(%c)\noutput \"y\" = %d\n");
  const PartitionReport report = partitioned(*graph, Takes({"relu", "neg", "add.Tensor"}));
  EXPECT_THAT(operators(*graph), ElementsAre("taper::delegate", "exp"));
  EXPECT_EQ(report.parts, 1);
  EXPECT_EQ(report.delegated, 3);
  ASSERT_EQ(report.left.size(), 1u);
  EXPECT_EQ(report.left[0].op, "exp");
  EXPECT_EQ(report.left[0].reason, "no such operator");
  EXPECT_EQ(graph->nodes().front().result()->name, "c") << "results keep their names";
}

TEST(partition, makes_a_delegate_of_each_node_if_asked_to) {
  auto graph = graph_of(
      "%a: f32[3, 4] = relu(%x)\n%b: f32[3, 1, 4] = unsqueeze(%a, 1)\n"
      "%c: f32[3, 1, 4] = neg(%b)\n%d: f32[3, 1, 4] = exp(%c)\noutput \"y\" = %d\n");
  const PartitionReport report = partition(*graph, Takes({"relu", "unsqueeze", "neg"}), true);
  ir::verify(*graph, "partition");
  EXPECT_THAT(operators(*graph),
              ElementsAre("taper::delegate", "unsqueeze", "taper::delegate", "exp"));
  EXPECT_EQ(report.parts, 2);
  EXPECT_EQ(report.delegated, 2);
}

TEST(partition, gives_a_part_of_its_own_to_a_node_that_stands_alone) {
  const char* lines =
      "%a: f32[3, 4] = neg(%x)\n%b: f32[3, 4] = neg(%a)\n%c: f32[3, 4] = relu(%b)\n"
      "%d: f32[3, 4] = add.Tensor(%c, %a, 1)\n%e: f32[3, 4] = neg(%d)\noutput \"y\" = %e\n";
  auto graph = graph_of(lines);
  const PartitionReport report = partitioned(*graph, TakesReluAlone({"relu", "neg", "add.Tensor"}));
  EXPECT_THAT(operators(*graph),
              ElementsAre("taper::delegate", "taper::delegate", "taper::delegate"));
  EXPECT_EQ(report.delegated, 5);
  graph = graph_of(lines);
  EXPECT_EQ(partitioned(*graph, TakesReluAlone({"neg", "add.Tensor"})).delegated, 4)
      << "only if it is taken";
}

TEST(partition, says_what_part_of_the_multiplications_is_delegated) {
  auto graph = ir::parse(
      "graph f\ninput \"x\" = %x: f32[2, 3]\ninput \"w\" = %w: f32[5, 3]\n"
      "input \"m\" = %m: f32[5, 9]\n%a: f32[2, 5] = linear(%x, %w, none)\n"
      "%b: f32[2, 9] = mm(%a, %m)\noutput \"y\" = %b\n");
  const PartitionReport report = partition(*graph, Takes({"linear"}));
  EXPECT_EQ(report.delegated_work, 2 * 5 * 3);
  EXPECT_EQ(report.work, 2 * 5 * 3 + 2 * 9 * 5);
}

TEST(partition, lets_no_path_leave_a_part_and_come_back) {
  // relu → exp → add, and relu → add: one part of relu and add would need its own result
  auto graph = graph_of(
      "%a: f32[3, 4] = relu(%x)\n%b: f32[3, 4] = exp(%a)\n%c: f32[3, 4] = add.Tensor(%a, %b, 1)\n"
      "output \"y\" = %c\n");
  partitioned(*graph, Takes({"relu", "add.Tensor"}));
  EXPECT_THAT(operators(*graph), ElementsAre("taper::delegate", "exp", "taper::delegate"));
}

TEST(partition, lets_no_path_go_through_another_part_and_come_back) {
  // %p and %q start parts. %c joins %p to %b; then %e must not join %q, which %b is in.
  auto graph = graph_of(
      "%p: f32[3, 4] = relu(%x)\n%q: f32[3, 4] = neg(%x)\n%m: f32[3, 4] = exp(%q)\n"
      "%c: f32[3, 4] = add.Tensor(%p, %m, 1)\n%n: f32[3, 4] = exp(%p)\n"
      "%e: f32[3, 4] = add.Tensor(%q, %n, 1)\n%y: f32[3, 4] = add.Tensor(%c, %e, 1)\n"
      "output \"y\" = %y\n");
  partitioned(*graph, Takes({"relu", "neg", "add.Tensor"}));
  EXPECT_EQ(std::ranges::count(operators(*graph), "exp"), 2);
}

TEST(partition, moves_readers_of_a_result_behind_the_delegate) {
  // %b reads %a and stands before %d, the last node of the part
  auto graph = graph_of(
      "%a: f32[3, 4] = relu(%x)\n%b: f32[3, 4] = exp(%a)\n%d: f32[3, 4] = neg(%a)\n"
      "%y: f32[3, 4] = mul.Tensor(%b, %d)\noutput \"y\" = %y\n");
  partitioned(*graph, Takes({"relu", "neg"}));
  EXPECT_THAT(operators(*graph), ElementsAre("taper::delegate", "exp", "mul.Tensor"));
}

TEST(partition, leaves_views_that_others_need_beside_the_part) {
  auto graph = graph_of(
      "%a: f32[3, 4] = relu(%x)\n"
      "%t: f32[4, 3] strides [1, 4] = permute(%a, [1, 0])\n%b: f32[4, 3] = neg(%t)\n"
      "%c: f32[4, 3] = exp(%t)\n%y: f32[4, 3] = mul.Tensor(%b, %c)\noutput \"y\" = %y\n");
  partitioned(*graph, Takes({"relu", "permute", "neg"}));
  EXPECT_THAT(operators(*graph), ElementsAre("taper::delegate", "permute", "exp", "mul.Tensor"));
}

// The operand is dense in the body, so that turning it back no longer shows rows one behind
// another.
TEST(partition, copies_for_a_view_that_saw_an_operand_in_its_own_order) {
  auto graph = graph_of(
      "%t: f32[4, 3] strides [1, 4] = permute(%x, [1, 0])\n"
      "%u: f32[3, 4] = transpose.int(%t, 0, 1)\n%v: f32[12] = view(%u, [12])\n"
      "%y: f32[12] = neg(%v)\noutput \"y\" = %y\n");
  partitioned(*graph, Takes({"transpose.int", "view", "neg"}));
  EXPECT_THAT(operators(*graph), ElementsAre("permute", "taper::delegate"));
  EXPECT_THAT(operators(*graph->nodes().back().bodies[0]),
              ElementsAre("transpose.int", "clone", "view", "neg"));
}

TEST(partition, takes_constants_into_the_body) {
  ir::Payloads payloads;
  const std::string constant = passes::constant("w", passes::random_payload({3, 4}, 2), payloads);
  auto graph = ir::parse("graph f\ninput \"x\" = %x: f32[3, 4]\n" + constant +
                             "%y: f32[3, 4] = mul.Tensor(%x, %w)\noutput \"y\" = %y\n",
                         payloads);
  const std::vector<eager::Tensor> inputs = {random_tensor({3, 4}, 1)};
  const std::vector<float> want = passes::run(*graph, inputs);
  partition(*graph, Takes({"mul.Tensor"}));
  ir::verify(*graph);
  EXPECT_TRUE(graph->constants().empty());
  EXPECT_EQ(graph->nodes().front().bodies[0]->constants().size(), 1u);
  passes::expect_same_bits(passes::run(*graph, inputs), want);
}

TEST(partition, takes_a_view_of_a_constant_into_a_body_if_the_backend_takes_the_view) {
  for (const bool takes_view : {true, false}) {
    ir::Payloads payloads;
    const std::string constant = passes::constant("w", passes::random_payload({4}, 2), payloads);
    auto graph = ir::parse("graph f\ninput \"x\" = %x: f32[3, 4]\n" + constant +
                               "%v: f32[1, 4] = unsqueeze(%w, 0)\n"
                               "%a: f32[3, 4] = mul.Tensor(%x, %v)\n%b: f32[3, 4] = exp(%a)\n"
                               "%y: f32[3, 4] = mul.Tensor(%b, %v)\noutput \"y\" = %y\n",
                           payloads);
    const std::vector<eager::Tensor> inputs = {random_tensor({3, 4}, 1)};
    const std::vector<float> want = passes::run(*graph, inputs);
    partition(*graph, takes_view ? Takes({"mul.Tensor", "unsqueeze"}) : Takes({"mul.Tensor"}));
    ir::verify(*graph);
    passes::expect_same_bits(passes::run(*graph, inputs), want);
    int parts = 0;
    for (const ir::Node& node : graph->nodes())
      if (ir::is_delegate(node)) {
        ++parts;
        EXPECT_EQ(node.bodies[0]->inputs().size(), takes_view ? 1u : 2u);
        EXPECT_EQ(node.bodies[0]->constants().size(), takes_view ? 1u : 0u);
      }
    EXPECT_EQ(parts, 2);
  }
}

TEST(partition, keeps_symbolic_sizes) {
  auto graph = ir::parse(
      "graph f\nsymbol n in [1, 8]\ninput \"x\" = %x: f32[n, 4]\nbind n = extent 0 of input 0\n"
      "%a: f32[n, 4] = relu(%x)\n%v: f32[4*n] = view(%a, [4*n])\n%y: f32[4*n] = neg(%v)\n"
      "output \"y\" = %y\n");
  partition(*graph, Takes({"relu", "view", "neg"}));
  ir::verify(*graph);
  EXPECT_THAT(operators(*graph), ElementsAre("taper::delegate"));
  EXPECT_EQ(passes::run(*graph, {random_tensor({5, 4}, 1)}).size(), 20u);
}

TEST(partition, leaves_what_does_not_pay) {
  auto graph = graph_of("%a: f32[3, 4] = relu(%x)\n%y: f32[3, 4] = exp(%a)\noutput \"y\" = %y\n");
  const PartitionReport report = partitioned(*graph, Takes({"relu"}, 2));
  EXPECT_THAT(operators(*graph), ElementsAre("relu", "exp"));
  EXPECT_EQ(report.left_count(), 2);
  std::ostringstream text;
  text << report;
  EXPECT_THAT(text.str(), HasSubstr("1 relu: its part is too small to pay (relu)"));
}

TEST(partition, counts_what_it_leaves_in_modules) {
  auto graph = graph_of(
      "%a: f32[3, 4] = exp(%x)\n%b: f32[3, 4] = neg(%a)\n%c: f32[3, 4] = exp(%b)\n"
      "%d: f32[3, 4] = neg(%c)\n%e: f32[3, 4] = tanh(%d)\n%f: f32[3, 4] = exp(%e)\n"
      "output \"y\" = %f\n");
  const char* const modules[] = {"layers.0.norm", "layers.0",       "layers.11.norm",
                                 "layers.11",     "layers.11.norm", ""};
  auto module = std::begin(modules);
  for (ir::Node& node : graph->nodes()) node.module = *module++;
  const PartitionReport report = partition(*graph, Takes({"neg"}));
  std::ostringstream text;
  text << report;
  EXPECT_THAT(text.str(), HasSubstr("  by module:\n"
                                    "    layers.*.norm (2 modules): 2 exp, 1 tanh\n"));
}

/// Takes all, but computes first results alone.
class TakesFirstResults final : public Takes {
 public:
  using Takes::Takes;
  bool computes_all_results() const override { return false; }
};

TEST(partition, leaves_nodes_whose_further_results_are_used) {
  const std::string most = "%m: f32[3], %i: i64[3] = max.dim(%x, 1, false)\n";
  auto graph = graph_of(most + "%y: f32[3] = relu(%m)\noutput \"y\" = %y\n");
  EXPECT_EQ(partition(*graph, TakesFirstResults({"max.dim", "relu"})).left_count(), 0);
  graph = graph_of(most + "%y: f32[3] = relu(%m)\noutput \"y\" = %y\noutput \"i\" = %i\n");
  const PartitionReport report = partition(*graph, TakesFirstResults({"max.dim", "relu"}));
  ASSERT_EQ(report.left.size(), 1u);
  EXPECT_EQ(report.left[0].reason, "more than its first result is used");
}

TEST(partition, leaves_what_reads_constants_alone) {
  ir::Payloads payloads;
  const std::string constant = passes::constant("w", passes::random_payload({3, 4}, 2), payloads);
  const std::string text = "graph f\ninput \"x\" = %x: f32[3, 4]\n" + constant +
                           "%a: f32[3, 4] = relu(%w)\n%b: f32[3, 4] = neg(%a)\n"
                           "%c: f32[3, 4] = add.Tensor(%b, %x, 1)\noutput \"y\" = %c\n";
  auto graph = ir::parse(text, payloads);
  const PartitionReport report = partition(*graph, Takes({"relu", "neg"}));
  EXPECT_THAT(operators(*graph), ElementsAre("relu", "neg", "add.Tensor"));
  EXPECT_EQ(report.parts, 0);
  ASSERT_EQ(report.left.size(), 3u);
  EXPECT_THAT(report.left[1].reason + report.left[2].reason, HasSubstr("reads constants alone"));
  graph = ir::parse(text, payloads);
  partition(*graph, Takes({"relu", "neg", "add.Tensor"}), true);
  ir::verify(*graph, "partition");
  EXPECT_THAT(operators(*graph), ElementsAre("relu", "taper::delegate", "taper::delegate"));
}

/// A graph of random calls: each reads two earlier values.
std::string random_graph(unsigned seed) {
  std::mt19937 random(seed);
  const auto pick = [&](unsigned n) { return random() % n; };
  std::string lines;
  std::vector<std::string> values = {"%x"};
  for (int i = 0; i < 30; ++i) {
    const std::string name = "%v" + std::to_string(i), a = values[pick(unsigned(values.size()))],
                      b = values[pick(unsigned(values.size()))];
    const char* calls[] = {"relu(", "neg(", "abs("};
    const std::string call = pick(2) == 0 ? "add.Tensor(" + a + ", " + b + ", 1)"
                                          : std::string(calls[pick(3)]) + a + ")";
    lines += name + ": f32[3, 4] = " + call + "\n";
    values.push_back(name);
  }
  for (int i = 25; i < 30; ++i)
    lines += "output \"y" + std::to_string(i) + "\" = %v" + std::to_string(i) + "\n";
  return lines;
}

TEST(partition, takes_a_group_as_one_node) {
  auto graph = graph_of(
      "%a: f32[3, 4] = relu(%x)\n%b: f32[3, 4] = neg(%a)\n%c: f32[3, 4] = add.Tensor(%b, %x, 1)\n"
      "%d: f32[3, 4] = neg(%c)\noutput \"y\" = %d\n");
  const PartitionReport report = partitioned(*graph, TakesPairs());
  EXPECT_THAT(operators(*graph), ElementsAre("taper::delegate", "neg"));
  EXPECT_EQ(report.delegated, 2) << "the group and the sum";
  const ir::Graph& body = *graph->nodes().front().bodies[0];
  EXPECT_THAT(operators(body), ElementsAre("taper::delegate", "add.Tensor"));
  EXPECT_THAT(operators(*body.nodes().front().bodies[0]), ElementsAre("relu", "neg"));
}

TEST(partition, leaves_what_others_read_of_a_group) {
  auto graph = graph_of(
      "%a: f32[3, 4] = relu(%x)\n%b: f32[3, 4] = neg(%a)\n%c: f32[3, 4] = neg(%a)\n"
      "%d: f32[3, 4] = exp(%a)\noutput \"y\" = %b\noutput \"z\" = %c\noutput \"w\" = %d\n");
  partitioned(*graph, TakesPairs());
  EXPECT_THAT(operators(*graph),
              testing::UnorderedElementsAre("relu", "taper::delegate", "taper::delegate", "exp"));
}

TEST(partition, keeps_random_graphs_with_groups_valid) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    auto graph = graph_of(random_graph(seed));
    partitioned(*graph, TakesPairs());
  }
}

TEST(partition, keeps_random_graphs_valid) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    auto graph = graph_of(random_graph(seed));
    const PartitionReport report = partitioned(*graph, Takes({"relu", "add.Tensor"}));
    EXPECT_GT(report.parts, 0);
    EXPECT_EQ(report.delegated + report.left_count(), 30);
  }
}

}  // namespace
}  // namespace taper::partition
