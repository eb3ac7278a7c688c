#include <algorithm>
#include <unordered_map>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/dispatch.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/control_flow.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using eager::Tensor;

/// A folded constant may have so many times the bytes of the constants that it is computed from, or
/// so many bytes in any case.
constexpr int64_t allowed_growth = 2, always_allowed_bytes = 4096;

class ConstantFolder {
 public:
  ConstantFolder(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    eager::NoGrad guard;
    for (const ir::Constant& c : graph_.constants())
      known_[c.value.get()] = ir::tensor_of(c.payload);
    std::vector<ir::Node*> folded;
    for (ir::Node& node : graph_.nodes())
      if (is_foldable(node)) {
        evaluate(node);
        folded.push_back(&node);
      }
    // a value becomes a constant only if a node that remains reads it
    int changes = 0;
    for (ir::Node* node : folded) {
      if (node->op->category == Category::view) continue;  // views of constants cost nothing
      for (const auto& r : node->results)
        if (r != nullptr && is_needed(r.get())) {
          ir::Value* constant = graph_.add_constant("", ir::payload_of(known_.at(r.get())));
          graph_.replace_uses(r.get(), constant);
          ++changes;
        }
    }
    if (changes > 0) remove_dead_code(graph_, context_);
    return changes;
  }

 private:
  bool is_foldable(const ir::Node& node) const {
    const Category category = node.op->category;
    if (category == Category::symbolic || category == Category::check || ir::is_control(node))
      return false;
    bool foldable = true;
    int64_t bytes_in = 0, bytes_out = 0;
    for (const ir::Argument& a : node.arguments) {
      ir::for_each_value(a, [&](const ir::Value* v) {
        foldable = foldable && known_.contains(v);
        if (foldable) bytes_in += ir::size_in_bytes(v->type).value();
      });
      ir::for_each_dim(a, [&](Dim d) { foldable = foldable && d.is_constant(); });
    }
    for (const auto& r : node.results) {
      if (r == nullptr) continue;
      const Dim bytes = ir::size_in_bytes(r->type);
      if (!bytes.is_constant()) return false;
      bytes_out += bytes.value();
    }
    if (!foldable || category == Category::view) return foldable;
    if (bytes_out <= std::max(always_allowed_bytes, allowed_growth * bytes_in)) return true;
    context_.declined(
        node, "it makes " + std::to_string(bytes_out) + " bytes of " + std::to_string(bytes_in));
    return false;
  }

  void evaluate(const ir::Node& node) {
    const eager::OperatorInfo& info = eager::info_of(*node.op);
    ir::BoxedArguments arguments(info, node.arguments,
                                 [this](ir::Value* v) { return known_.at(v); });
    std::vector<Tensor> results(node.results.size());
    eager::dispatch(info, arguments.data(), results.data(), node.location);
    ir::make_results_dense(node, results);
    for (size_t i = 0; i < results.size(); ++i)
      if (node.result(i) != nullptr) known_[node.result(i)] = results[i];
  }

  /// Whether the graph returns the value, or a node that remains reads it, perhaps through views.
  bool is_needed(const ir::Value* value) const {
    if (graph_.is_returned(value)) return true;
    return std::ranges::any_of(value->users, [&](const ir::Node* user) {
      const ir::Value* result = user->results.empty() ? nullptr : user->result();
      if (result == nullptr || !known_.contains(result)) return true;
      return user->op->category == Category::view && is_needed(result);
    });
  }

  ir::Graph& graph_;
  PassContext& context_;
  std::unordered_map<const ir::Value*, Tensor> known_;
};

}  // namespace

int fold_constants(ir::Graph& graph, PassContext& context) {
  return ConstantFolder(graph, context).run();
}

}  // namespace taper::passes
