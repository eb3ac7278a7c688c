// Rows of pointwise operators.
#include <algorithm>
#include <cmath>
#include <limits>

#include "taper/delegates/xnnpack/compile/arguments.h"
#include "taper/delegates/xnnpack/compile/table.h"
#include "taper/exporter/ir/call.h"

namespace taper::delegates::xnnpack {
namespace pointwise {
namespace {

using blob::Function, blob::Kind;
using ir::Call, ir::Node, ir::Value;

constexpr float infinity = std::numeric_limits<float>::infinity();

// ---- functions of one tensor ----

void lower_unary(Lowering& out, const Node& node, Function function,
                 std::vector<float> parameters = {}) {
  const Value* x = std::get<Value*>(node.arguments[0]);
  const Order order = out.natural_order(x);
  out.define(node.result(),
             out.add(Kind::unary, function, {out.ref(x, order)}, {}, std::move(parameters)), order);
}
template <Function function>
void lower_function(Lowering& out, const Node& node) {
  lower_unary(out, node, function);
}
void lower_relu(Lowering& out, const Node& node) {
  lower_unary(out, node, Function::clamp, {0, infinity});
}

/// Bounds of a result. The clamp of a blob has 0 between them: see runtime/blob.fbs.
void lower_bounds(Lowering& out, const Node& node, float low, float high) {
  if (low <= 0 && high >= 0 && low < high)
    return lower_unary(out, node, Function::clamp, {low, high});
  const Value* x = std::get<Value*>(node.arguments[0]);
  const Order order = out.natural_order(x);
  Ref y = out.ref(x, order);
  if (low > -infinity) y = out.add(Kind::binary, Function::maximum, {y, out.number(low)});
  if (high < infinity || low == -infinity)
    y = out.add(Kind::binary, Function::minimum, {y, out.number(high)});
  out.define(node.result(), y, order);
}
std::string refuses_bound(const Node& node) {
  for (const ir::Argument& a : node.arguments) {
    if (std::holds_alternative<Dim>(a)) return "a bound is symbolic";
    const auto* bound = std::get_if<Scalar>(&a);
    if (bound != nullptr && std::isnan(real(*bound))) return "a bound is NaN";
  }
  return "";
}
float bound_or(const Scalar* bound, float otherwise) {
  return bound == nullptr ? otherwise : static_cast<float>(real(*bound));
}
void lower_hardtanh(Lowering& out, const Node& node) {
  const Call<ops::hardtanh> c(node);
  lower_bounds(out, node, bound_or(c.get<"min_val">(), -1), bound_or(c.get<"max_val">(), 1));
}
void lower_clamp(Lowering& out, const Node& node) {
  const Call<ops::clamp> c(node);
  lower_bounds(out, node, bound_or(c.get<"min">(), -infinity), bound_or(c.get<"max">(), infinity));
}
void lower_clamp_min(Lowering& out, const Node& node) {
  lower_bounds(out, node, bound_or(Call<ops::clamp_min>(node).get<"min">(), -infinity), infinity);
}
void lower_clamp_max(Lowering& out, const Node& node) {
  lower_bounds(out, node, -infinity, bound_or(Call<ops::clamp_max>(node).get<"max">(), infinity));
}

std::string refuses_elu(const Node& node) {
  const Call<ops::elu> c(node);
  if (!is_one(c.get<"scale">()) || !is_one(c.get<"input_scale">())) return "a scale is not 1";
  const Scalar* alpha = c.get<"alpha">();
  const float value = alpha == nullptr ? 0 : static_cast<float>(real(*alpha));
  return value > 0 && value < 1e6f ? "" : "its alpha is not taken";
}
void lower_elu(Lowering& out, const Node& node) {
  lower_unary(out, node, Function::elu,
              {static_cast<float>(real(*Call<ops::elu>(node).get<"alpha">()))});
}

std::string refuses_power(const Node& node) {
  const Scalar* exponent = Call<ops::pow_Tensor_Scalar>(node).get<"exponent">();
  const bool is_taken = exponent != nullptr && (real(*exponent) == 2 || real(*exponent) == 3);
  return is_taken ? "" : "its exponent is not 2 or 3";
}
void lower_power(Lowering& out, const Node& node) {
  const Call<ops::pow_Tensor_Scalar> c(node);
  const Order order = out.natural_order(c.get<"self">());
  const Ref x = out.ref(c.get<"self">(), order);
  Ref y = out.add(Kind::unary, Function::square, {x});
  if (real(*c.get<"exponent">()) == 3) y = out.add(Kind::binary, Function::multiply, {y, x});
  out.define(node.result(), y, order);
}
std::string refuses_gelu(const Node& node) {
  return Call<ops::gelu>(node).get<"approximate">() == "none" ? ""
                                                              : "its approximation is not taken";
}
std::string refuses_leaky_relu(const Node& node) {
  const Scalar* slope = Call<ops::leaky_relu>(node).get<"negative_slope">();
  const bool is_taken = slope != nullptr && std::abs(static_cast<float>(real(*slope))) < 1e6f;
  return is_taken ? "" : "its slope is not taken";
}
void lower_leaky_relu(Lowering& out, const Node& node) {
  const Scalar* slope = Call<ops::leaky_relu>(node).get<"negative_slope">();
  lower_unary(out, node, Function::leaky_relu, {static_cast<float>(real(*slope))});
}
/// sigmoid(x). The library gives NaN for some |x| above 1e27, and nothing changes beyond 1e4.
Ref gate(Lowering& out, Ref x) {
  const Ref bounded = out.add(Kind::unary, Function::clamp, {x}, {}, {-1e4f, 1e4f});
  return out.add(Kind::unary, Function::sigmoid, {bounded});
}
/// Whether a convolution or a matrix product computes it.
bool is_of_product(const Value& v) {
  const Row* row = v.node == nullptr ? nullptr : find_row(*v.node->op);
  return row != nullptr && row->is_heavy;
}
void lower_sigmoid(Lowering& out, const Node& node) {
  const Value* x = std::get<Value*>(node.arguments[0]);
  const Order order = out.natural_order(x);
  out.define(node.result(), gate(out, out.ref(x, order)), order);
}
void lower_silu(Lowering& out, const Node& node) {
  const Value* x = std::get<Value*>(node.arguments[0]);
  const Order order = out.natural_order(x);
  const Ref in = out.ref(x, order);
  // Behind a product the library cannot fuse the bounds, for x has two readers: efficientnet_b0
  // would take 9 % longer.
  const Ref y = is_of_product(*x) ? out.add(Kind::unary, Function::sigmoid, {in}) : gate(out, in);
  out.define(node.result(), out.add(Kind::binary, Function::multiply, {in, y}), order);
}

/// clamp(x / 6 + 0.5, 0, 1)
void lower_hardsigmoid(Lowering& out, const Node& node) {
  const Value* x = std::get<Value*>(node.arguments[0]);
  const Order order = out.natural_order(x);
  const Ref scaled =
      out.add(Kind::binary, Function::multiply, {out.ref(x, order), out.number(1.0 / 6)});
  const Ref moved = out.add(Kind::binary, Function::add, {scaled, out.number(0.5)});
  out.define(node.result(), out.add(Kind::unary, Function::clamp, {moved}, {}, {0, 1}), order);
}

// ---- functions of two tensors ----

/// Whether the value can meet one of `rank` dimensions with channels last. A constant of fewer
/// dimensions can if at most one of them is not 1, for then their order does not matter.
bool fits_channels_last(const Value* v, int rank) {
  if (v->type.rank == rank) return true;
  if (!is_constant(v) || !has_fixed_sizes(*v)) return false;
  const std::vector<int64_t> s = sizes_of(*v);
  return std::ranges::count_if(s, [](int64_t n) { return n != 1; }) <= 1;
}
Ref operand_of(Lowering& out, const Value* v, Order order, int rank) {
  if (order == Order::plain || v->type.rank == rank) return out.ref(v, order);
  const std::vector<int64_t> own = sizes_of(*v);
  std::vector<int64_t> sizes(static_cast<size_t>(rank) - own.size(), 1);
  sizes.insert(sizes.end(), own.begin(), own.end());
  if (rank == 3) sizes.insert(sizes.begin() + 2, 1);               // a line has one row
  std::rotate(sizes.begin() + 1, sizes.begin() + 2, sizes.end());  // channels go last
  return out.reshaped(v, sizes);
}
void lower_binary(Lowering& out, const Node& node, Function function, const Value* a,
                  const Value* b) {
  const int rank = node.result()->type.rank;
  const bool wants_last =
      out.natural_order(a) == Order::channels_last || out.natural_order(b) == Order::channels_last;
  const bool may = fits_channels_last(a, rank) && fits_channels_last(b, rank);
  const Order order = wants_last && may ? Order::channels_last : Order::plain;
  out.define(node.result(),
             out.add(Kind::binary, function,
                     {operand_of(out, a, order, rank), operand_of(out, b, order, rank)}),
             order);
}
template <Function function>
void lower_tensors(Lowering& out, const Node& node) {
  lower_binary(out, node, function, std::get<Value*>(node.arguments[0]),
               std::get<Value*>(node.arguments[1]));
}
template <const Operator& op>
std::string refuses_alpha(const Node& node) {
  return is_one(Call<op>(node).template get<"alpha">()) ? "" : "alpha is not 1";
}
template <const Operator& op>
std::string refuses_scalar(const Node& node) {
  return Call<op>(node).template get<"other">() != nullptr ? "" : "its number is symbolic";
}
template <const Operator& op>
std::string refuses_scalar_and_alpha(const Node& node) {
  const std::string reason = refuses_scalar<op>(node);
  return reason.empty() ? refuses_alpha<op>(node) : reason;
}
template <const Operator& op, Function function>
void lower_scalar(Lowering& out, const Node& node) {
  const Call<op> c(node);
  const Value* x = c.template get<"self">();
  const Order order = out.natural_order(x);
  out.define(node.result(),
             out.add(Kind::binary, function,
                     {out.ref(x, order), out.number(real(*c.template get<"other">()))}),
             order);
}

// ---- batch norm ----

std::string refuses_batch_norm(const Node& node) {
  const Call<ops::_native_batch_norm_legit_no_training> c(node);
  for (const Value* v :
       {c.get<"weight">(), c.get<"bias">(), c.get<"running_mean">(), c.get<"running_var">()})
    if (v != nullptr && !is_constant(v)) return "its weight or its statistics are no constants";
  return "";
}
/// x factor + term, for each channel
void lower_batch_norm(Lowering& out, const Node& node) {
  const Call<ops::_native_batch_norm_legit_no_training> c(node);
  const Value *x = c.get<"input">(), *mean = c.get<"running_mean">();
  const auto doubles = [&](const Value* v, double otherwise) {
    const auto count = static_cast<size_t>(out.elements(mean).numel().value());
    if (v == nullptr) return std::vector<double>(count, otherwise);
    return out.elements(v).to(DType::f64).to_vector<double>();
  };
  const std::vector<double> means = doubles(mean, 0),
                            variances = doubles(c.get<"running_var">(), 1),
                            weights = doubles(c.get<"weight">(), 1),
                            biases = doubles(c.get<"bias">(), 0);
  std::vector<float> factors, terms;
  for (size_t i = 0; i < means.size(); ++i) {
    const double factor = weights[i] / std::sqrt(variances[i] + c.get<"eps">());
    factors.push_back(static_cast<float>(factor));
    terms.push_back(static_cast<float>(biases[i] - means[i] * factor));
  }
  const Order order = out.natural_order(x);
  std::vector<int64_t> sizes = {static_cast<int64_t>(means.size())};
  if (order == Order::plain) sizes.insert(sizes.end(), static_cast<size_t>(x->type.rank - 2), 1);
  const Ref scaled =
      out.add(Kind::binary, Function::multiply, {out.ref(x, order), out.constant(factors, sizes)});
  out.define(node.result(),
             out.add(Kind::binary, Function::add, {scaled, out.constant(terms, sizes)}), order);
}

const Row rows[] = {
    {&ops::relu, nullptr, lower_relu},
    {&ops::hardtanh, refuses_bound, lower_hardtanh},
    {&ops::clamp, refuses_bound, lower_clamp},
    {&ops::clamp_min, refuses_bound, lower_clamp_min},
    {&ops::clamp_max, refuses_bound, lower_clamp_max},
    {&ops::abs, nullptr, lower_function<Function::abs>},
    {&ops::ceil, nullptr, lower_function<Function::ceil>},
    {&ops::elu, refuses_elu, lower_elu},
    {&ops::exp, nullptr, lower_function<Function::exp>},
    {&ops::floor, nullptr, lower_function<Function::floor>},
    {&ops::gelu, refuses_gelu, lower_function<Function::gelu>},
    {&ops::hardsigmoid, nullptr, lower_hardsigmoid},
    {&ops::hardswish, nullptr, lower_function<Function::hardswish>},
    {&ops::leaky_relu, refuses_leaky_relu, lower_leaky_relu},
    {&ops::log, nullptr, lower_function<Function::log>},
    {&ops::neg, nullptr, lower_function<Function::negate>},
    {&ops::pow_Tensor_Scalar, refuses_power, lower_power},
    {&ops::sigmoid, nullptr, lower_sigmoid},
    {&ops::silu, nullptr, lower_silu},
    {&ops::tanh, nullptr, lower_function<Function::tanh>},
    {&ops::add_Tensor, refuses_alpha<ops::add_Tensor>, lower_tensors<Function::add>},
    {&ops::sub_Tensor, refuses_alpha<ops::sub_Tensor>, lower_tensors<Function::subtract>},
    {&ops::mul_Tensor, nullptr, lower_tensors<Function::multiply>},
    {&ops::div_Tensor, nullptr, lower_tensors<Function::divide>},
    {&ops::maximum, nullptr, lower_tensors<Function::maximum>},
    {&ops::minimum, nullptr, lower_tensors<Function::minimum>},
    {&ops::_prelu_kernel, nullptr, lower_tensors<Function::prelu>},
    {&ops::add_Scalar, refuses_scalar_and_alpha<ops::add_Scalar>,
     lower_scalar<ops::add_Scalar, Function::add>},
    {&ops::sub_Scalar, refuses_scalar_and_alpha<ops::sub_Scalar>,
     lower_scalar<ops::sub_Scalar, Function::subtract>},
    {&ops::mul_Scalar, refuses_scalar<ops::mul_Scalar>,
     lower_scalar<ops::mul_Scalar, Function::multiply>},
    {&ops::div_Scalar, refuses_scalar<ops::div_Scalar>,
     lower_scalar<ops::div_Scalar, Function::divide>},
    {&ops::_native_batch_norm_legit_no_training, refuses_batch_norm, lower_batch_norm},
};

}  // namespace
}  // namespace pointwise

std::span<const Row> pointwise_rows() { return pointwise::rows; }

}  // namespace taper::delegates::xnnpack
