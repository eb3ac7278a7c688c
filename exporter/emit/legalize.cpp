#include "taper/exporter/emit/legalize.h"

#include <algorithm>
#include <map>

#include "taper/exporter/ir/delegate.h"

namespace taper::emit {
namespace {

using ir::Value;
using target::Candidates;

class Legalizer {
 public:
  explicit Legalizer(ir::Graph& graph) : graph_(graph) {}

  int run(const std::map<const ir::Node*, Candidates>& candidates) {
    for (ir::Node& node : graph_.nodes()) {
      if (auto at = candidates.find(&node); at != candidates.end()) {
        const Candidates& c = at->second;
        arguments_of(node, [&](size_t i, const Value* v) {
          return meets(v, c.strides(static_cast<int>(i)));
        });
      } else if (ir::is_control(node)) {
        arguments_of(node, [](size_t, const Value* v) { return is_whole(v); });
      }
    }
    std::erase_if(graph_.writes(),
                  [](const ir::Write& w) { return w.value == w.state->value.get(); });
    for (ir::Output& o : graph_.outputs())
      if (o.value != nullptr && !may_be_output(o.value)) o.value = clone_at_end(o.value);
    for (ir::Write& w : graph_.writes())
      if (!may_be_written(w.value)) w.value = clone_at_end(w.value);
    return clones_;
  }

  /// For the body of a loop: output k must not be the input at another carried place j, because
  /// place j may hold its next value by then.
  int keep_apart() {
    for (size_t k = 0; k < graph_.outputs().size(); ++k) {
      ir::Output& o = graph_.outputs()[k];
      const Value* base = ir::base_of(o.value);
      if (base->origin == Value::Origin::input && base->index != static_cast<int>(k) &&
          base->index < static_cast<int>(graph_.outputs().size()))
        o.value = clone_at_end(o.value);
    }
    return clones_;
  }

 private:
  static bool meets(const Value* v, Strides contract) {
    return contract == Strides::any ||
           (contract == Strides::rows ? ir::has_dense_rows(v->type) : ir::is_dense(v->type));
  }

  /// Replaces the values that argument i cannot take as they are by clones.
  template <class Takes>
  void arguments_of(ir::Node& node, const Takes& takes) {
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      std::vector<Value*> to_clone;
      ir::for_each_value(node.arguments[i], [&](Value* v) {
        if (!takes(i, v)) to_clone.push_back(v);
      });
      for (Value* v : to_clone) {
        auto [at, is_new] = clones_of_.try_emplace(v, nullptr);
        if (is_new) at->second = clone(v, &node);
        replace_in_argument(node, i, v, at->second);
      }
    }
  }

  void replace_in_argument(ir::Node& node, size_t i, Value* old, Value* replacement) {
    ir::Argument argument = node.arguments[i];
    if (auto* list = std::get_if<std::vector<Value*>>(&argument))
      std::ranges::replace(*list, old, replacement);
    else
      argument = replacement;
    graph_.set_argument(&node, i, std::move(argument));
  }

  bool may_be_output(const Value* v) const {
    const Value* base = ir::base_of(v);
    return is_whole(v) && !(base->origin == Value::Origin::state && is_written(base));
  }
  bool may_be_written(const Value* v) const {
    return is_whole(v) && ir::base_of(v)->origin != Value::Origin::state;
  }
  /// Whether the value is dense and begins at the start of its storage.
  static bool is_whole(const Value* v) {
    return ir::is_dense(v->type) && proves_equal(v->type.offset, 0);
  }
  bool is_written(const Value* state) const {
    return std::ranges::any_of(graph_.writes(),
                               [&](const ir::Write& w) { return w.state->value.get() == state; });
  }

  Value* clone(Value* v, ir::Node* before) {
    ir::Type type = v->type;
    ir::make_dense(type);
    ++clones_;
    const ir::Node* origin = before != nullptr ? before : v->node;
    const Location at = origin != nullptr ? origin->location : Location{};
    const std::string module = origin != nullptr ? origin->module : "";
    return (before != nullptr
                ? graph_.insert_before(before, ops::clone, {v}, {&type, 1}, at, module)
                : graph_.append(ops::clone, {v}, {&type, 1}, at, module))
        ->result();
  }
  Value* clone_at_end(Value* v) { return clone(v, nullptr); }

  ir::Graph& graph_;
  std::map<Value*, Value*> clones_of_;
  int clones_ = 0;
};

}  // namespace

int legalize(ir::Graph& graph, const target::KernelTable& kernels) {
  const auto candidates = target::find_all_candidates(graph, kernels);
  int clones = 0;
  ir::for_each_own_graph(graph, [&](ir::Graph& g) {
    clones += Legalizer(g).run(candidates);
    for (ir::Node& node : g.nodes())
      if (node.op == &ir::ops::while_loop) clones += Legalizer(*node.bodies[1]).keep_apart();
  });
  target::find_all_candidates(graph, kernels);  // the clones need kernels, too
  return clones;
}

}  // namespace taper::emit
