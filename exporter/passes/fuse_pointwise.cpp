#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "taper/exporter/ir/boxing.h"
#include "taper/exporter/ir/call.h"
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

Operand number(float v) { return {nullptr, v}; }
Operand step(int of_node) { return {nullptr, 0, of_node}; }

/// The steps of a call that compute what the node's kernel does, element by element with the same
/// roundings; empty: not fusible.
using Steps = std::vector<Step>;

/// One step over tensors.
template <const Operator& op, PointwiseOp pointwise, eager::Name... names>
Steps plain(const Node& n) {
  const ir::Call<op> call(n);
  return {{pointwise, {Operand{call.template get<names>()}...}}};
}
/// a + alpha * b; numbers are rounded as kernels do.
template <const Operator& op, PointwiseOp pointwise>
Steps with_alpha(const Node& n) {
  const ir::Call<op> call(n);
  const Scalar* alpha = call.template get<"alpha">();
  if (alpha == nullptr) return {};
  const Operand self{call.template get<"self">()}, other{call.template get<"other">()};
  if (alpha->to<float>() == 1) return {{pointwise, {self, other}}};
  return {{PointwiseOp::mul, {number(alpha->to<float>()), other}}, {pointwise, {self, step(0)}}};
}
/// a + (alpha * number)
template <const Operator& op, PointwiseOp pointwise>
Steps with_number_and_alpha(const Node& n) {
  const ir::Call<op> call(n);
  const Scalar *other = call.template get<"other">(), *alpha = call.template get<"alpha">();
  if (other == nullptr || alpha == nullptr) return {};
  return {
      {pointwise,
       {Operand{call.template get<"self">()}, number(alpha->to<float>() * other->to<float>())}}};
}
template <const Operator& op, PointwiseOp pointwise>
Steps with_number(const Node& n) {
  const ir::Call<op> call(n);
  const Scalar* other = call.template get<"other">();
  if (other == nullptr) return {};
  return {{pointwise, {Operand{call.template get<"self">()}, number(other->to<float>())}}};
}
Steps power(const Node& n) {
  const ir::Call<ops::pow_Tensor_Scalar> call(n);
  const Scalar* exponent = call.get<"exponent">();
  if (exponent == nullptr) return {};
  return {{PointwiseOp::pow, {Operand{call.get<"self">()}, number(exponent->to<float>())}}};
}
Steps threshold_backward(const Node& n) {
  const ir::Call<ops::threshold_backward> call(n);
  const Scalar* threshold = call.get<"threshold">();
  if (threshold == nullptr) return {};
  return {{PointwiseOp::threshold_backward,
           {Operand{call.get<"grad_output">()}, Operand{call.get<"self">()},
            number(threshold->to<float>())}}};
}
/// x between two numbers, of which the first is not above the second.
Steps between(const Value* x, float low, float high) {
  if (!(low <= high)) return {};
  return {{PointwiseOp::hardtanh, {Operand{x}, number(low), number(high)}}};
}
constexpr float infinity = std::numeric_limits<float>::infinity();
Steps hardtanh(const Node& n) {
  const ir::Call<ops::hardtanh> call(n);
  const Scalar *low = call.get<"min_val">(), *high = call.get<"max_val">();
  if (low == nullptr || high == nullptr) return {};
  return between(call.get<"self">(), low->to<float>(), high->to<float>());
}
/// Bounds are numbers; absent ones are infinite.
Steps clamp(const Node& n) {
  const ir::Call<ops::clamp> call(n);
  if (std::holds_alternative<Dim>(n.arguments[call.position<"min">]) ||
      std::holds_alternative<Dim>(n.arguments[call.position<"max">]))
    return {};
  const Scalar *low = call.get<"min">(), *high = call.get<"max">();
  return between(call.get<"self">(), low != nullptr ? low->to<float>() : -infinity,
                 high != nullptr ? high->to<float>() : infinity);
}
Steps clamp_min(const Node& n) {
  const ir::Call<ops::clamp_min> call(n);
  const Scalar* low = call.get<"min">();
  return low == nullptr ? Steps() : between(call.get<"self">(), low->to<float>(), infinity);
}
Steps clamp_max(const Node& n) {
  const ir::Call<ops::clamp_max> call(n);
  const Scalar* high = call.get<"max">();
  return high == nullptr ? Steps() : between(call.get<"self">(), -infinity, high->to<float>());
}
Steps leaky_relu(const Node& n) {
  const ir::Call<ops::leaky_relu> call(n);
  const Scalar* slope = call.get<"negative_slope">();
  if (slope == nullptr) return {};
  return {{PointwiseOp::leaky_relu, {Operand{call.get<"self">()}, number(slope->to<float>())}}};
}
/// Either form of gelu.
template <const Operator& op, PointwiseOp erf, PointwiseOp tanh, eager::Name... names>
Steps gelu(const Node& n) {
  return ir::Call<op>(n).template get<"approximate">() == "tanh" ? plain<op, tanh, names...>(n)
                                                                 : plain<op, erf, names...>(n);
}

