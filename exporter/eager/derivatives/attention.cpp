#include "taper/exporter/eager/attention.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/derivatives/differentiate.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::derivatives {
namespace {

template <class S>
std::optional<double> scale_of(const S& saved) {
  return saved.template has<"scale">() ? std::optional(saved.template real<"scale">())
                                       : std::nullopt;
}

/// Sums the heads of `t` (…, heads, length, features) to those of `shared`. This is the gradient of
/// repeat_heads.
Tensor sum_heads(const Tensor& t, const Tensor& shared) {
  if (t.rank() < 3 || proves_equal(t.size(-3), shared.size(-3))) return t;
  Dims sizes = t.sizes();
  sizes[sizes.size() - 3] = shared.size(-3);
  sizes.insert(sizes.end() - 2, t.size(-3) / shared.size(-3));
  return sum(t.reshape(sizes), {-3});
}

/// The gradients of query, key and value, with the matrix of scores. The formulas are those of
/// kernels/portable/attention.cpp.
std::vector<Tensor> gradients_in_parts(const Attention& t, const Tensor& dy) {
  Attention a = t;
  a.key = repeat_heads(t.key, t.query), a.value = repeat_heads(t.value, t.query);
  const auto turned = [&](const Tensor& x) { return x.transpose(-2, -1); };
  const Tensor p = a.weights(a.scores()), slope = matmul(dy, turned(a.value));
  const Tensor d = sum(p * slope, {-1}, true);
  const Tensor ds = p * (slope - d) * Scalar(a.scale_of_scores());
  return {matmul(ds, a.key), sum_heads(matmul(turned(ds), a.query), t.key),
          sum_heads(matmul(turned(p), dy), t.value)};
}

}  // namespace

TAPER_DERIVATIVE(_scaled_dot_product_flash_attention_for_cpu, "only result0", "query", "key",
                 "value", "attn_mask", "result0", "result1") {
  const auto [dq, dk, dv] = call<ops::_scaled_dot_product_flash_attention_for_cpu_backward>(
      dy, saved.tensor<"query">(), saved.tensor<"key">(), saved.tensor<"value">(), saved.result(0),
      saved.result(1), saved.real<"dropout_p">(), saved.boolean<"is_causal">(),
      saved.tensor<"attn_mask">(), scale_of(saved));
  return {dq, dk, dv};
}

// The forward pass computes out and logsumexp from query, key and value. So only these three have
// second derivatives.
TAPER_DERIVATIVE(_scaled_dot_product_flash_attention_for_cpu_backward, "grad_out", "query", "key",
                 "value", "attn_mask") {
  const auto function = [&](const std::vector<Tensor>& v) {
    return gradients_in_parts({v[1], v[2], v[3], saved.tensor<"attn_mask">(),
                               saved.boolean<"is_causal">(), scale_of(saved)},
                              v[0]);
  };
  return differentiate(function,
                       {saved.tensor<"grad_out">(), saved.tensor<"query">(), saved.tensor<"key">(),
                        saved.tensor<"value">()},
                       {saved.needs<"grad_out">(), saved.needs<"query">(), saved.needs<"key">(),
                        saved.needs<"value">()},
                       dys);
}

}  // namespace taper::eager::derivatives
