// Moves the nodes of a part into the body of a delegate.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/delegate.h"
#include "taper/exporter/partition/parts.h"

namespace taper::partition {
namespace {

using ir::Value;

bool is_view(const ir::Node& node) { return node.op->category == Category::view; }

class Replacer {
 public:
  Replacer(ir::Graph& graph, const Part& part, const std::function<bool(const ir::Node&)>& takes)
      : graph_(graph),
        part_(part),
        takes_(takes),
        members_(part.begin(), part.end()),
        body_(std::make_unique<ir::Graph>("delegated")) {}

  void run(const std::string& backend) {
    find_staying_views();
    for (ir::Node* node : part_)
      if (!is_copied(*node) && !is_outside_only(*node)) copy(*node);
    std::vector<Value*> results = find_results();
    std::vector<ir::Type> types;
    for (const Value* r : results) {
      body_->add_output(r->name, inside_.at(r));
      types.push_back(r->type);
    }
    ir::Node* delegate = append(backend, types);
    move_into_place(*delegate);
    for (size_t i = 0; i < results.size(); ++i) {
      graph_.replace_uses(results[i], delegate->result(i));
      graph_.swap_names(results[i], delegate->result(i));
    }
    for (auto node = part_.rbegin(); node != part_.rend(); ++node)
      if (!staying_.contains(*node)) graph_.erase(*node);
    graph_.erase_unused_constants();
  }

 private:
  bool is_inside(const ir::Node* node) const { return members_.contains(node); }

  /// A view whose result is needed outside stays there, and so does the view that it looks at.
  void find_staying_views() {
    for (auto at = part_.rbegin(); at != part_.rend(); ++at) {
      const ir::Node& node = **at;
      if (is_view(node) && is_needed_outside(*node.result())) staying_.insert(&node);
      if (is_view(node) && !is_needed_inside(*node.result())) outside_only_.insert(&node);
    }
  }
  bool is_needed_inside(const Value& value) const {
    return std::ranges::any_of(
        value.users, [&](const ir::Node* n) { return is_inside(n) && !outside_only_.contains(n); });
  }
  bool is_outside_only(const ir::Node& node) const { return outside_only_.contains(&node); }
  bool is_needed_outside(const Value& value) const {
    return graph_.is_returned(&value) || std::ranges::any_of(value.users, [&](const ir::Node* n) {
             return !is_inside(n) || staying_.contains(n);
           });
  }

  // ---- the body ----

  bool is_copied(const ir::Node& node) const {
    return std::ranges::any_of(
        node.results, [&](const auto& r) { return r != nullptr && inside_.contains(r.get()); });
  }
  void copy(ir::Node& node) {
    std::vector<ir::Argument> arguments;
    for (const ir::Argument& a : node.arguments) arguments.push_back(mapped(a));
    if (node.op == &ops::view) make_viewable(node, arguments);
    const ir::Node* inner =
        ir::is_delegate(node)
            ? take_over(node, std::move(arguments))
            : ir::append(*body_, *node.op, std::move(arguments), node.location, node.module);
    for (size_t i = 0; i < node.results.size(); ++i)
      if (node.result(i) != nullptr) inside_[node.result(i)] = inner->result(i);
  }
  /// Operands are dense in the body, also those that a view shows in another order. What a `view`
  /// saw without a copy may need one then.
  void make_viewable(const ir::Node& view, std::vector<ir::Argument>& arguments) {
    std::vector<Check> assumed;
    try {
      static_cast<void>(ir::infer(*view.op, arguments, assumed));
    } catch (const ExportError&) {
      arguments[0] =
          ir::append(*body_, ops::clone, {arguments[0]}, view.location, view.module)->result();
    }
  }
  /// A group of nodes (partition.h) with its body, which the graph does not need any more.
  const ir::Node* take_over(ir::Node& group, std::vector<ir::Argument> arguments) {
    std::vector<ir::Type> types;
    for (const auto& r : group.results) types.push_back(r->type);
    return body_->append_control(ir::ops::delegate, std::move(arguments), std::move(group.bodies),
                                 types, group.location, group.module);
  }
  ir::Argument mapped(const ir::Argument& argument) {
    ir::Argument result = argument;
    if (auto* one = std::get_if<Value*>(&result)) {
      *one = mapped(*one);
    } else if (auto* many = std::get_if<std::vector<Value*>>(&result)) {
      for (Value*& v : *many) v = mapped(v);
    }
    return result;
  }
  Value* mapped(Value* value) {
    if (value == nullptr) return nullptr;
    if (const auto at = inside_.find(value); at != inside_.end()) return at->second;
    if (value->origin == Value::Origin::constant)
      inside_[value] = constant(*value);
    else if (shows_constant(*value))
      copy(*value->node);  // another part needs it, too
    else
      inside_[value] = operand(value);
    return inside_.at(value);
  }
  /// Whether the value is a view of a constant, through views that may be copied.
  bool shows_constant(const Value& value) const {
    if (value.origin == Value::Origin::constant) return true;
    return value.node != nullptr && is_view(*value.node) && takes_(*value.node) &&
           shows_constant(*ir::viewed(*value.node));
  }
  Value* constant(const Value& value) {
    const auto& constants = graph_.constants();
    const auto at = std::ranges::find_if(
        constants, [&](const ir::Constant& c) { return c.value.get() == &value; });
    return body_->add_constant(at->path, at->payload);
  }
  Value* operand(Value* value) {
    operands_.push_back(value);
    ir::Type type = value->type;
    ir::make_dense(type);
    return body_->add_input(value->name, type);
  }

