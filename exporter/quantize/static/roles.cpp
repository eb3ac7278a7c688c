#include "taper/exporter/quantize/static/roles.h"

#include <algorithm>
#include <unordered_map>

#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/replace.h"

namespace taper::quantize {

using ir::Node;
using ir::Value;

Role role_of(const Operator& op) {
  using enum Role;
  static const std::unordered_map<const Operator*, Role> roles = {
      {&ops::convolution, product},
      {&ops::linear, product},
      {&ops::mm, product},
      {&ops::addmm, product},

      {&ops::add_Tensor, arithmetic},
      {&ops::sub_Tensor, arithmetic},
      {&ops::mul_Tensor, arithmetic},
      {&ops::bmm, arithmetic},

      {&ops::relu, limit},
      {&ops::hardtanh, limit},
      {&ops::relu6, limit},
      {&ops::clamp, limit},
      {&ops::clamp_min, limit},

      {&ops::alias, move},
      {&ops::cat, move},
      {&ops::channel_shuffle, move},
      {&ops::clone, move},
      {&ops::constant_pad_nd, move},
      {&ops::expand, move},
      {&ops::flip, move},
      {&ops::max_pool1d, move},
      {&ops::max_pool2d, move},
      {&ops::permute, move},
      {&ops::pixel_shuffle, move},
      {&ops::pixel_unshuffle, move},
      {&ops::reflection_pad2d, move},
      {&ops::repeat, move},
      {&ops::replication_pad2d, move},
      {&ops::reshape, move},
      {&ops::select_int, move},
      {&ops::slice_Tensor, move},
      {&ops::squeeze_dim, move},
      {&ops::squeeze_dims, move},
      {&ops::transpose_int, move},
      {&ops::unsqueeze, move},
      {&ops::upsample_nearest2d, move},
      {&ops::view, move},
      {&ops::_upsample_nearest_exact2d, move},

      {&ops::_adaptive_avg_pool2d, average},
      {&ops::adaptive_avg_pool1d, average},
      {&ops::adaptive_avg_pool2d, average},
      {&ops::avg_pool1d, average},
      {&ops::avg_pool2d, average},
      {&ops::mean, average},
      {&ops::mean_dim, average},
      {&ops::upsample_bilinear2d, average},

      {&ops::abs, function},
      {&ops::elu, function},
      {&ops::exp, function},
      {&ops::gelu, function},
      {&ops::hardsigmoid, function},
      {&ops::hardswish, function},
      {&ops::leaky_relu, function},
      {&ops::mish, function},
      {&ops::neg, function},
      {&ops::silu, function},
      {&ops::softplus, function},
      {&ops::sqrt, function},

      {&ops::_softmax, bounded},
      {&ops::sigmoid, bounded},
      {&ops::tanh, bounded},
  };
  const auto found = roles.find(&op);
  return found == roles.end() ? none : found->second;
}

Grid grid_of_bounded(const Operator& op) {
  if (&op == &ops::tanh) return {.scale = 1.0 / 128, .zero_point = 0};
  return {.scale = 1.0 / 256, .zero_point = -128};
}

namespace {

bool is_weight(const Value* v) {
  return v != nullptr && v->origin == Value::Origin::constant && v->type.dtype == DType::f32;
}

/// For a matrix of (inputs, outputs), which may be a view of a weight of (outputs, inputs).
std::optional<Product> matrix_product(Value* input, Value* matrix, Value* bias) {
  if (is_weight(matrix)) return Product{input, matrix, bias, 1};
  Value* below = passes::transposed_matrices(matrix);
  if (is_weight(below) && below->type.rank == 2) return Product{input, below, bias, 0};
  return std::nullopt;
}

bool is_one(const Scalar* s) { return s != nullptr && s->to<double>() == 1; }

}  // namespace

std::optional<Product> product_of(const Node& node) {
  if (node.op == &ops::convolution) {
    const ir::Call<ops::convolution> call(node);
    if (!is_weight(call.get<"weight">())) return std::nullopt;
    const bool transposed = call.get<"transposed">();
    return Product{call.get<"input">(), call.get<"weight">(), call.get<"bias">(),
                   transposed ? 1 : 0, transposed && !same(call.get<"groups">(), 1)};
  }
  if (node.op == &ops::linear) {
    const ir::Call<ops::linear> call(node);
    if (!is_weight(call.get<"weight">())) return std::nullopt;
    return Product{call.get<"input">(), call.get<"weight">(), call.get<"bias">(), 0};
  }
  if (node.op == &ops::mm) {
    const ir::Call<ops::mm> call(node);
    return matrix_product(call.get<"self">(), call.get<"mat2">(), nullptr);
  }
  if (node.op == &ops::addmm) {
    const ir::Call<ops::addmm> call(node);
    if (!is_one(call.get<"alpha">()) || !is_one(call.get<"beta">())) return std::nullopt;
    if (call.get<"self">()->type.rank != 1) return std::nullopt;
    return matrix_product(call.get<"mat1">(), call.get<"mat2">(), call.get<"self">());
  }
  return std::nullopt;
}

std::vector<Value*> activations_of(const Node& node) {
  if (const auto product = product_of(node)) return {product->input};
  std::vector<Value*> list;
  ir::for_each_value(node, [&](Value* v) {
    if (v->type.dtype == DType::f32 && std::ranges::find(list, v) == list.end()) list.push_back(v);
  });
  return list;
}

}  // namespace taper::quantize
