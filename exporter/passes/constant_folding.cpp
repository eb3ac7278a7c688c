#include <algorithm>

#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/constant_values.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/passes/stored_halves.h"
#include "taper/kernels/float8.h"

namespace taper::passes {
namespace {

/// A folded constant may have so many times the bytes of the constants that it is computed from, or
/// so many bytes in any case.
constexpr int64_t allowed_growth = 2, always_allowed_bytes = 4096;

/// A weight in 8 bits stays as small as the model stores it.
bool widens_float8(const ir::Node& node) {
  if (node.op != &ops::_to_copy) return false;
  bool is_small = false;
  ir::for_each_value(node, [&](const ir::Value* v) { is_small = is_float8(v->type.dtype); });
  return is_small;
}

class ConstantFolder {
 public:
  ConstantFolder(ir::Graph& graph, PassContext& context)
      : graph_(graph), context_(context), values_(graph) {}

  int run() {
    std::vector<ir::Node*> folded;
    for (ir::Node& node : graph_.nodes())
      if (is_foldable(node)) {
        values_.compute(node);
        folded.push_back(&node);
      }
    // a value becomes a constant only if a node that remains reads it
    int changes = 0;
    for (ir::Node* node : folded) {
      if (node->op->category == Category::view) continue;  // views of constants cost nothing
      for (const auto& r : node->results)
        if (r != nullptr && is_needed(r.get())) {
          ir::Value* constant = graph_.add_constant("", ir::payload_of(values_.at(r.get())));
          graph_.replace_uses(r.get(), constant);
          ++changes;
        }
    }
    if (changes > 0) remove_dead_code(graph_, context_);
    return changes;
  }

 private:
  bool is_foldable(const ir::Node& node) const {
    if (!values_.can_compute(node) || widens_stored_weight(node, context_.exact)) return false;
    int64_t bytes_in = 0, bytes_out = 0;
    ir::for_each_value(node,
                       [&](const ir::Value* v) { bytes_in += ir::size_in_bytes(v->type).value(); });
    for (const auto& r : node.results) {
      if (r == nullptr) continue;
      const Dim bytes = ir::size_in_bytes(r->type);
      if (!bytes.is_constant()) return false;
      bytes_out += bytes.value();
    }
    if (node.op->category == Category::view) return true;
    // f32 takes many times the bytes of blocks
    const bool widens_blocks = node.op == &ops::taper_block_embedding;
    const int64_t growth = widens_blocks ? 0 : widens_float8(node) ? 1 : allowed_growth;
    if (bytes_out <= std::max(always_allowed_bytes, growth * bytes_in)) return true;
    context_.declined(
        node, "it makes " + std::to_string(bytes_out) + " bytes of " + std::to_string(bytes_in));
    return false;
  }

  /// Whether the graph returns the value, or a node that remains reads it, perhaps through views.
  bool is_needed(const ir::Value* value) const {
    if (graph_.is_returned(value)) return true;
    return std::ranges::any_of(value->users, [&](const ir::Node* user) {
      const ir::Value* result = user->results.empty() ? nullptr : user->result();
      if (result == nullptr || !values_.knows(result)) return true;
      return user->op->category == Category::view && is_needed(result);
    });
  }

  ir::Graph& graph_;
  PassContext& context_;
  ConstantValues values_;
};

}  // namespace

int fold_constants(ir::Graph& graph, PassContext& context) {
  return ConstantFolder(graph, context).run();
}

}  // namespace taper::passes
