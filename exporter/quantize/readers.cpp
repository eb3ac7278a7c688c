#include "taper/exporter/quantize/readers.h"

#include <algorithm>

#include "taper/exporter/ir/call.h"

namespace taper::quantize {
namespace {

using ir::Node;
using ir::Value;

bool is_one(const Scalar* s) { return s != nullptr && s->to<double>() == 1; }

/// Operators that multiply with weights. Only some of them can read blocks.
bool reads_weights(const Operator& op) {
  static const Operator* const table[] = {&ops::linear,          &ops::mm,
                                          &ops::addmm,           &ops::bmm,
                                          &ops::baddbmm,         &ops::_grouped_mm,
                                          &ops::convolution,     &ops::taper_rnn_scan,
                                          &ops::taper_lstm_scan, &ops::taper_gru_scan,
                                          &ops::embedding};
  return std::ranges::find(table, &op) != std::end(table);
}

/// What a node multiplies with a weight, if that is one of its arguments; nullptr elsewhere.
const Value* input_of(const Node& node) {
  if (node.op == &ops::convolution) return ir::Call<ops::convolution>(node).get<"input">();
  if (node.op == &ops::bmm) return ir::Call<ops::bmm>(node).get<"self">();
  if (node.op == &ops::baddbmm) return ir::Call<ops::baddbmm>(node).get<"batch1">();
  return nullptr;
}

bool widens(const Node& node) {
  return node.op == &ops::_to_copy && node.result()->type.dtype == DType::f32;
}

/// Follows a constant to its readers.
class Search {
 public:
  explicit Search(Weight& weight) : weight_(weight) {}

  /// Whether any reader is a product, a look-up or a convolution.
  bool run() {
    follow(weight_.constant->value.get(), false);
    if (weight_.graph->is_returned(weight_.constant->value.get()))
      refuse("it is a result of the method, too");
    return is_weight_;
  }

 private:
  void follow(Value* v, bool is_transposed) {
    std::vector<Node*> users;  // each once, in the order of the graph
    for (Node* user : v->users)
      if (std::ranges::find(users, user) == users.end()) users.push_back(user);
    for (Node* user : users) {
      if (user->op->category == Category::view && transposes(*user))
        follow(user->result(), !is_transposed);
      else if (widens(*user))
        follow(user->result(), is_transposed);
      else if (user->op->category == Category::view)
        look_through(*user);
      else
        add(user, v, is_transposed);
    }
  }

  /// Other views hinder blocks. The weight is one nevertheless if a product reads the view.
  void look_through(const Node& view) {
    refuse("no kernel reads a part or a stack of matrices in blocks");
    for (Node* user : view.result()->users) {
      if (multiplies_with(*user, view.result())) is_weight_ = true;
      if (user->op->category == Category::view) look_through(*user);
    }
  }

  /// A constant in place of the input is a weight if it has a name: others, such as a grid of
  /// positions, were computed.
  bool multiplies_with(const Node& node, const Value* v) const {
    return reads_weights(*node.op) && (input_of(node) != v || !weight_.constant->path.empty());
  }

  void add(Node* node, Value* v, bool is_transposed) {
    if (node->op == &ops::linear) {
      const ir::Call<ops::linear> call(*node);
      return add_product(node, v, call.get<"weight">(), call.get<"input">(), call.get<"bias">(),
                         is_transposed);
    }
    if (node->op == &ops::mm) {
      const ir::Call<ops::mm> call(*node);
      return add_product(node, v, call.get<"mat2">(), call.get<"self">(), nullptr, !is_transposed);
    }
    if (node->op == &ops::addmm) {
      const ir::Call<ops::addmm> call(*node);
      add_product(node, v, call.get<"mat2">(), call.get<"mat1">(), call.get<"self">(),
                  !is_transposed);
      if (!is_one(call.get<"beta">()) || !is_one(call.get<"alpha">()))
        refuse("addmm scales its product");
      return;
    }
    if (multiplies_groups(*node, v)) return add_stack(node, !is_transposed);
    if (node->op == &ops::embedding) {
      is_weight_ = true;
      if (ir::Call<ops::embedding>(*node).get<"indices">() == v) return refuse("it is an index");
      return keep({node, true}, is_transposed);
    }
    if (multiplies_with(*node, v)) is_weight_ = true;
    refuse(node->op == &ops::convolution ? "no kernel reads weights of convolutions in blocks"
                                         : std::string(name_of(*node->op)) + " reads it as f32");
  }

  void add_product(Node* node, Value* v, Value* weight, Value* input, Value* bias,
                   bool is_transposed) {
    is_weight_ = is_weight_ || v == weight;
    if (v != weight || v == input || v == bias)
      return refuse(std::string(name_of(*node->op)) + " reads it as f32");
    if (input->type.dtype != DType::f32) return refuse("its input is not f32");
    if (bias != nullptr && bias->type.rank != 1) return refuse("its bias is no vector");
    keep({node, false}, is_transposed);
  }

