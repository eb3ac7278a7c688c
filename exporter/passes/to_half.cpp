#include "taper/exporter/passes/to_half.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/passes/half_plan.h"
#include "taper/exporter/passes/half_type.h"

namespace taper::passes {
namespace {

using ir::Argument;
using ir::Node;
using ir::Type;
using ir::Value;

bool is_f32(const Value* v) { return v->type.dtype == DType::f32; }

/// Whether at most one dimension is larger than 1.
bool is_vector(const Type& type) {
  return std::count_if(type.sizes, type.sizes + type.rank, [](Dim d) { return !same(d, 1); }) <= 1;
}

class Converter {
 public:
  Converter(ir::Graph& graph, PassContext& context)
      : graph_(graph),
        context_(context),
        half_(*context.dtype),
        plan_(graph, *context.dtype, context.kernels) {
    for (const ir::Constant& c : graph.constants()) payloads_[c.value.get()] = c.payload.get();
  }

  int run() {
    for (ir::State& state : graph_.states()) convert_state(state);
    for (Node& node : graph_.nodes()) {
      if (is_view(node))
        visit_view(node);
      else
        visit(node);
    }
    for (ir::Output& o : graph_.outputs())
      if (o.value != nullptr) o.value = wide(o.value, nullptr);
    for (ir::Write& w : graph_.writes())
      if (halves_.contains(w.state->value.get())) w.value = narrow(w.value, nullptr);
    remove_dead_code(graph_, context_);
    return static_cast<int>(halves_.size() + narrow_.size());
  }

 private:
  // A value that was f32 is one of these:
  //   halves_       a half now
  //   stays_        f32, because it does not depend on the model's data (yet) or would not fit
  //   a constant    f32 in the graph; `narrow` makes the half when one is needed
  //   other data    f32, from an input or from a kernel without halves
  bool is_constant(const Value* v) const { return payloads_.contains(ir::base_of(v)); }
  bool was_f32(const Value* v) const { return is_f32(v) || halves_.contains(v); }

  std::vector<Value*> operands(const Node& node) const {
    std::vector<Value*> list;
    ir::for_each_value(node, [&](Value* v) {
      if (was_f32(v)) list.push_back(v);
    });
    return list;
  }

  void convert_state(ir::State& state) {
    if (!is_f32(state.value.get())) return;
    const bool trained =
        state.kind == ir::StateKind::optimizer || state.kind == ir::StateKind::parameter;
    if (trained)
      throw ExportError(graph_.name() + ": the program writes " + state.path +
                        ", a weight or an optimizer's state; training stays f32: leave out the "
                        "dtype, or export without the method that trains");
    if (state.initial != nullptr) state.initial = half_.convert(*state.initial);
    become_half(state.value.get());
  }

  void become_half(Value* v) {
    v->type.dtype = half_.dtype();
    halves_.insert(v);
  }

  void visit_view(Node& node) {
    const Value* base = ir::viewed(node);
    Value* result = node.result();
    if (result == nullptr) return;
    if (halves_.contains(base)) become_half(result);
    if (stays_.contains(base)) stays_.insert(result);
    if (too_large_.contains(base)) too_large_.insert(result);
    if (too_small_.contains(base)) too_small_.insert(result);
  }

