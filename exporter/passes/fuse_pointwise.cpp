#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/passes/passes.h"
#include "taper/kernels/pointwise_program.h"

namespace taper::passes {
namespace {

using ir::Node;
using ir::Value;

/// An operand of a step: a tensor, a number, or what an earlier step of the same node gave.
struct Operand {
  const Value* value = nullptr;
  float number = 0;
  int step = -1;
};
struct Step {
  PointwiseOp op;
  std::vector<Operand> operands;
};

Operand tensor(const Node& n, size_t i) { return {std::get<Value*>(n.arguments[i])}; }
Operand number(float v) { return {nullptr, v}; }

/// A Scalar argument as the kernels round it; nothing if it is symbolic.
std::optional<float> scalar(const Node& n, size_t i) {
  const auto* s = std::get_if<Scalar>(&n.arguments[i]);
  return s == nullptr ? std::nullopt : std::optional(s->to<float>());
}

const std::unordered_map<const Operator*, PointwiseOp>& unary_ops() {
  static const std::unordered_map<const Operator*, PointwiseOp> table = {
      {&ops::neg, PointwiseOp::neg},     {&ops::abs, PointwiseOp::abs},
      {&ops::relu, PointwiseOp::relu},   {&ops::sqrt, PointwiseOp::sqrt},
      {&ops::rsqrt, PointwiseOp::rsqrt}, {&ops::reciprocal, PointwiseOp::reciprocal},
      {&ops::exp, PointwiseOp::exp},     {&ops::log, PointwiseOp::log},
      {&ops::sin, PointwiseOp::sin},     {&ops::cos, PointwiseOp::cos},
      {&ops::tanh, PointwiseOp::tanh},   {&ops::sigmoid, PointwiseOp::sigmoid},
      {&ops::erf, PointwiseOp::erf},     {&ops::silu, PointwiseOp::silu},
  };
  return table;
}
const std::unordered_map<const Operator*, PointwiseOp>& binary_ops() {
  static const std::unordered_map<const Operator*, PointwiseOp> table = {
      {&ops::mul_Tensor, PointwiseOp::mul},
      {&ops::div_Tensor, PointwiseOp::div},
      {&ops::maximum, PointwiseOp::maximum},
      {&ops::minimum, PointwiseOp::minimum},
      {&ops::sigmoid_backward, PointwiseOp::sigmoid_backward},
      {&ops::tanh_backward, PointwiseOp::tanh_backward},
  };
  return table;
}

/// The steps that compute what a node's kernel does, element by element with the same roundings;
/// empty: not fusible.
std::vector<Step> steps_of(const Node& n) {
  using Op = PointwiseOp;
  if (auto at = unary_ops().find(n.op); at != unary_ops().end())
    return {{at->second, {tensor(n, 0)}}};
  if (auto at = binary_ops().find(n.op); at != binary_ops().end())
    return {{at->second, {tensor(n, 0), tensor(n, 1)}}};
  if (n.op == &ops::add_Tensor || n.op == &ops::sub_Tensor) {  // a + alpha * b
    const Op op = n.op == &ops::add_Tensor ? Op::add : Op::sub;
    const auto alpha = scalar(n, 2);
    if (!alpha) return {};
    if (*alpha == 1) return {{op, {tensor(n, 0), tensor(n, 1)}}};
    return {{Op::mul, {number(*alpha), tensor(n, 1)}},
            {op, {tensor(n, 0), Operand{nullptr, 0, 0}}}};
  }
  if (n.op == &ops::add_Scalar || n.op == &ops::sub_Scalar) {  // a + (alpha * number)
    const auto other = scalar(n, 1), alpha = scalar(n, 2);
    if (!other || !alpha) return {};
    return {
        {n.op == &ops::add_Scalar ? Op::add : Op::sub, {tensor(n, 0), number(*alpha * *other)}}};
  }
  if (n.op == &ops::mul_Scalar || n.op == &ops::div_Scalar) {
    const auto other = scalar(n, 1);
    if (!other) return {};
    return {{n.op == &ops::mul_Scalar ? Op::mul : Op::div, {tensor(n, 0), number(*other)}}};
  }
  if (n.op == &ops::threshold_backward) {
    const auto threshold = scalar(n, 2);
    if (!threshold) return {};
    return {{Op::threshold_backward, {tensor(n, 0), tensor(n, 1), number(*threshold)}}};
  }
  if (n.op == &ops::gelu)
    return {{std::get<std::string>(n.arguments[1]) == "tanh" ? Op::gelu_tanh : Op::gelu,
             {tensor(n, 0)}}};
  if (n.op == &ops::gelu_backward)
    return {{std::get<std::string>(n.arguments[2]) == "tanh" ? Op::gelu_tanh_backward
                                                             : Op::gelu_backward,
             {tensor(n, 0), tensor(n, 1)}}};
  return {};
}

/// f32, and each tensor dense with the result's sizes or of rank 0.
bool is_fusible(const Node& n) {
  const Value* result = n.results.size() == 1 ? n.result() : nullptr;
  if (result == nullptr || result->type.dtype != DType::f32 || steps_of(n).empty()) return false;
  bool fit = true, same_size = false;
  ir::for_each_value(n, [&](const Value* v) {
    const bool whole = ir::same_sizes(v->type, result->type);
    same_size = same_size || whole;
    fit =
        fit && v->type.dtype == DType::f32 && ir::is_dense(v->type) && (whole || v->type.rank == 0);
  });
  return fit && same_size;
}

/// A tree of nodes under its root as one program. Fails where the limits of pointwise_program.h are
/// reached.
class Program {
 public:
  explicit Program(const std::unordered_set<const Node*>& members) : members_(members) {}