  /// Whether a node multiplies groups of rows with the matrices of a stack.
  bool multiplies_groups(const Node& node, const Value* v) const {
    if (node.op != &ops::_grouped_mm) return false;
    const ir::Call<ops::_grouped_mm> call(node);
    const Value* rows = call.get<"self">();
    return call.get<"mat2">() == v && v->type.rank == 3 &&
           weight_.constant->payload->sizes[0] > 0 && rows != v && rows->type.rank == 2 &&
           rows->type.dtype == DType::f32 && call.get<"offs">() != nullptr;
  }
  void add_stack(Node* node, bool is_transposed) {
    is_weight_ = true;
    weight_.matrices = weight_.constant->payload->sizes[0];
    keep({node, false}, is_transposed);
  }

  void keep(Reader reader, bool is_transposed) {
    if (!weight_.readers.empty() && weight_.is_transposed != is_transposed)
      refuse("it is read both as it is and transposed");
    weight_.is_transposed = is_transposed;
    weight_.readers.push_back(reader);
  }
  void refuse(std::string why) {
    if (weight_.obstacle.empty()) weight_.obstacle = std::move(why);
  }

  Weight& weight_;
  bool is_weight_ = false;
};

bool is_float(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

void mark_first_and_last(ir::Graph& graph, std::vector<Weight>& weights) {
  Weight *first = nullptr, *last = nullptr;
  for (const Node& node : graph.nodes())
    for (Weight& w : weights)
      for (const Reader& r : w.readers)
        if (r.node == &node && !r.is_look_up) {
          if (first == nullptr) first = &w;
          last = &w;
        }
  if (first != nullptr) first->is_first = last->is_last = true;
}

}  // namespace

bool transposes(const Node& view) {
  if (view.op != &ops::permute && view.op != &ops::transpose_int) return false;
  const auto rank = static_cast<int64_t>(view.result()->type.rank);
  if (rank != 2 && rank != 3) return false;
  const auto is = [rank](Dim d, int64_t at) { return same(d, at) || same(d, at - rank); };
  const int64_t last = rank - 1, before = rank - 2;
  if (view.op == &ops::permute) {
    const std::vector<Dim>& dims = ir::Call<ops::permute>(view).get<"dims">();
    return (rank == 2 || is(dims[0], 0)) && is(dims[static_cast<size_t>(before)], last) &&
           is(dims[static_cast<size_t>(last)], before);
  }
  const ir::Call<ops::transpose_int> call(view);
  const Dim a = call.get<"dim0">(), b = call.get<"dim1">();
  return (is(a, before) && is(b, last)) || (is(a, last) && is(b, before));
}

ir::Value* Reader::input() const {
  if (node->op == &ops::linear) return ir::Call<ops::linear>(*node).get<"input">();
  if (node->op == &ops::mm) return ir::Call<ops::mm>(*node).get<"self">();
  if (node->op == &ops::_grouped_mm) return ir::Call<ops::_grouped_mm>(*node).get<"self">();
  return ir::Call<ops::addmm>(*node).get<"mat1">();
}

int64_t Weight::rows() const {
  const std::vector<int64_t>& sizes = constant->payload->sizes;
  if (matrices > 0) return matrices * sizes[is_transposed ? 2 : 1];
  return sizes[is_transposed ? 1 : 0];
}

int64_t Weight::depth() const {
  const std::vector<int64_t>& sizes = constant->payload->sizes;
  if (matrices > 0) return sizes[is_transposed ? 1 : 2];
  if (is_transposed) return sizes[0];
  int64_t depth = 1;
  for (size_t d = 1; d < sizes.size(); ++d) depth *= sizes[d];
  return depth;
}

bool Weight::is_looked_up() const { return std::ranges::any_of(readers, &Reader::is_look_up); }

bool is_of_adapter(const ir::Constant& constant) {
  for (const char* end : {"lora_down", "lora_up", ".lora_A.weight", ".lora_B.weight"})
    if (constant.path.ends_with(end)) return true;
  return false;
}

std::vector<Weight> find_weights(ir::Graph& graph) {
  std::vector<Weight> weights;
  for (ir::Constant& c : graph.constants()) {
    if (!is_float(c.payload->dtype) || c.payload->sizes.size() < 2) continue;
    Weight w{&graph, &c, {}, false, 0, false, false, ""};
    if (!Search(w).run()) continue;
    if (c.payload->layout != Layout::dense) w.obstacle = "it is quantized already";
    if (is_of_adapter(c)) w.obstacle = "it is of an adapter, which stays as it is";
    weights.push_back(std::move(w));
  }
  mark_first_and_last(graph, weights);
  return weights;
}

}  // namespace taper::quantize