  void visit(Node& node) {
    const std::vector<Value*> given = operands(node);
    const auto stays = [&](const Value* v) { return stays_.contains(v); };
    const bool follows = given.empty() || (std::ranges::any_of(given, stays) &&
                                           std::ranges::all_of(given, [&](const Value* v) {
                                             return stays(v) || stands_beside(v, node);
                                           }));
    // numbers that do not fit a half: in the call itself, or in operands that stayed f32 for this
    // reason
    const bool own_large = has_number(node, &HalfType::is_too_large),
               own_small = has_number(node, &HalfType::is_too_small);
    const auto kept_in = [&](const std::unordered_set<const Value*>& set) {
      return std::ranges::any_of(given,
                                 [&](const Value* v) { return stays(v) && set.contains(v); });
    };
    const bool large = own_large || kept_in(too_large_) ||
                       (follows && std::ranges::any_of(given, [&](const Value* v) {
                          return has_large_element(v);
                        }));
    const bool small = own_small || kept_in(too_small_);

    const bool keeps =
        follows || HalfPlan::grows(node) || own_large || own_small || plan_.leads_to_integers(node);
    const bool in_f32 =
        keeps || large || small || plan_.types_in_half(node) == nullptr ||
        takes_part_of_f32(node) ||
        (plan_.leads_to_f32(node) &&
         std::ranges::none_of(given, [&](const Value* v) { return halves_.contains(v); }));
    if (!keeps && !given.empty() && plan_.types_in_half(node) == nullptr && !ir::is_control(node))
      context_.declined(
          node, std::string("it stays f32: there is no kernel for ") + name_of(half_.dtype()));
    if (!in_f32)
      run_in_half(node);
    else if (!follows)
      edit(node, [&](Value* v) { return wide(v, &node); });
    for (const auto& r : node.results) {
      if (r == nullptr || !is_f32(r.get())) continue;
      if (keeps) stays_.insert(r.get());
      if (large) too_large_.insert(r.get());
      if (small && keeps) too_small_.insert(r.get());
    }
  }

  bool takes_part_of_f32(const Node& node) const {
    const Value* whole = HalfPlan::takes_part_of(node);
    return whole != nullptr && is_f32(whole) && !is_constant(whole);
  }

  /// Whether `v` is a constant that scales or shifts what the node computes, and is smaller than
  /// its result.
  bool stands_beside(const Value* v, const Node& node) const {
    if (!is_constant(v)) return false;
    if (is_vector(ir::base_of(v)->type)) return true;
    const Value* result = node.results.empty() ? nullptr : node.result();
    return result != nullptr && broadcasts_to(v->type, result->type) &&
           !proves_equal(v->type.numel(), result->type.numel());
  }

  /// Whether a Scalar of the call, or a constant of one element, is a number of this kind.
  bool has_number(const Node& node, bool (HalfType::*is_such)(float) const) const {
    return std::ranges::any_of(node.arguments, [&](const Argument& a) {
      if (const auto* s = std::get_if<Scalar>(&a)) return (half_.*is_such)(s->to<float>());
      const auto* v = std::get_if<Value*>(&a);
      if (v == nullptr || *v == nullptr || !is_f32(*v) || !is_constant(*v)) return false;
      const std::span<const float> x = f32_elements(*payloads_.at(ir::base_of(*v)));
      return x.size() == 1 && (half_.*is_such)(x[0]);
    });
  }
  bool has_large_element(const Value* v) const {
    return is_constant(v) && std::ranges::any_of(f32_elements(*payloads_.at(ir::base_of(v))),
                                                 [&](float x) { return half_.is_too_large(x); });
  }

  void run_in_half(Node& node) {
    edit(node, [&](Value* v) { return narrow(v, &node); });
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      Argument a = node.arguments[i];
      if (change_dtype(a, half_.dtype())) graph_.set_argument(&node, i, a);
    }
    const std::vector<Type>& types = *plan_.types_in_half(node);
    for (size_t i = 0; i < node.results.size(); ++i) {
      Value* v = node.result(i);
      if (v != nullptr && is_f32(v) && types[i].dtype == half_.dtype()) become_half(v);
    }
  }
  template <class Change>
  void edit(Node& node, const Change& change) {
    for (size_t i = 0; i < node.arguments.size(); ++i) {
      Argument a = node.arguments[i];
      change_values(a, change);
      graph_.set_argument(&node, i, std::move(a));
    }
  }

  // ---- the other form of a value, made when it is first needed

  /// The half of an f32 value, for `user`; nullptr: for an output or a write.
  Value* narrow(Value* v, Node* user) {
    if (!is_f32(v)) return v;
    if (const auto at = narrow_.find(v); at != narrow_.end()) return at->second;
    Value* half = nullptr;
    if (const auto at = payloads_.find(v); at != payloads_.end())
      half = constant(v, *at->second);
    else if (is_constant(v))
      half = same_view(v, narrow(ir::viewed(*v->node), user), user);
    else
      half = narrowed(v, v->node == nullptr ? user : behind(v->node));
    return narrow_[v] = half;
  }

