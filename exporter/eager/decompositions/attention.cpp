#include "taper/exporter/eager/attention.h"

#include <cmath>
#include <limits>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/matmul.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"

namespace taper::eager {

double Attention::scale_of_scores(Location here) const {
  return scale ? *scale : 1 / std::sqrt(static_cast<double>(query.size(-1, here).value()));
}

Tensor Attention::scores(Location here) const {
  const Scalar hidden(-std::numeric_limits<double>::infinity());
  const Tensor s =
      matmul(mul(query, Scalar(scale_of_scores(here)), here), key.transpose(-2, -1, here), here);
  if (causal) {
    const Tensor later = triu(ones({query.size(-2), key.size(-2)}, DType::boolean, here), 1, here);
    return masked_fill(s, later, hidden, here);
  }
  if (!mask.defined()) return s;
  if (mask.dtype() == DType::boolean) return masked_fill(s, logical_not(mask, here), hidden, here);
  return add(s, mask, 1, here);
}

// Only a mask can leave a query with nothing to attend to: is_causal leaves it the first key.
Tensor Attention::weights(const Tensor& scores, Location here) const {
  return mask.defined() ? call<ops::_safe_softmax>(here, scores, -1, std::nullopt)
                        : call<ops::_softmax>(here, scores, -1, false);
}

Tensor repeat_heads(const Tensor& t, const Tensor& query, Location here) {
  if (t.rank() < 3 || query.rank() < 3 || proves_equal(t.size(-3), query.size(-3))) return t;
  const Dim times = query.size(-3) / t.size(-3);
  Dims sizes = t.sizes();
  sizes.insert(sizes.end() - 2, times);
  Dims joined = t.sizes();
  joined[joined.size() - 3] *= times;
  return t.unsqueeze(-3, here).expand(sizes, here).reshape(joined, here);
}

namespace decompositions {
namespace {

template <class A>
Attention read_attention(const A& a) {
  return {a.template tensor<"query">(),
          a.template tensor<"key">(),
          a.template tensor<"value">(),
          a.template tensor<"attn_mask">(),
          a.template boolean<"is_causal">(),
          a.template has<"scale">() ? std::optional(a.template real<"scale">()) : std::nullopt};
}

void check(const char* name, const Attention& t, Location here) {
  const auto refuse = [&](const std::string& why) {
    throw EagerError(here, std::string(name) + ": " + why);
  };
  if (t.query.rank() < 2 || t.key.rank() < 2 || t.value.rank() < 2)
    refuse("query, key and value need at least 2 dimensions (length, features), got " +
           to_string(t.query.sizes()) + ", " + to_string(t.key.sizes()) + " and " +
           to_string(t.value.sizes()));
  const DType dtype = t.query.dtype();
  if (!is_floating(dtype) || t.key.dtype() != dtype || t.value.dtype() != dtype)
    refuse(std::string("query, key and value must have one floating dtype, got ") +
           taper::name_of(dtype) + ", " + taper::name_of(t.key.dtype()) + " and " +
           taper::name_of(t.value.dtype()));
  if (t.mask.defined() && t.mask.dtype() != DType::boolean && !is_floating(t.mask.dtype()))
    refuse(std::string("attn_mask must be bool or floating, got ") +
           taper::name_of(t.mask.dtype()));
  if (t.causal && t.mask.defined()) refuse("attn_mask and is_causal exclude each other");
}

/// Kernels know no random numbers, and give no gradient of a mask.
bool in_parts(double dropout_p, const Tensor& mask) {
  return dropout_p != 0 || (grad_enabled() && mask.defined() && mask.requires_grad());
}
template <const Operator& op>
bool call_in_parts(const Boxed* arguments) {
  const Arguments<op> a(arguments, Location());
  return in_parts(a.template real<"dropout_p">(), a.template tensor<"attn_mask">());
}

Tensor attend(const Attention& t, const Tensor& scores, double dropout_p, Location here) {
  Tensor weights = t.weights(scores, here);
  if (dropout_p != 0) weights = call<ops::dropout>(here, weights, dropout_p, true);
  return matmul(weights, t.value, here);
}

/// Flash attention repeats no dimension in front but the heads: gives all three tensors the same
/// ones. Heads stay as they are if they may be shared.
void repeat_leading_dimensions(Attention& t, bool shares_heads, Location here) {
  Tensor* const operands[] = {&t.query, &t.key, &t.value};
  int rank = 0;
  for (const Tensor* o : operands) rank = std::max(rank, o->rank());
  Dims leading(static_cast<size_t>(rank - 2), Dim(1));
  for (const Tensor* o : operands)
    for (int i = 0; i < o->rank() - 2; ++i) {
      Dim& to = leading[static_cast<size_t>(rank - o->rank() + i)];
      if (proves_equal(to, 1)) to = o->size(i);
    }
  for (Tensor* o : operands) {
    Dims sizes = leading;
    if (shares_heads && o != &t.query && rank > 2) sizes.back() = o->size(-3);
    sizes.push_back(o->size(-2)), sizes.push_back(o->size(-1));
    bool same = o->rank() == rank;
    for (int i = 0; same && i < rank; ++i)
      same = proves_equal(sizes[static_cast<size_t>(i)], o->size(i));
    if (!same) *o = o->expand(sizes, here);
  }
}

}  // namespace

// With gradients: the forward pass that keeps what the backward pass needs.
TAPER_DECOMPOSITION_AS(scaled_dot_product_attention, true,
                       call_in_parts<ops::scaled_dot_product_attention>) {
  const Location here = a.here();
  Attention t = read_attention(a);
  check("scaled_dot_product_attention", t, here);
  bool shares_heads =
      a.boolean<"enable_gqa">() && t.query.rank() >= 3 && t.key.rank() >= 3 && t.value.rank() >= 3;
  if (shares_heads && !proves_equal(t.key.size(-3), t.value.size(-3))) {
    t.key = repeat_heads(t.key, t.query, here), t.value = repeat_heads(t.value, t.query, here);
    shares_heads = false;
  }
  const bool flash =
      !t.mask.defined() || t.mask.dtype() == DType::boolean || t.mask.dtype() == t.query.dtype();
  if (flash && !in_parts(a.real<"dropout_p">(), t.mask)) {
    repeat_leading_dimensions(t, shares_heads, here);
    return {std::get<0>(call<ops::_scaled_dot_product_flash_attention_for_cpu>(
        here, t.query, t.key, t.value, 0.0, t.causal, t.mask, t.scale))};
  }
  if (shares_heads)
    t.key = repeat_heads(t.key, t.query, here), t.value = repeat_heads(t.value, t.query, here);
  return {attend(t, t.scores(here), a.real<"dropout_p">(), here)};
}

TAPER_DECOMPOSITION_AS(_scaled_dot_product_flash_attention_for_cpu, true,
                       call_in_parts<ops::_scaled_dot_product_flash_attention_for_cpu>) {
  const Location here = a.here();
  Attention t = read_attention(a);
  check("_scaled_dot_product_flash_attention_for_cpu", t, here);
  t.key = repeat_heads(t.key, t.query, here), t.value = repeat_heads(t.value, t.query, here);
  const Tensor s = t.scores(here);
  return {attend(t, s, a.real<"dropout_p">(), here), logsumexp(s, {-1}, false, here)};
}

}  // namespace decompositions
}  // namespace taper::eager