  bool build(const Node& root) {
    collect_inputs(root);
    if (inputs_.size() > pointwise_max_inputs) return false;
    emit(root);
    return ok_ &&
           program_.size() <= static_cast<size_t>(pointwise_max_instructions) * pointwise_width;
  }
  std::vector<Value*> inputs() const { return inputs_; }
  std::vector<Dim> program() const { return {program_.begin(), program_.end()}; }
  std::vector<double> constants() const { return {constants_.begin(), constants_.end()}; }

 private:
  void collect_inputs(const Node& node) {
    ir::for_each_value(node, [&](Value* v) {
      if (v->node != nullptr && members_.contains(v->node))
        collect_inputs(*v->node);
      else if (std::ranges::find(inputs_, v) == inputs_.end())
        inputs_.push_back(v);
    });
  }

  int64_t take_register() {
    for (int64_t r = 0; r < pointwise_max_registers; ++r)
      if (!taken_[r]) return taken_[r] = true, r;
    ok_ = false;
    return 0;
  }
  int64_t constant(float v) {
    for (size_t i = 0; i < constants_.size(); ++i)
      if (constants_[i] == v && std::signbit(constants_[i]) == std::signbit(v))
        return -1 - static_cast<int64_t>(i);
    constants_.push_back(v);
    return -static_cast<int64_t>(constants_.size());
  }
  int64_t as_operand(int64_t r) const { return static_cast<int64_t>(inputs_.size()) + r; }

