#include "taper/exporter/quantize/static/plan.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "taper/exporter/base/error.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/passes/replace.h"
#include "taper/exporter/quantize/static/pattern.h"

namespace taper::quantize {
namespace {

using ir::Node;
using ir::Value;

bool is_f32(const Value* v) { return v != nullptr && v->type.dtype == DType::f32; }

bool has_only_f32_operands(const Node& node) {
  bool all = true;
  ir::for_each_value(node, [&](const Value* v) { all &= is_f32(v); });
  return all;
}

/// A node that follows from constants alone, such as the transposing view of a weight.
bool reads_only_constants(const Node& node) {
  bool any = false, all = true;
  ir::for_each_value(node, [&](const Value* v) {
    any = true;
    all &= ir::base_of(v)->origin == Value::Origin::constant;
  });
  return any && all;
}

bool has_factor(const Node& node) {
  const auto is_not_one = [](const Scalar* s) { return s == nullptr || s->to<double>() != 1; };
  if (node.op == &ops::add_Tensor)
    return is_not_one(ir::Call<ops::add_Tensor>(node).get<"alpha">());
  if (node.op == &ops::sub_Tensor)
    return is_not_one(ir::Call<ops::sub_Tensor>(node).get<"alpha">());
  return false;
}

bool pads_with_infinity(const Node& node) {
  if (node.op != &ops::constant_pad_nd) return false;
  const Scalar* value = ir::Call<ops::constant_pad_nd>(node).get<"value">();
  return value == nullptr || !std::isfinite(value->to<double>());
}

/// Groups of values, joined by and by.
class Groups {
 public:
  bool has(const Value* v) const { return set_of_.contains(v); }
  void add(const Value* v, std::optional<Grid> known = {}) {
    if (set_of_.try_emplace(v, parents_.size()).second) {
      parents_.push_back(parents_.size());
      known_.push_back(known);
    }
  }
  void join(const Value* a, const Value* b) {
    const size_t x = set_of(a), y = set_of(b);
    if (x == y) return;
    parents_[y] = x;
    if (known_[x] != known_[y]) known_[x].reset();
  }
  size_t set_of(const Value* v) const {
    size_t set = set_of_.at(v);
    while (parents_[set] != set) set = parents_[set];
    return set;
  }
  const std::optional<Grid>& known(size_t set) const { return known_[set]; }

 private:
  std::unordered_map<const Value*, size_t> set_of_;
  std::vector<size_t> parents_;
  std::vector<std::optional<Grid>> known_;
};

class Planner {
 public:
  Planner(ir::Graph& graph, const StaticOptions& options, const Node* only)
      : graph_(graph), options_(options), only_(only), fitted_(options.exclude.size()) {}

  Plan run() {
    for (Node& node : graph_.nodes()) visit(node);
    for (size_t i = 0; i < fitted_.size(); ++i)
      if (!fitted_[i])
        throw ExportError("nothing is excluded by \"" + options_.exclude[i] +
                          "\": it fits no module, operator or result");
    list_values();
    return std::move(plan_);
  }

 private:
  void visit(Node& node) {
    const std::string excluded = why_excluded(node);
    if (node.results.empty() || !is_f32(node.result()) || reads_only_constants(node)) return;
    const Role role = role_of(*node.op);
    Decision decision{node.result()->name, ir::describe(node), false, ""};
    if (role == Role::limit && joins_its_producer(node) && excluded.empty()) {
      decision.quantized = true;
      decision.why = "joins the node before it";
      make_integers(node.result());
      plan_.ends.emplace_back(producer_of_limit(node), node.result());
    } else {
      decision.why = excluded.empty() ? why_float(node, role) : excluded;
      decision.quantized = decision.why.empty();
      if (decision.quantized) quantize(node, role, decision.why);
    }
    plan_.decisions.push_back(std::move(decision));
  }

  std::string why_excluded(const Node& node) {
    std::string why;
    for (size_t i = 0; i < fitted_.size(); ++i) {
      const std::string& pattern = options_.exclude[i];
      bool here = matches(pattern, node.module) || matches(pattern, name_of(*node.op));
      for (const auto& r : node.results) here |= r != nullptr && matches(pattern, r->name);
      if (!here) continue;
      fitted_[i] = true;
      why = "excluded by \"" + pattern + "\"";
    }
    for (const auto& r : node.results)
      if (r != nullptr && options_.float_results.contains(r->name))
        why = "it was chosen to stay float";
    return why;
  }

