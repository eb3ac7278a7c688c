#include "taper/exporter/emit/flatten.h"

#include <utility>

#include "taper/exporter/ir/delegate.h"

namespace taper::emit {
namespace {

using ir::Value;
using StepKind = Step::Kind;

class Flattener {
 public:
  explicit Flattener(const std::unordered_set<const ir::Node*>& in_place) : in_place_(in_place) {}

  Flattened run(const ir::Graph& graph) {
    add_nodes(graph);
    for (const ir::Write& w : graph.writes()) copy(w.value, w.state->value.get(), nullptr);
    return std::move(flat_);
  }

 private:
  int here() const { return static_cast<int>(flat_.steps.size()); }
  int add(Step step) {
    flat_.steps.push_back(step);
    flat_.loop_of.push_back(loop_);
    return here() - 1;
  }
  void copy(const Value* from, const Value* to, const ir::Node* node) {
    add({StepKind::copy, node, from, to});
  }
  void lies_on(const Value* base, const Value* other) { flat_.aliases[base] = ir::base_of(other); }

  void add_nodes(const ir::Graph& graph) {
    for (const ir::Node& node : graph.nodes()) {
      if (node.op == &ir::ops::cond)
        branch(node);
      else if (node.op == &ir::ops::while_loop)
        loop(node);
      else if (in_place_.contains(&node))
        ir::for_each_value(node, [&](const Value* v) { lies_on(v, node.result()); });
      else if (target::is_instruction(node) || ir::is_delegate(node))
        add({StepKind::kernel, &node});
      else
        continue;
      bind_symbols(graph, &node);  // numbers that this node has computed are read at once
    }
  }

  /// Adds a bind step for each symbol that is in a result of `producer`; nullptr: in an input of a
  /// body.
  void bind_symbols(const ir::Graph& graph, const ir::Node* producer) {
    for (const ir::SymbolBinding& s : graph.symbols())
      if (s.value != nullptr && s.value->node == producer &&
          flat_.root_of(s.value)->origin == Value::Origin::result)
        add({StepKind::bind, producer, s.value, nullptr, &s});
  }

  void body(const ir::Graph& graph) {
    bind_symbols(graph, nullptr);
    add_nodes(graph);
  }

  /// Reads a predicate now, because a later instruction may change it. Constants and inputs do not
  /// change.
  void test(const Value* predicate, const ir::Node& node) {
    if (flat_.root_of(predicate)->origin == Value::Origin::result)
      add({StepKind::test, &node, predicate});
  }

  void branch(const ir::Node& node) {
    const std::vector<Value*> operands = ir::operands_of(node);
    const Value* predicate = std::get<Value*>(node.arguments[0]);
    for (const auto& b : node.bodies)
      for (size_t i = 0; i < operands.size(); ++i) lies_on(b->inputs()[i].value.get(), operands[i]);
    const auto side = [&](const ir::Graph& graph) {
      body(graph);
      for (size_t i = 0; i < node.results.size(); ++i)
        copy(graph.outputs()[i].value, node.result(i), &node);
    };
    test(predicate, node);
    const int unless = add({StepKind::jump_unless, &node, predicate});
    side(*node.bodies[0]);
    const int over = add({StepKind::jump, &node});
    flat_.steps[static_cast<size_t>(unless)].target = here();
    side(*node.bodies[1]);
    flat_.steps[static_cast<size_t>(over)].target = here();
  }

  // A round begins with the condition. If it is false, the round jumps to its end, which tests the
  // same boolean.
  void loop(const ir::Node& node) {
    const std::vector<Value*> operands = ir::operands_of(node);
    const size_t carries = node.results.size();
    for (const auto& b : node.bodies)
      for (size_t i = 0; i < operands.size(); ++i)
        lies_on(b->inputs()[i].value.get(), i < carries ? node.result(i) : operands[i]);
    for (size_t i = 0; i < carries; ++i) copy(operands[i], node.result(i), &node);
    const int begin = add({StepKind::loop_begin, &node});
    const int around = std::exchange(loop_, static_cast<int>(flat_.loops.size()));
    flat_.loops.push_back({begin, 0, around});
    body(*node.bodies[0]);
    const Value* predicate = node.bodies[0]->outputs()[0].value;
    test(predicate, node);
    const int unless = add({StepKind::jump_unless, &node, predicate});
    body(*node.bodies[1]);
    for (size_t i = 0; i < carries; ++i)
      copy(node.bodies[1]->outputs()[i].value, node.result(i), &node);
    const int end = add({StepKind::loop_end, &node, predicate, nullptr, nullptr, begin});
    flat_.steps[static_cast<size_t>(begin)].target = end;
    flat_.steps[static_cast<size_t>(unless)].target = end;
    flat_.loops[static_cast<size_t>(loop_)].end = end;
    loop_ = around;
  }

  const std::unordered_set<const ir::Node*>& in_place_;
  Flattened flat_;
  int loop_ = -1;  // the innermost loop
};

}  // namespace

const Value* Flattened::root_of(const Value* value) const {
  value = ir::base_of(value);
  const Value* root = value;
  for (auto at = aliases.find(root); at != aliases.end(); at = aliases.find(root))
    root = at->second;
  while (value != root) value = std::exchange(aliases.at(value), root);
  return root;
}

Flattened flatten(const ir::Graph& graph, const std::unordered_set<const ir::Node*>& in_place) {
  return Flattener(in_place).run(graph);
}

}  // namespace taper::emit