  /// Appends the instructions of a node and, before them, of its members; gives the register of its
  /// result.
  int64_t emit(const Node& node) {
    std::unordered_map<const Value*, int64_t> registers;
    ir::for_each_value(node, [&](const Value* v) {
      if (v->node != nullptr && members_.contains(v->node) && !registers.contains(v))
        registers[v] = emit(*v->node);
    });
    std::vector<int64_t> of_step;
    for (const Step& step : steps_of(node)) {
      int64_t operands[3] = {};
      for (size_t k = 0; k < step.operands.size(); ++k)
        operands[k] = operand(step.operands[k], registers, of_step);
      const int64_t destination = take_register();
      program_.insert(program_.end(), {static_cast<int64_t>(step.op), destination, operands[0],
                                       operands[1], operands[2]});
      of_step.push_back(destination);
    }
    for (const auto& [value, r] : registers) taken_[r] = false;
    for (size_t i = 0; i + 1 < of_step.size(); ++i) taken_[of_step[i]] = false;
    return of_step.back();
  }
  int64_t operand(const Operand& o, const std::unordered_map<const Value*, int64_t>& registers,
                  const std::vector<int64_t>& of_step) {
    if (o.step >= 0) return as_operand(of_step[static_cast<size_t>(o.step)]);
    if (o.value == nullptr) return constant(o.number);
    if (auto at = registers.find(o.value); at != registers.end()) return as_operand(at->second);
    return std::ranges::find(inputs_, o.value) - inputs_.begin();
  }

  const std::unordered_set<const Node*>& members_;
  std::vector<Value*> inputs_;
  std::vector<int64_t> program_;
  std::vector<float> constants_;
  bool taken_[pointwise_max_registers] = {};
  bool ok_ = true;
};

class Fuser {
 public:
  explicit Fuser(ir::Graph& graph) : graph_(graph) {}

  int run() {
    int position = 0;
    for (Node& n : graph_.nodes()) {
      position_[&n] = position++;
      if (is_fusible(n)) fusible_.insert(&n);
    }
    // from the end, so that a root is met before what it absorbs
    std::vector<Node*> nodes;
    for (Node& n : graph_.nodes()) nodes.push_back(&n);
    int fused = 0;
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at)
      if (fusible_.contains(*at) && !absorbed_.contains(*at)) fused += fuse(*at);
    if (fused > 0) remove_dead_code(graph_);
    return fused;
  }

 private:
  bool fuse(Node* root) {
    std::unordered_set<const Node*> members{root};
    grow(*root, members);
    if (members.size() < 2) return false;
    Program program(members);
    if (!program.build(*root)) return false;
    Node* node = ir::insert_before(graph_, root, ops::taper_pointwise,
                                   {program.inputs(), program.program(), program.constants()},
                                   root->location, root->module);
    graph_.replace_uses(root->result(), node->result());
    graph_.swap_names(root->result(), node->result());
    for (const Node* m : members) absorbed_.insert(m);
    return true;
  }

  /// Adds the nodes whose only reader is `node`.
  void grow(const Node& node, std::unordered_set<const Node*>& members) {
    ir::for_each_value(node, [&](const Value* v) {
      const Node* source = v->node;
      if (source == nullptr || members.contains(source) || !fusible_.contains(source) ||
          absorbed_.contains(source))
        return;
      const bool only_here =
          std::ranges::all_of(v->users, [&](const Node* user) { return user == &node; }) &&
          !graph_.is_returned(v);
      if (!only_here || !ir::same_sizes(v->type, node.result()->type) ||
          !is_worth_it(*source, node))
        return;
      if (members.size() == static_cast<size_t>(pointwise_max_instructions) / 2) return;
      members.insert(source);
      grow(*source, members);
    });
  }

  /// Computing `source` where `node` stands makes its arguments live longer: fine for one, or for a
  /// short while.
  bool is_worth_it(const Node& source, const Node& node) const {
    constexpr int short_while = 8;
    int whole = 0;
    ir::for_each_value(source, [&](const Value* v) { whole += v->type.rank > 0; });
    return whole <= 1 || position_.at(&node) - position_.at(&source) <= short_while;
  }

  ir::Graph& graph_;
  std::unordered_map<const Node*, int> position_;
  std::unordered_set<const Node*> fusible_, absorbed_;
};

}  // namespace

int fuse_pointwise(ir::Graph& graph) { return Fuser(graph).run(); }

}  // namespace taper::passes
