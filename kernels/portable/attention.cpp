// scaled_dot_product_attention, query by query, without the matrix of scores: blocks of keys one
// after the other. Each query keeps its peak m, the sum l of exp(score - m), and the sum of
// exp(score - m) value; when a later block raises the peak, both sums are scaled by exp(m_old -
// m_new). (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax",
// arXiv:1805.02867.)
#include "taper/kernels/portable/attention.h"

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/shapes/attention.h"

namespace taper::portable {
namespace {

constexpr index_t key_block = 128;

using In = AnyView<const float>;
using Mask = Maybe<AnyView<const MaskElement>>;

Error prepare(Context& context, AttentionHeads& plan, In query, In key, In value, Mask mask,
              double dropout_p, bool, Maybe<double>, bool, View<float> out) {
  if (dropout_p != 0) return no_dropout(context);
  plan = attention_heads(query.shape(), key.shape(), value.shape(), mask ? &mask->shape() : nullptr,
                         out.shape());
  return Error::ok;
}

float dot(const float* a, index_t a_stride, const float* b, index_t b_stride, index_t n) {
  if (a_stride == 1 && b_stride == 1)
    return sum_of<float>(n, [=](index_t i) { return a[i] * b[i]; });
  return sum_of<float>(n, [=](index_t i) { return a[i * a_stride] * b[i * b_stride]; });
}

Error run(Context& context, const AttentionHeads& plan, In query, In key, In value, Mask mask,
          double, bool is_causal, Maybe<double> scale, bool, View<float> out) {
  const float by = attention_scale(scale, plan.features);
  const bool hides = mask && mask->dtype() == DType::boolean;
  parallel_for(context.threads, plan.count * plan.queries, [&](index_t task) {
    const index_t head = task / plan.queries, i = task % plan.queries;
    const float* q = query.data() + plan.offset(plan.query, head) + i * plan.query.row;
    const float* k = key.data() + plan.offset(plan.key, head);
    const float* v = value.data() + plan.offset(plan.value, head);
    const index_t mask_row = mask ? plan.offset(plan.mask, head) + i * plan.mask.row : 0;
    float* y = out.data() + task * plan.values;
    for_each_element(plan.values, [=](index_t f) { y[f] = 0; });

    float peak = -HUGE_VALF, sum = 0, weights[key_block];
    const index_t keys = is_causal && i < plan.keys ? i + 1 : plan.keys;
    for (index_t at = 0; at < keys; at += key_block) {
      const index_t n = keys - at < key_block ? keys - at : key_block;
      const float before = peak;
      for (index_t j = 0; j < n; ++j) {
        float& score = weights[j];
        score =
            dot(q, plan.query.column, k + (at + j) * plan.key.row, plan.key.column, plan.features) *
            by;
        const index_t element = mask_row + (at + j) * plan.mask.column;
        if (hides && !static_cast<const bool*>(mask->ref->data)[element]) score = -HUGE_VALF;
        if (mask && !hides) score += static_cast<const float*>(mask->ref->data)[element];
        peak = score > peak ? score : peak;
      }
      // a peak of -inf: nothing to attend to yet; exp(-inf - -inf) is not asked for
      const float shift = peak == -HUGE_VALF ? 0 : peak,
                  factor = before == peak ? 1 : math::exp(before - peak);
      for_each_element(n, [&](index_t j) { weights[j] = math::exp(weights[j] - shift); });
      sum = sum * factor + sum_of<float>(n, [&](index_t j) { return weights[j]; });
      if (factor != 1) for_each_element(plan.values, [=](index_t f) { y[f] *= factor; });
      for (index_t j = 0; j < n; ++j) {
        const float *row = v + (at + j) * plan.value.row, w = weights[j];
        const index_t column = plan.value.column;
        if (column == 1)
          for_each_element(plan.values, [=](index_t f) { y[f] += w * row[f]; });
        else
          for_each_element(plan.values, [=](index_t f) { y[f] += w * row[f * column]; });
      }
    }
    if (sum != 0) for_each_element(plan.values, [=](index_t f) { y[f] /= sum; });
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(scaled_dot_product_attention, f32, prepare, run)

}  // namespace taper::portable