Steps steps_of(const Node& n) {
  using Op = PointwiseOp;
  static const std::unordered_map<const Operator*, Steps (*)(const Node&)> table = {
      {&ops::neg, plain<ops::neg, Op::neg, "self">},
      {&ops::abs, plain<ops::abs, Op::abs, "self">},
      {&ops::relu, plain<ops::relu, Op::relu, "self">},
      {&ops::sqrt, plain<ops::sqrt, Op::sqrt, "self">},
      {&ops::rsqrt, plain<ops::rsqrt, Op::rsqrt, "self">},
      {&ops::reciprocal, plain<ops::reciprocal, Op::reciprocal, "self">},
      {&ops::exp, plain<ops::exp, Op::exp, "self">},
      {&ops::log, plain<ops::log, Op::log, "self">},
      {&ops::sin, plain<ops::sin, Op::sin, "self">},
      {&ops::cos, plain<ops::cos, Op::cos, "self">},
      {&ops::tanh, plain<ops::tanh, Op::tanh, "self">},
      {&ops::sigmoid, plain<ops::sigmoid, Op::sigmoid, "self">},
      {&ops::erf, plain<ops::erf, Op::erf, "self">},
      {&ops::silu, plain<ops::silu, Op::silu, "self">},
      {&ops::hardtanh, hardtanh},
      {&ops::clamp, clamp},
      {&ops::clamp_min, clamp_min},
      {&ops::clamp_max, clamp_max},
      {&ops::leaky_relu, leaky_relu},
      {&ops::hardswish, plain<ops::hardswish, Op::hardswish, "self">},
      {&ops::hardsigmoid, plain<ops::hardsigmoid, Op::hardsigmoid, "self">},
      {&ops::gelu, gelu<ops::gelu, Op::gelu, Op::gelu_tanh, "self">},
      {&ops::mul_Tensor, plain<ops::mul_Tensor, Op::mul, "self", "other">},
      {&ops::div_Tensor, plain<ops::div_Tensor, Op::div, "self", "other">},
      {&ops::maximum, plain<ops::maximum, Op::maximum, "self", "other">},
      {&ops::minimum, plain<ops::minimum, Op::minimum, "self", "other">},
      {&ops::add_Tensor, with_alpha<ops::add_Tensor, Op::add>},
      {&ops::sub_Tensor, with_alpha<ops::sub_Tensor, Op::sub>},
      {&ops::add_Scalar, with_number_and_alpha<ops::add_Scalar, Op::add>},
      {&ops::sub_Scalar, with_number_and_alpha<ops::sub_Scalar, Op::sub>},
      {&ops::mul_Scalar, with_number<ops::mul_Scalar, Op::mul>},
      {&ops::div_Scalar, with_number<ops::div_Scalar, Op::div>},
      {&ops::pow_Tensor_Scalar, power},
      {&ops::sigmoid_backward,
       plain<ops::sigmoid_backward, Op::sigmoid_backward, "grad_output", "output">},
      {&ops::tanh_backward, plain<ops::tanh_backward, Op::tanh_backward, "grad_output", "output">},
      {&ops::threshold_backward, threshold_backward},
      {&ops::gelu_backward,
       gelu<ops::gelu_backward, Op::gelu_backward, Op::gelu_tanh_backward, "grad_output", "self">},
  };
  const auto at = table.find(n.op);
  return at == table.end() ? Steps() : at->second(n);
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

  /// `first`: becomes input 0; nullptr: any does.
  bool build(const Node& root, Value* first = nullptr) {
    if (first != nullptr) inputs_.push_back(first);
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
  Fuser(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

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
    if (fused > 0) remove_dead_code(graph_, context_);
    return fused;
  }

 private:
  bool fuse(Node* root) {
    std::unordered_set<const Node*> members{root};
    grow(*root, members);
    Node* convolution = convolution_below(*root, members);
    if (members.size() < 2 && convolution == nullptr) return false;
    Program program(members);
    if (!program.build(*root, convolution != nullptr ? convolution->result() : nullptr)) {
      context_.declined(*root, "its tree of " + std::to_string(members.size()) +
                                   " operators has too many inputs, constants or values at a time");
      return false;
    }
    const std::string tree = "a tree of " + std::to_string(members.size()) +
                             (members.size() == 1 ? " operator" : " operators");
    Node* node = convolution != nullptr
                     ? behind(convolution, root, program)
                     : ir::insert_before(graph_, root, ops::taper_pointwise,
                                         {program.inputs(), program.program(), program.constants()},
                                         root->location, root->module);
    graph_.replace_uses(root->result(), node->result());
    graph_.swap_names(root->result(), node->result());
    context_.did(*root, convolution != nullptr
                            ? "ends " + tree + " behind " + ir::describe(*convolution)
                            : "ends " + tree);
    for (const Node* m : members) absorbed_.insert(m);
    return true;
  }

  /// The last convolution with channels last whose result only the tree reads; nullptr: none.
  Node* convolution_below(const Node& root, const std::unordered_set<const Node*>& members) const {
    Node* last = nullptr;
    for (const Node* member : members)
      ir::for_each_value(*member, [&](const Value* v) {
        if (v->node == nullptr || v->node->op != &ops::taper_convolution ||
            !ir::Call<ops::taper_convolution>(*v->node).get<"program">().empty() ||
            !ir::same_sizes(v->type, root.result()->type) || graph_.is_returned(v) ||
            !std::ranges::all_of(v->users,
                                 [&](const Node* user) { return members.contains(user); }) ||
            position_.at(&root) - position_.at(v->node) > short_while)
          return;
        if (last == nullptr || position_.at(v->node) > position_.at(last)) last = v->node;
      });
    return last;
  }

  /// The convolution with the program behind it, where the tree ends.
  Node* behind(Node* convolution, Node* root, const Program& program) {
    using Convolution = ir::Call<ops::taper_convolution>;
    std::vector<ir::Argument> arguments = convolution->arguments;
    const std::vector<Value*> inputs = program.inputs();
    arguments[Convolution::position<"others">] =
        std::vector<Value*>(inputs.begin() + 1, inputs.end());
    arguments[Convolution::position<"program">] = program.program();
    arguments[Convolution::position<"constants">] = program.constants();
    return ir::insert_before(graph_, root, ops::taper_convolution, std::move(arguments),
                             convolution->location, convolution->module);
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
    int whole = 0;
    ir::for_each_value(source, [&](const Value* v) { whole += v->type.rank > 0; });
    return whole <= 1 || position_.at(&node) - position_.at(&source) <= short_while;
  }

  static constexpr int short_while = 8;  ///< nodes

  ir::Graph& graph_;
  PassContext& context_;
  std::unordered_map<const Node*, int> position_;
  std::unordered_set<const Node*> fusible_, absorbed_;
};

}  // namespace

int fuse_pointwise(ir::Graph& graph, PassContext& context) { return Fuser(graph, context).run(); }

}  // namespace taper::passes
