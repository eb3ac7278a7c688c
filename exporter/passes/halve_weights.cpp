#include <algorithm>
#include <initializer_list>
#include <unordered_map>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/half_type.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;

/// Smaller weights gain nothing: constants lie at multiples of 64 in a file.
constexpr size_t least_elements = 256;

/// A place where a node reads a weight, or a view of it.
struct Reader {
  enum class How : uint8_t {
    as_halves,  ///< its kernels read halves
    by_rows,    ///< it looks up rows of the weight
    widened,    ///< a product whose kernels read f32
    other,      ///< another operator
    fixed,      ///< a result, a list, a branch or a loop: the weight stays f32
  };
  Node* node;
  size_t argument;
  How how;
};

/// Operators that compute sums of products with a weight.
bool is_product(const Operator& op) {
  static const Operator* const table[] = {&ops::mm,
                                          &ops::bmm,
                                          &ops::addmm,
                                          &ops::baddbmm,
                                          &ops::linear,
                                          &ops::convolution,
                                          &ops::taper_rnn_scan,
                                          &ops::taper_lstm_scan,
                                          &ops::taper_gru_scan};
  return std::ranges::find(table, &op) != std::end(table);
}

/// The argument whose rows a node looks up. -1: it looks up none.
int looked_up(const Node& node) {
  static const std::unordered_map<const Operator*, int> table = {
      {&ops::embedding, 0}, {&ops::index_select, 0}, {&ops::gather, 0}};
  const auto at = table.find(node.op);
  return at == table.end() ? -1 : at->second;
}

class Halver {
 public:
  Halver(ir::Graph& graph, PassContext& context)
      : graph_(graph), context_(context), half_(context.dtype.value()) {}

  int run() {
    refuse_training();
    int changed = 0;
    // those that are made meanwhile stand behind the end
    const size_t count = graph_.constants().size();
    auto c = graph_.constants().begin();
    for (size_t i = 0; i < count; ++i, ++c) changed += halve(*c);
    if (changed > 0) remove_dead_code(graph_, context_);
    return changed;
  }

 private:
  void refuse_training() const {
    for (const ir::Write& w : graph_.writes())
      if (w.state->kind == ir::StateKind::parameter || w.state->kind == ir::StateKind::optimizer)
        throw ExportError(graph_.name() + ": the program writes " + w.state->path +
                          ", a weight or an optimizer's state; training stays f32: leave out the "
                          "dtype, or export without the method that trains");
  }

  bool halve(ir::Constant& c) {
    const ir::Type& type = c.value->type;
    const size_t elements = c.payload->size_bytes / sizeof(float);
    const auto longer_than_one = [](int64_t n) { return n > 1; };
    if (type.dtype != DType::f32 || c.payload->layout != Layout::dense ||
        elements < least_elements || std::ranges::count_if(c.payload->sizes, longer_than_one) < 2)
      return false;
    std::vector<Reader> readers;
    find_readers(c.value.get(), readers);
    using enum Reader::How;
    const auto is = [&](std::initializer_list<Reader::How> ways) {
      return [=](const Reader& r) { return std::ranges::find(ways, r.how) != ways.end(); };
    };
    if (std::ranges::any_of(readers, is({fixed})) ||
        std::ranges::none_of(readers, is({as_halves, by_rows, widened})))
      return false;

    c.payload = half_.convert(*c.payload);
    ir::Payload stored = *c.payload;  // the same elements, which are halves for kernels, too
    stored.dtype = ir::stored_dtype(stored), stored.layout = Layout::dense;
    Value* halves = nullptr;
    for (const Reader& r : readers) {
      if (r.how == as_halves) {
        context_.did(*r.node, "it reads " + c.path + " in " + name_of(half_.dtype()));
        continue;
      }
      if (halves == nullptr)
        halves = graph_.add_constant(c.path, std::make_shared<const ir::Payload>(stored));
      if (r.how == by_rows) {
        look_up_halves(r, halves);
      } else {
        context_.declined(*r.node, "each call widens " + c.path + ": no kernel reads it in " +
                                       name_of(half_.dtype()));
        graph_.set_argument(r.node, r.argument, widened_argument(r, halves));
      }
    }
    return true;
  }

  /// All places that read `v`, which is a weight or a view of it.
  void find_readers(Value* v, std::vector<Reader>& readers) const {
    std::vector<Node*> users;  // each once, in the order of the graph
    for (Node* user : v->users)
      if (std::ranges::find(users, user) == users.end()) users.push_back(user);
    for (Node* node : users) {
      if (node->op->category == Category::view) {
        find_readers(node->result(), readers);
        continue;
      }
      for (size_t i = 0; i < node->arguments.size(); ++i)
        ir::for_each_value(node->arguments[i], [&](const Value* read) {
          if (read == v) readers.push_back({node, i, how(*node, i, *v)});
        });
    }
    const bool is_number = std::ranges::any_of(
        graph_.symbols(), [&](const ir::SymbolBinding& s) { return s.value == v; });
    if (graph_.is_returned(v) || is_number) readers.push_back({nullptr, 0, Reader::How::fixed});
  }

  Reader::How how(const Node& node, size_t i, const Value& v) const {
    using enum Reader::How;
    const bool is_tensor = std::holds_alternative<Value*>(node.arguments[i]);
    if (!is_tensor || ir::is_control(node)) return fixed;
    if (read_in_halves(context_.kernels.candidates(node), node, i, v, half_.layout()))
      return as_halves;
    if (looked_up(node) == static_cast<int>(i) && v.origin == Value::Origin::constant)
      return by_rows;
    return is_product(*node.op) ? widened : other;
  }

  /// The node over halves, and its result widened.
  void look_up_halves(const Reader& r, Value* halves) {
    std::vector<ir::Argument> arguments = r.node->arguments;
    arguments[r.argument] = halves;
    Node* rows = ir::insert_before(graph_, r.node, *r.node->op, std::move(arguments),
                                   r.node->location, r.node->module);
    Node* wide = ir::insert_before(graph_, r.node, ops::_to_copy, {rows->result(), DType::f32},
                                   r.node->location, r.node->module);
    context_.did(*r.node, std::string("it looks up rows of ") + name_of(half_.dtype()));
    graph_.replace_uses(r.node->result(), wide->result());
    graph_.swap_names(r.node->result(), wide->result());
  }

  /// What the reader reads, over a widened weight. A weight is widened before its views are taken,
  /// because kernels read weights in this order.
  Value* widened_argument(const Reader& r, Value* halves) {
    Value* wide = ir::insert_before(graph_, r.node, ops::_to_copy, {halves, DType::f32},
                                    r.node->location, r.node->module)
                      ->result();
    return same_view(std::get<Value*>(r.node->arguments[r.argument]), wide, r.node);
  }
  Value* same_view(const Value* v, Value* wide, Node* before) {
    if (v->origin == Value::Origin::constant) return wide;
    std::vector<ir::Argument> arguments = v->node->arguments;
    arguments[0] = same_view(ir::viewed(*v->node), wide, before);
    return ir::insert_before(graph_, before, *v->node->op, std::move(arguments), v->node->location,
                             v->node->module)
        ->result();
  }

  ir::Graph& graph_;
  PassContext& context_;
  const HalfType half_;
};

}  // namespace

int halve_weights(ir::Graph& graph, PassContext& context) {
  if (!is_half(context.dtype.value()))
    throw ExportError(graph.name() + ": weights in halves are f16 or bf16, not " +
                      name_of(*context.dtype));
  return Halver(graph, context).run();
}

}  // namespace taper::passes
