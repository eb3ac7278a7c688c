#include "taper/exporter/eager/attention.h"

#include <cmath>
#include <limits>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager {

double Attention::scale_of_scores() const {
  return scale ? *scale : 1 / std::sqrt(static_cast<double>(query.size(-1).value()));
}

Tensor Attention::scores() const {
  const Scalar hidden(-std::numeric_limits<double>::infinity());
  const Tensor s = matmul(mul(query, Scalar(scale_of_scores())), key.transpose(-2, -1));
  if (causal) {
    const Tensor later = triu(ones({query.size(-2), key.size(-2)}, DType::boolean), 1);
    return masked_fill(s, later, hidden);
  }
  if (!mask.defined()) return s;
  if (mask.dtype() == DType::boolean) return masked_fill(s, logical_not(mask), hidden);
  return add(s, mask);
}

// Only with a mask can a query have no key to attend to: is_causal always leaves it the first key.
Tensor Attention::weights(const Tensor& scores) const {
  return mask.defined() ? call<ops::_safe_softmax>(scores, -1, std::nullopt)
                        : call<ops::_softmax>(scores, -1, false);
}

Tensor repeat_heads(const Tensor& t, const Tensor& query) {
  if (t.rank() < 3 || query.rank() < 3 || proves_equal(t.size(-3), query.size(-3))) return t;
  const Dim times = query.size(-3) / t.size(-3);
  Dims sizes = t.sizes();
  sizes.insert(sizes.end() - 2, times);
  Dims joined = t.sizes();
  joined[joined.size() - 3] *= times;
  return t.unsqueeze(-3).expand(sizes).reshape(joined);
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

void check(const char* name, const Attention& t) {
  const auto refuse = [&](const std::string& why) {
    throw EagerError(std::string(name) + ": " + why);
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

/// Kernels have no random numbers and compute no gradient of the mask.
bool in_parts(double dropout_p, const Tensor& mask) {
  return dropout_p != 0 || (grad_enabled() && mask.defined() && mask.requires_grad());
}
template <const Operator& op>
bool call_in_parts(const Boxed* arguments) {
  const Arguments<op> a(arguments);
  return in_parts(a.template real<"dropout_p">(), a.template tensor<"attn_mask">());
}

Tensor attend(const Attention& t, const Tensor& scores, double dropout_p) {
  Tensor weights = t.weights(scores);
  if (dropout_p != 0) weights = call<ops::dropout>(weights, dropout_p, true);
  return matmul(weights, t.value);
}

/// Flash attention broadcasts no leading dimension but the heads. So all three tensors get the same
/// leading dimensions. If heads may be shared, those of key and value stay as they are.
void repeat_leading_dimensions(Attention& t, bool shares_heads) {
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
    if (!same) *o = o->expand(sizes);
  }
}

}  // namespace

// With gradients: the forward pass that keeps the values for the backward pass.
TAPER_DECOMPOSITION_AS(scaled_dot_product_attention, true,
                       call_in_parts<ops::scaled_dot_product_attention>) {
  Attention t = read_attention(a);
  check("scaled_dot_product_attention", t);
  bool shares_heads =
      a.boolean<"enable_gqa">() && t.query.rank() >= 3 && t.key.rank() >= 3 && t.value.rank() >= 3;
  if (shares_heads && !proves_equal(t.key.size(-3), t.value.size(-3))) {
    t.key = repeat_heads(t.key, t.query), t.value = repeat_heads(t.value, t.query);
    shares_heads = false;
  }
  const bool flash =
      !t.mask.defined() || t.mask.dtype() == DType::boolean || t.mask.dtype() == t.query.dtype();
  if (flash && !in_parts(a.real<"dropout_p">(), t.mask)) {
    repeat_leading_dimensions(t, shares_heads);
    return {std::get<0>(call<ops::_scaled_dot_product_flash_attention_for_cpu>(
        t.query, t.key, t.value, 0.0, t.causal, t.mask, t.scale))};
  }
  if (shares_heads) t.key = repeat_heads(t.key, t.query), t.value = repeat_heads(t.value, t.query);
  return {attend(t, t.scores(), a.real<"dropout_p">())};
}

TAPER_DECOMPOSITION_AS(_scaled_dot_product_flash_attention_for_cpu, true,
                       call_in_parts<ops::_scaled_dot_product_flash_attention_for_cpu>) {
  Attention t = read_attention(a);
  check("_scaled_dot_product_flash_attention_for_cpu", t);
  t.key = repeat_heads(t.key, t.query), t.value = repeat_heads(t.value, t.query);
  const Tensor s = t.scores();
  return {attend(t, s, a.real<"dropout_p">()), logsumexp(s, {-1})};
}

}  // namespace decompositions
}  // namespace taper::eager