  /// The f32 form of a value, for `user`. Large constants are kept only as halves.
  Value* wide(Value* v, Node* user) {
    const bool stored_half =
        is_f32(v) && user != nullptr && is_constant(v) && !is_vector(ir::base_of(v)->type);
    if (!halves_.contains(v) && !stored_half) return v;
    if (const auto at = wide_.find(v); at != wide_.end()) return at->second;
    Value* f32 = nullptr;
    // a weight is cast before its view is taken, because kernels read weights in this order
    if (stored_half && v->node != nullptr &&
        proves_equal(v->type.numel(), ir::base_of(v)->type.numel()))
      f32 = same_view(v, wide(ir::viewed(*v->node), user), user);
    else
      f32 = cast(halves_.contains(v) ? v : narrow(v, user), DType::f32, user, user);
    return wide_[v] = f32;
  }

  Value* constant(const Value* v, const ir::Payload& payload) {
    const auto at = std::ranges::find_if(graph_.constants(),
                                         [&](const ir::Constant& c) { return c.value.get() == v; });
    return graph_.add_constant(at->path, half_.convert(payload));
  }

  Value* same_view(const Value* v, Value* base, Node* before) {
    std::vector<Argument> arguments = v->node->arguments;
    arguments[0] = base;
    Type type = v->type;
    type.dtype = base->type.dtype;
    return insert(*v->node->op, std::move(arguments), type, before, v->node);
  }

  /// A cast to a half in which finite numbers stay finite.
  Value* narrowed(Value* v, Node* before) {
    if (!too_large_.contains(v)) return cast(v, half_.dtype(), before, v->node);
    const double largest = half_.largest();
    Type truth = v->type;
    truth.dtype = DType::boolean;
    ir::make_dense(truth);
    Type dense = v->type;
    ir::make_dense(dense);
    Value* infinite = insert(ops::isinf, {v}, truth, before, v->node);
    Value* bounded =
        insert(ops::clamp, {v, Scalar(-largest), Scalar(largest)}, dense, before, v->node);
    Value* kept = insert(ops::where_self, {infinite, v, bounded}, dense, before, v->node);
    return cast(kept, half_.dtype(), before, v->node);
  }

  Value* cast(Value* v, DType dtype, Node* before, const Node* origin) {
    Type type = v->type;
    type.dtype = dtype;
    ir::make_dense(type);
    return insert(ops::_to_copy, {v, dtype}, type, before, origin);
  }

  Value* insert(const Operator& op, std::vector<Argument> arguments, const Type& type, Node* before,
                const Node* origin) {
    const Location at = origin != nullptr ? origin->location : Location{};
    const std::string module = origin != nullptr ? origin->module : "";
    Node* node =
        before != nullptr
            ? graph_.insert_before(before, op, std::move(arguments), {&type, 1}, at, module)
            : graph_.append(op, std::move(arguments), {&type, 1}, at, module);
    return node->result();
  }

  /// The next node in the graph; nullptr: there is none.
  Node* behind(Node* node) {
    const auto next = std::next(node->position);
    return next == graph_.nodes().end() ? nullptr : &*next;
  }

  ir::Graph& graph_;
  PassContext& context_;
  const HalfType half_;
  const HalfPlan plan_;
  std::unordered_map<const Value*, const ir::Payload*> payloads_;
  std::unordered_set<const Value*> halves_, stays_;
  /// Values that may be too large or too small for a half
  std::unordered_set<const Value*> too_large_, too_small_;
  std::unordered_map<Value*, Value*> narrow_, wide_;
};

}  // namespace

int to_half(ir::Graph& graph, PassContext& context) {
  const DType half = context.dtype.value();
  if (!is_half(half))
    throw ExportError(graph.name() + ": half precision is f16 or bf16, not " + name_of(half));
  return Converter(graph, context).run();
}

}  // namespace taper::passes
