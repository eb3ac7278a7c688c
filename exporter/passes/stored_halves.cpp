#include "taper/exporter/passes/stored_halves.h"

#include <algorithm>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/half_type.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;

/// Smaller weights gain nothing: constants lie at multiples of 64 in a file.
constexpr int64_t least_stored_elements = 256;

bool reads_weights(const Operator& op) {
  static const Operator* const table[] = {&ops::linear, &ops::mm, &ops::addmm, &ops::bmm,
                                          &ops::embedding};
  return std::ranges::find(table, &op) != std::end(table);
}

/// Calls `visit(node, argument, value)` for each node that reads `v` or a view of it.
template <class F>
void for_each_reader(Value* v, const F& visit) {
  const std::vector<Node*> users = v->users;  // `visit` may change them
  for (size_t u = 0; u < users.size(); ++u) {
    if (std::find(users.begin(), users.begin() + static_cast<std::ptrdiff_t>(u), users[u]) !=
        users.begin() + static_cast<std::ptrdiff_t>(u))
      continue;  // seen
    Node* node = users[u];
    if (node->op->category == Category::view) {
      for_each_reader(node->result(), visit);
      continue;
    }
    for (size_t i = 0; i < node->arguments.size(); ++i)
      if (const auto* read = std::get_if<Value*>(&node->arguments[i]);
          read != nullptr && *read == v)
        visit(node, i, v);
  }
}

/// The constant that a node widens to f32; nullptr: it does something else.
Value* widened_constant(const Node& node) {
  if (node.op != &ops::_to_copy || node.results.empty() || node.result() == nullptr ||
      node.result()->type.dtype != DType::f32)
    return nullptr;
  const auto* source = std::get_if<Value*>(&node.arguments[0]);
  if (source == nullptr || *source == nullptr) return nullptr;
  Value* v = *source;
  const bool is_weight = v->origin == Value::Origin::constant && is_half(v->type.dtype) &&
                         v->type.rank >= 2 &&
                         proves_at_least(v->type.numel(), Dim(least_stored_elements));
  return is_weight ? v : nullptr;
}

class StoredHalves {
 public:
  StoredHalves(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    std::vector<Node*> nodes;
    for (Node& node : graph_.nodes())
      if (widens_stored_weight(node, context_.exact)) nodes.push_back(&node);
    for (Node* node : nodes) read_as_stored(*node);
    if (changes_ > 0) remove_dead_code(graph_, context_);
    return changes_;
  }

 private:
  void read_as_stored(Node& widening) {
    Value* halves = widened_constant(widening);
    Value* stored = nullptr;  // f32 in halves, made when it is needed
    for_each_reader(widening.result(), [&](Node* node, size_t i, Value* v) {
      if (node->op == &ops::embedding && i == 0 && v == widening.result())
        return look_up(node, halves);
      if (!reads_halves(*node, i, *v, halves->type.dtype)) return;
      if (stored == nullptr) stored = constant_in_halves(halves);
      graph_.set_argument(node, i, same_view(v, widening.result(), stored, node));
      context_.did(*node, std::string("it reads a weight as it is stored, in ") +
                              name_of(halves->type.dtype));
      ++changes_;
    });
  }

  bool reads_halves(const Node& node, size_t i, const Value& v, DType dtype) const {
    if (!reads_weights(*node.op)) return false;
    return read_in_halves(context_.kernels.candidates(node), node, i, v, HalfType(dtype).layout());
  }

  /// The same bytes as an f32 constant.
  Value* constant_in_halves(const Value* halves) {
    const ir::Constant* constant = nullptr;
    for (const ir::Constant& c : graph_.constants())
      if (c.value.get() == halves) constant = &c;
    ir::Payload payload = *constant->payload;
    payload.layout = HalfType(payload.dtype).layout();
    payload.dtype = DType::f32;
    return graph_.add_constant(constant->path,
                               std::make_shared<const ir::Payload>(std::move(payload)));
  }

  /// The view of `to` that `v` is of `from`.
  Value* same_view(Value* v, const Value* from, Value* to, Node* before) {
    if (v == from) return to;
    std::vector<ir::Argument> arguments = v->node->arguments;
    arguments[0] = same_view(ir::viewed(*v->node), from, to, before);
    return ir::insert_before(graph_, before, *v->node->op, std::move(arguments), v->node->location,
                             v->node->module)
        ->result();
  }

  /// Looks up rows of halves and widens these.
  void look_up(Node* node, Value* halves) {
    std::vector<ir::Argument> arguments = node->arguments;
    arguments[0] = halves;
    Node* rows = ir::insert_before(graph_, node, *node->op, std::move(arguments), node->location,
                                   node->module);
    Node* wide = ir::insert_before(graph_, node, ops::_to_copy, {rows->result(), DType::f32},
                                   node->location, node->module);
    context_.did(*node, std::string("it looks up rows of ") + name_of(halves->type.dtype));
    graph_.replace_uses(node->result(), wide->result());
    graph_.swap_names(node->result(), wide->result());
    ++changes_;
  }

  ir::Graph& graph_;
  PassContext& context_;
  int changes_ = 0;
};

}  // namespace

bool widens_stored_weight(const ir::Node& node, bool exact) {
  const Value* constant = widened_constant(node);
  if (constant == nullptr || (exact && constant->type.dtype == DType::bf16)) return false;
  bool is_read = false;
  for_each_reader(node.result(),
                  [&](Node* reader, size_t, Value*) { is_read |= reads_weights(*reader->op); });
  return is_read;
}

int read_stored_halves(ir::Graph& graph, PassContext& context) {
  return StoredHalves(graph, context).run();
}

}  // namespace taper::passes
