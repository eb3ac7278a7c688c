// Puts nodes together that a backend takes only as a whole.
#include <unordered_map>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/delegate.h"
#include "taper/exporter/partition/partition.h"
#include "taper/exporter/partition/parts.h"

namespace taper::partition {
namespace {

using ir::Value;

/// Copies a group into a body. Other nodes may read what is computed on the way.
class Grouper {
 public:
  explicit Grouper(ir::Graph& graph) : graph_(graph) {}

  void run(const Group& group, const std::string& backend) {
    for (const ir::Node* node : group) copy(*node);
    ir::Node& last = *group.back();
    body_->add_output(last.result()->name, inside_.at(last.result()));
    std::vector<std::unique_ptr<ir::Graph>> bodies;
    bodies.push_back(std::move(body_));
    const ir::Type types[] = {last.result()->type};
    ir::Node* delegate =
        graph_.append_control(ir::ops::delegate, {backend, operands_}, std::move(bodies), types,
                              last.location, last.module);
    graph_.nodes().splice(last.position, graph_.nodes(), delegate->position);
    graph_.replace_uses(last.result(), delegate->result());
    graph_.swap_names(last.result(), delegate->result());
    for (auto node = group.rbegin(); node != group.rend(); ++node) erase_if_unused(**node);
    graph_.erase_unused_constants();
  }

 private:
  void copy(const ir::Node& node) {
    std::vector<ir::Argument> arguments = node.arguments;
    for (ir::Argument& a : arguments) {
      if (auto* one = std::get_if<Value*>(&a))
        *one = mapped(*one);
      else if (auto* many = std::get_if<std::vector<Value*>>(&a))
        for (Value*& v : *many) v = mapped(v);
    }
    const ir::Node* inner =
        ir::append(*body_, *node.op, std::move(arguments), node.location, node.module);
    for (size_t i = 0; i < node.results.size(); ++i)
      if (node.result(i) != nullptr) inside_[node.result(i)] = inner->result(i);
  }
  Value* mapped(Value* value) {
    if (value == nullptr) return nullptr;
    const auto [at, is_new] = inside_.try_emplace(value);
    if (is_new)
      at->second = value->origin == Value::Origin::constant ? constant(*value) : operand(value);
    return at->second;
  }
  Value* constant(const Value& value) {
    for (const ir::Constant& c : graph_.constants())
      if (c.value.get() == &value) return body_->add_constant(c.path, c.payload);
    return nullptr;  // a value with this origin is in the list
  }
  Value* operand(Value* value) {
    operands_.push_back(value);
    ir::Type type = value->type;
    ir::make_dense(type);
    return body_->add_input(value->name, type);
  }
  void erase_if_unused(ir::Node& node) {
    for (const auto& r : node.results)
      if (r != nullptr && graph_.is_used(r.get())) return;
    graph_.erase(&node);
  }

  ir::Graph& graph_;
  std::unique_ptr<ir::Graph> body_ = std::make_unique<ir::Graph>("grouped");
  std::unordered_map<const Value*, Value*> inside_;  // the body's value for each of the graph
  std::vector<Value*> operands_;
};

}  // namespace

int group(ir::Graph& graph, const Delegate& delegate) {
  give_constants_to_bodies(graph);
  const std::vector<Group> groups = delegate.groups(graph);
  for (const Group& g : groups) Grouper(graph).run(g, delegate.name());
  return static_cast<int>(groups.size());
}

}  // namespace taper::partition
