#include <algorithm>

#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/ir/interpreter.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;

/// Gives the readers of constants in blocks the operators that read blocks.
class BlockReaders {
 public:
  BlockReaders(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  int run() {
    int changed = 0;
    // those that are made meanwhile stand behind the end
    const size_t count = graph_.constants().size();
    auto c = graph_.constants().begin();
    for (size_t i = 0; i < count; ++i, ++c)
      if (is_in_blocks(c->payload->layout)) changed += change(*c);
    return changed;
  }

 private:
  int change(const ir::Constant& c) {
    int changed = 0;
    std::vector<Node*> users;  // each once, in the order of the graph
    for (Node* user : c.value->users)
      if (std::ranges::find(users, user) == users.end()) users.push_back(user);
    std::vector<Node*> others;
    for (Node* user : users)
      if (multiplies(user, c) || multiplies_groups(user, c) || looks_up(user, c) || widens(user, c))
        ++changed;
      else if (!reads_blocks(*user, c))
        others.push_back(user);
    if (others.empty() && !graph_.is_returned(c.value.get())) return changed;
    Value* dense = graph_.add_constant(c.path, ir::payload_of(ir::tensor_of(c.payload)));
    for (Node* user : others) {
      context_.declined(*user, "it reads " + c.path +
                                   " as f32: only linear, embedding and products " +
                                   "of experts read weights in blocks");
      graph_.replace_uses_in(user, c.value.get(), dense);
    }
    for (ir::Output& o : graph_.outputs())
      if (o.value == c.value.get()) o.value = dense;
    for (ir::Write& w : graph_.writes())
      if (w.value == c.value.get()) w.value = dense;
    for (ir::SymbolBinding& s : graph_.symbols())
      if (s.value == c.value.get()) s.value = dense;
    return changed + 1;
  }

  /// Whether a node multiplies with blocks or looks up their rows already.
  static bool reads_blocks(const Node& node, const ir::Constant& c) {
    const Value* const w = c.value.get();
    const Value* weight =
        ir::tensor_of_any<"weight", ops::taper_block_linear, ops::taper_block_linear_q8,
                          ops::taper_grouped_block_linear, ops::taper_grouped_block_linear_q8,
                          ops::taper_block_embedding>(node);
    return weight == w && std::ranges::count(w->users, &node) == 1;
  }

  bool multiplies(Node* node, const ir::Constant& c) {
    if (node->op != &ops::linear) return false;
    const ir::Call<ops::linear> call(*node);
    Value* const w = c.value.get();
    const auto reads = [&](const Value* v) { return v == w; };
    if (!reads(call.get<"weight">()) || reads(call.get<"input">()) || reads(call.get<"bias">()) ||
        w->type.rank != 2 || call.get<"input">()->type.dtype != DType::f32)
      return false;
    const Operator& op = rounds_input(c) ? ops::taper_block_linear_q8 : ops::taper_block_linear;
    replace(node, op, {call.get<"input">(), w, argument_of(call.get<"bias">())}, how(c));
    return true;
  }

  /// Experts: a grouped product with the transposed matrices (groups, n, k).
  bool multiplies_groups(Node* transpose, const ir::Constant& c) {
    if (!swaps_last_dimensions(*transpose) || c.value->type.rank != 3) return false;
    Value* const turned = transpose->result();
    const std::vector<Node*> products = turned->users;
    if (graph_.is_returned(turned) || products.empty() ||
        !std::ranges::all_of(products,
                             [&](const Node* p) { return multiplies_rows_of_groups(*p, turned); }))
      return false;
    const Operator& op =
        rounds_input(c) ? ops::taper_grouped_block_linear_q8 : ops::taper_grouped_block_linear;
    for (Node* product : products) {
      const ir::Call<ops::_grouped_mm> call(*product);
      replace(product, op, {call.get<"self">(), c.value.get(), call.get<"offs">()}, how(c));
    }
    graph_.erase(transpose);
    return true;
  }

  static bool swaps_last_dimensions(const Node& node) {
    if (node.op != &ops::transpose_int) return false;
    const ir::Call<ops::transpose_int> call(node);
    const auto is = [](const Dim& d, int64_t value) {
      return d.is_constant() && (d.value() + 3) % 3 == value;
    };
    const Dim a = call.get<"dim0">(), b = call.get<"dim1">();
    return (is(a, 1) && is(b, 2)) || (is(a, 2) && is(b, 1));
  }

  static bool multiplies_rows_of_groups(const Node& node, const Value* matrices) {
    if (node.op != &ops::_grouped_mm) return false;
    const ir::Call<ops::_grouped_mm> call(node);
    const Value* rows = call.get<"self">();
    return call.get<"mat2">() == matrices && rows != matrices && rows->type.rank == 2 &&
           call.get<"offs">() != nullptr;
  }

  /// Nothing is gained by rounding where the elements of the weight are no integers.
  bool rounds_input(const ir::Constant& c) const {
    return !context_.exact && holds_integers(c.payload->layout);
  }
  const char* how(const ir::Constant& c) const {
    return rounds_input(c) ? "it rounds its input to 8 bits, and multiplies integers"
                           : "it multiplies the elements of blocks";
  }

  bool looks_up(Node* node, const ir::Constant& c) {
    if (node->op != &ops::embedding) return false;
    const ir::Call<ops::embedding> call(*node);
    if (call.get<"weight">() != c.value.get() || call.get<"indices">() == c.value.get())
      return false;
    replace(node, ops::taper_block_embedding, {c.value.get(), call.get<"indices">()},
            "it looks up rows of blocks");
    return true;
  }

  // The gradient of a linear's input is a product with the weight the other way round. It widens
  // all rows in each call, so that a program which trains beside weights in blocks has no f32 of
  // them.
  bool widens(Node* node, const ir::Constant& c) {
    if (node->op != &ops::mm || c.value->type.rank != 2) return false;
    Value* const w = c.value.get();
    const ir::Call<ops::mm> call(*node);
    if (call.get<"mat2">() != w || call.get<"self">() == w) return false;
    const eager::Tensor all = eager::arange(c.payload->sizes[0], DType::i64);
    Value* const rows = graph_.add_constant("", ir::payload_of(all));
    const ir::Type types[] = {w->type};
    const Node* rows_of_w = graph_.insert_before(node, ops::taper_block_embedding,
                                                 {ir::Argument(w), ir::Argument(rows)}, types,
                                                 node->location, node->module);
    graph_.replace_uses_in(node, w, rows_of_w->result());
    context_.did(*node, "it widens the blocks of " + c.path + " in each call");
    return true;
  }

  static ir::Argument argument_of(Value* optional) {
    return optional == nullptr ? ir::Argument() : ir::Argument(optional);
  }

  void replace(Node* node, const Operator& op, std::vector<ir::Argument> arguments,
               std::string what) {
    context_.did(*node, std::move(what));
    Value* const old = node->result();
    const ir::Type types[] = {old->type};
    Node* with =
        graph_.insert_before(node, op, std::move(arguments), types, node->location, node->module);
    graph_.replace_uses(old, with->result());
    graph_.swap_names(old, with->result());
    graph_.erase(node);
  }

  ir::Graph& graph_;
  PassContext& context_;
};

}  // namespace

int read_blocks(ir::Graph& graph, PassContext& context) {
  return BlockReaders(graph, context).run();
}

}  // namespace taper::passes