  /// Why a node stays float; empty: it does not.
  std::string why_float(const Node& node, Role role) const {
    if (only_ != nullptr && &node != only_) return "not chosen";
    if (ir::is_control(node)) return "branches and loops stay float";
    const std::string op(name_of(*node.op));
    if (role == Role::none) return "there is no int8 form of " + op;
    if (!has_only_f32_operands(node)) return "an operand is not f32";
    if (role == Role::product)
      return product_of(node) ? "" : "its weight is no constant, or it has factors";
    if (has_factor(node)) return "it multiplies an operand by a factor";
    if (pads_with_infinity(node)) return "it pads with infinity";
    const bool is_own = role == Role::function || role == Role::bounded;
    if (is_own && graph_.is_returned(node.result())) return "its result is an output of the model";
    if (only_ == nullptr && !reads_integers(node)) return "its input is float";
    return "";
  }

  bool reads_integers(const Node& node) const {
    return std::ranges::any_of(activations_of(node),
                               [&](const Value* v) { return integers_.contains(v); });
  }

  void quantize(Node& node, Role role, std::string& remark) {
    const std::vector<Value*> activations = activations_of(node);
    for (Value* v : activations) groups_.add(v);
    plan_.reads[&node] = activations;
    if (role == Role::product) plan_.products.push_back(&node);
    if (role == Role::product || role == Role::arithmetic) {
      if (limit_behind(node) != nullptr) {
        waiting_.insert(node.result());  // the limit gets the grid
        return;
      }
    }
    make_integers(node.result(),
                  role == Role::bounded ? std::optional(grid_of_bounded(*node.op)) : std::nullopt);
    if (role == Role::move || role == Role::limit) {
      for (const Value* v : activations) groups_.join(v, node.result());
      remark = "has the scale of its input";
    } else {
      plan_.ends.emplace_back(&node, node.result());
    }
  }

  /// The limit that can join a node.
  const Node* limit_behind(const Node& node) {
    const Value* v = node.result();
    if (!passes::has_one_reader(graph_, v)) return nullptr;
    const Node* reader = v->users[0];
    const bool fits = role_of(*reader->op) == Role::limit && is_f32(reader->result()) &&
                      has_only_f32_operands(*reader) && why_excluded(*reader).empty();
    return fits ? reader : nullptr;
  }
  Node* producer_of_limit(const Node& limit) const { return activations_of(limit)[0]->node; }
  bool joins_its_producer(const Node& limit) const {
    const std::vector<Value*> activations = activations_of(limit);
    return activations.size() == 1 && waiting_.contains(activations[0]);
  }

  void make_integers(const Value* v, std::optional<Grid> known = {}) {
    groups_.add(v, known);
    integers_.insert(v);
  }

  void list_values() {
    std::unordered_map<size_t, size_t> index;
    const auto list = [&](Value* v) {
      if (v == nullptr || !groups_.has(v)) return;
      const size_t set = groups_.set_of(v);
      const auto [at, is_new] = index.try_emplace(set, plan_.groups.size());
      if (is_new) plan_.groups.push_back({{}, groups_.known(set)});
      plan_.groups[at->second].values.push_back(v);
      plan_.values.push_back({v, at->second, integers_.contains(v)});
    };
    for (const ir::Input& input : graph_.inputs()) list(input.value.get());
    for (const ir::State& state : graph_.states()) list(state.value.get());
    for (const ir::Constant& constant : graph_.constants()) list(constant.value.get());
    for (const Node& node : graph_.nodes())
      for (const auto& r : node.results) list(r.get());
  }

  ir::Graph& graph_;
  const StaticOptions& options_;
  const Node* only_;
  std::vector<bool> fitted_;
  Plan plan_;
  Groups groups_;
  std::unordered_set<const Value*> integers_;  ///< results of quantized nodes
  std::unordered_set<const Value*> waiting_;   ///< results that a limit joins
};

}  // namespace

Plan make_plan(ir::Graph& graph, const StaticOptions& options, const Node* only) {
  return Planner(graph, options, only).run();
}

}  // namespace taper::quantize