  std::vector<Value*> find_results() const {
    std::vector<Value*> results;
    for (const ir::Node* node : part_)
      for (const auto& r : node->results)
        if (r != nullptr && !is_view(*node) && is_needed_outside(*r)) results.push_back(r.get());
    return results;
  }

  // ---- the graph ----

  ir::Node* append(const std::string& backend, const std::vector<ir::Type>& types) {
    const auto known =
        std::ranges::find_if(part_, [](const ir::Node* n) { return n->location.known(); });
    const ir::Node& first = known == part_.end() ? *part_[0] : **known;
    std::vector<std::unique_ptr<ir::Graph>> bodies;
    bodies.push_back(std::move(body_));
    return graph_.append_control(ir::ops::delegate, {backend, operands_}, std::move(bodies), types,
                                 first.location, first.module);
  }

  /// The delegate goes behind the last node of the part. Nodes before this place that read results
  /// go behind the delegate.
  void move_into_place(ir::Node& delegate) {
    auto& nodes = graph_.nodes();
    nodes.splice(std::next(part_.back()->position), nodes, delegate.position);
    const auto behind = std::next(delegate.position);
    std::unordered_set<const ir::Node*> later(members_.begin(), members_.end());
    for (auto at = part_.front()->position; at != delegate.position;) {
      ir::Node& node = *at++;
      if (is_inside(&node) && !staying_.contains(&node)) continue;
      bool reads = false;
      ir::for_each_value(node, [&](const Value* v) { reads |= later.contains(v->node); });
      if (!reads && !is_inside(&node)) continue;
      later.insert(&node);
      nodes.splice(behind, nodes, node.position);
    }
  }

  ir::Graph& graph_;
  const Part& part_;
  const std::function<bool(const ir::Node&)>& takes_;
  const std::unordered_set<const ir::Node*> members_;
  std::unordered_set<const ir::Node*> staying_;       // views that the graph keeps
  std::unordered_set<const ir::Node*> outside_only_;  // of these, those that the body lacks
  std::unique_ptr<ir::Graph> body_;
  std::unordered_map<const Value*, Value*> inside_;  // the body's value for each of the graph
  std::vector<Value*> operands_;
};

}  // namespace

void replace_part(ir::Graph& graph, const Part& part, const std::string& backend,
                  const std::function<bool(const ir::Node&)>& takes) {
  // earlier parts may have moved nodes
  const std::unordered_set<const ir::Node*> members(part.begin(), part.end());
  Part ordered;
  for (ir::Node& node : graph.nodes())
    if (members.contains(&node)) ordered.push_back(&node);
  Replacer(graph, ordered, takes).run(backend);
}

}  // namespace taper::partition
