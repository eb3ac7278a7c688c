#include "taper/exporter/eager/ops/softmax.h"

#include <cmath>
#include <limits>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/matmul.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"

namespace taper::eager::decompositions {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class A>
Tensor cast_self(const A& a) {
  const Tensor self = a.template tensor<"self">();
  return a.template has<"dtype">() ? self.to(a.template dtype<"dtype">(), a.here()) : self;
}

/// A softmax whose lines of -inf only are 0.
Tensor safe_softmax(const Tensor& x, int64_t dim, Location here) {
  const Tensor nothing = all(eq(x, Scalar(-infinity), here), dim, true, here);
  // zeros before the softmax, too: a NaN there would reach the gradient
  return masked_fill(
      call<ops::_softmax>(here, masked_fill(x, nothing, Scalar(0), here), dim, false), nothing,
      Scalar(0), here);
}

/// Each head of `t` (…, heads, length, features) `times` times.
Tensor repeat_heads(const Tensor& t, Dim times, Location here) {
  Dims sizes = t.sizes();
  sizes.insert(sizes.end() - 2, times);
  Dims joined = t.sizes();
  joined[joined.size() - 3] *= times;
  return t.unsqueeze(-3, here).expand(sizes, here).reshape(joined, here);
}

struct Attention {
  Tensor query, key, value, mask;
  double dropout;
  bool causal;
  std::optional<double> scale;
};

template <class A>
Attention read_attention(const A& a) {
  return {a.template tensor<"query">(),
          a.template tensor<"key">(),
          a.template tensor<"value">(),
          a.template tensor<"attn_mask">(),
          a.template real<"dropout_p">(),
          a.template boolean<"is_causal">(),
          a.template has<"scale">() ? std::optional(a.template real<"scale">()) : std::nullopt};
}

/// query key^T scale, masked: (…, queries, keys).
Tensor scores(const char* name, const Attention& t, Location here) {
  if (t.query.rank() < 2 || t.key.rank() < 2 || t.value.rank() < 2)
    throw EagerError(
        here, std::string(name) +
                  ": query, key and value need at least 2 dimensions (length, features), got " +
                  to_string(t.query.sizes()) + ", " + to_string(t.key.sizes()) + " and " +
                  to_string(t.value.sizes()));
  const DType dtype = t.query.dtype();
  if (!is_floating(dtype) || t.key.dtype() != dtype || t.value.dtype() != dtype)
    throw EagerError(here, std::string(name) +
                               ": query, key and value must have one floating dtype, got " +
                               taper::name_of(dtype) + ", " + taper::name_of(t.key.dtype()) +
                               " and " + taper::name_of(t.value.dtype()));
  if (t.mask.defined() && t.mask.dtype() != DType::boolean && !is_floating(t.mask.dtype()))
    throw EagerError(here, std::string(name) + ": attn_mask must be bool or floating, got " +
                               taper::name_of(t.mask.dtype()));
  if (t.causal && t.mask.defined())
    throw EagerError(here, std::string(name) + ": attn_mask and is_causal exclude each other");
  const double scale =
      t.scale ? *t.scale : 1 / std::sqrt(static_cast<double>(t.query.size(-1, here).value()));
  Tensor s = matmul(mul(t.query, Scalar(scale), here), t.key.transpose(-2, -1, here), here);
  if (t.causal) {
    const Tensor later =
        triu(ones({t.query.size(-2), t.key.size(-2)}, DType::boolean, here), 1, here);
    return masked_fill(s, later, Scalar(-infinity), here);
  }
  if (!t.mask.defined()) return s;
  if (t.mask.dtype() == DType::boolean)
    return masked_fill(s, logical_not(t.mask, here), Scalar(-infinity), here);
  return add(s, t.mask, 1, here);
}

/// Only a mask can leave a query with nothing to attend to: is_causal leaves it the first key.
Tensor attend(const Attention& t, const Tensor& s, Location here) {
  Tensor weights =
      t.mask.defined() ? safe_softmax(s, -1, here) : call<ops::_softmax>(here, s, -1, false);
  if (t.dropout != 0) weights = call<ops::dropout>(here, weights, t.dropout, true);
  return matmul(weights, t.value, here);
}

/// Kernels for the whole know no random numbers.
bool drops_out(const Boxed* arguments) {
  constexpr int position = position_of(schema<ops::scaled_dot_product_attention>, "dropout_p");
  return arguments[position].scalar().to<double>() != 0;
}

}  // namespace

TAPER_DECOMPOSITION(softmax_int) {
  return {call<ops::_softmax>(a.here(), cast_self(a), a.integer<"dim">(), false)};
}
TAPER_DECOMPOSITION(log_softmax_int) {
  return {call<ops::_log_softmax>(a.here(), cast_self(a), a.integer<"dim">(), false)};
}
TAPER_DECOMPOSITION(_safe_softmax) {
  return {safe_softmax(cast_self(a), a.integer<"dim">(), a.here())};
}

TAPER_DECOMPOSITION_AS(scaled_dot_product_attention, true, drops_out) {
  const Location here = a.here();
  Attention t = read_attention(a);
  if (a.boolean<"enable_gqa">() && t.query.rank() >= 3 && t.key.rank() >= 3 &&
      t.value.rank() >= 3) {
    const Dim heads = t.query.size(-3);
    if (t.key.size(-3) != heads) t.key = repeat_heads(t.key, heads / t.key.size(-3), here);
    if (t.value.size(-3) != heads) t.value = repeat_heads(t.value, heads / t.value.size(-3), here);
  }
  return {attend(t, scores("scaled_dot_product_attention", t, here), here)};
}

TAPER_DECOMPOSITION(_scaled_dot_product_flash_attention_for_cpu) {
  const Location here = a.here();
  Attention t = read_attention(a);
  const DType dtype = t.query.dtype();
  if (dtype == DType::f16 || dtype == DType::bf16)  // logsumexp stays f32
    for (Tensor* operand : {&t.query, &t.key, &t.value}) *operand = operand->to(DType::f32, here);
  const Tensor s = scores("_scaled_dot_product_flash_attention_for_cpu", t, here);
  return {attend(t, s, here).to(dtype, here), logsumexp(s, {-1}, false, here)};
}

}  // namespace taper::eager::decompositions
