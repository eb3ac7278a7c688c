// Attention without the matrix of scores: each query takes the keys block by block. A query keeps
// its peak m, the sum l of exp(score - m), and the sum of exp(score - m) value. When a later block
// raises the peak, both sums are multiplied by exp(m_old - m_new). (M. Milakov, N. Gimelshein,
// "Online normalizer calculation for softmax", arXiv:1805.02867.) The backward pass recomputes the
// weights from m + log l.
#include "taper/kernels/portable/attention.h"

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/shapes/attention.h"

namespace taper::portable {
namespace {

constexpr index_t key_block = 128;

template <class T>
using In = AnyView<const T>;
template <class T>
using Mask = AttentionMask<T>;

template <class T>
T dot(const T* a, index_t a_stride, const T* b, index_t b_stride, index_t n) {
  if (a_stride == 1 && b_stride == 1) return sum_of<T>(n, [=](index_t i) { return a[i] * b[i]; });
  return sum_of<T>(n, [=](index_t i) { return a[i * a_stride] * b[i * b_stride]; });
}

/// y += factor x
template <class T>
void add_multiple(T* y, T factor, const T* x, index_t stride, index_t n) {
  if (stride == 1)
    for_each_element(n, [=](index_t i) { y[i] += factor * x[i]; });
  else
    for_each_element(n, [=](index_t i) { y[i] += factor * x[i * stride]; });
}

/// The scores of queries and keys.
template <class T>
class Scores {
 public:
  Scores(const AttentionHeads& plan, In<T> query, In<T> key, const Mask<T>& mask, bool is_causal,
         const Maybe<double>& scale)
      : scale(static_cast<T>(attention_scale(scale, plan.features))),
        plan_(plan),
        query_(query.data()),
        key_(key.data()),
        mask_(mask ? mask->ref->data : nullptr),
        hides_(mask && mask->dtype() == DType::boolean),
        is_causal_(is_causal) {}

  const T scale;

  /// Query i may attend to the first keys(i) keys, as far as is_causal says.
  index_t keys(index_t i) const { return is_causal_ && i < plan_.keys ? i + 1 : plan_.keys; }
  /// The first query that may attend to key j.
  index_t first_query(index_t j) const { return is_causal_ ? j : 0; }

  const T* query(index_t head, index_t i) const {
    return query_ + plan_.offset(plan_.query, head) + i * plan_.query.row;
  }
  const T* key(index_t head, index_t j) const {
    return key_ + plan_.offset(plan_.key, head) + j * plan_.key.row;
  }
  index_t mask(index_t head, index_t i, index_t j) const {
    return plan_.offset(plan_.mask, head) + i * plan_.mask.row + j * plan_.mask.column;
  }
  T operator()(const T* query, const T* key, index_t mask) const {
    const T score = dot(query, plan_.query.column, key, plan_.key.column, plan_.features) * scale;
    if (hides_) return static_cast<const uint8_t*>(mask_)[mask] != 0 ? score : -HUGE_VALF;
    return mask_ != nullptr ? score + static_cast<const T*>(mask_)[mask] : score;
  }

 private:
  const AttentionHeads& plan_;
  const T *query_, *key_;
  const void* mask_;
  bool hides_, is_causal_;
};

template <class T>
void attend(Context& context, const AttentionHeads& plan, const Scores<T>& scores, In<T> value,
            T* out, T* logsumexp) {
  parallel_for(context.threads, plan.count * plan.queries, [&](index_t task) {
    const index_t head = task / plan.queries, i = task % plan.queries;
    const T *q = scores.query(head, i), *k = scores.key(head, 0);
    const T* v = value.data() + plan.offset(plan.value, head);
    const index_t mask_row = scores.mask(head, i, 0);
    T* y = out + plan.offset(plan.result, head) + i * plan.result.row;
    for_each_element(plan.values, [=](index_t f) { y[f] = 0; });

    T peak = -HUGE_VALF, sum = 0, weights[key_block];
    const index_t keys = scores.keys(i);
    for (index_t at = 0; at < keys; at += key_block) {
      const index_t n = keys - at < key_block ? keys - at : key_block;
      const T before = peak;
      for (index_t j = 0; j < n; ++j) {
        weights[j] = scores(q, k + (at + j) * plan.key.row, mask_row + (at + j) * plan.mask.column);
        peak = weights[j] > peak ? weights[j] : peak;
      }
      // a peak of -inf: no key to attend to yet
      const T shift = shift_of(peak), factor = before == peak ? 1 : math::exp(before - peak);
      for_each_element(n, [&](index_t j) { weights[j] = math::exp(weights[j] - shift); });
      sum = sum * factor + sum_of<T>(n, [&](index_t j) { return weights[j]; });
      if (factor != 1) for_each_element(plan.values, [=](index_t f) { y[f] *= factor; });
      for (index_t j = 0; j < n; ++j)
        add_multiple(y, weights[j], v + (at + j) * plan.value.row, plan.value.column, plan.values);
    }
    if (sum != 0) for_each_element(plan.values, [=](index_t f) { y[f] /= sum; });
    if (logsumexp != nullptr) logsumexp[task] = sum == 0 ? -HUGE_VALF : peak + math::log(sum);
  });
}

template <class T>
Error prepare(Context& context, AttentionHeads& plan, In<T> query, In<T> key, In<T> value,
              Mask<T> mask, double dropout_p, bool, Maybe<double>, bool, View<T> out) {
  if (dropout_p != 0) return no_dropout(context);
  plan = attention_heads(query.shape(), key.shape(), value.shape(), mask ? &mask->shape() : nullptr,
                         out.shape());
  return Error::ok;
}
template <class T>
Error run(Context& context, const AttentionHeads& plan, In<T> query, In<T> key, In<T> value,
          Mask<T> mask, double, bool is_causal, Maybe<double> scale, bool, View<T> out) {
  attend(context, plan, Scores<T>(plan, query, key, mask, is_causal, scale), value, out.data(),
         static_cast<T*>(nullptr));
  return Error::ok;
}

template <class T>
Error prepare_heads_last(Context&, AttentionHeads& plan, In<T> query, In<T> key, In<T> value,
                         Mask<T> mask, bool, Maybe<double>, bool, View<T> out) {
  plan = attention_heads(query.shape(), key.shape(), value.shape(), mask ? &mask->shape() : nullptr,
                         heads_first(out.shape()));
  return Error::ok;
}
template <class T>
Error run_heads_last(Context& context, const AttentionHeads& plan, In<T> query, In<T> key,
                     In<T> value, Mask<T> mask, bool is_causal, Maybe<double> scale, bool gqa,
                     View<T> out) {
  return run<T>(context, plan, query, key, value, mask, 0, is_causal, scale, gqa, out);
}

template <class T>
Error prepare_flash(Context& context, AttentionHeads& plan, In<T> query, In<T> key, In<T> value,
                    double dropout_p, bool is_causal, Mask<T> mask, Maybe<double> scale,
                    View<T> out, View<T>) {
  return prepare<T>(context, plan, query, key, value, mask, dropout_p, is_causal, scale, false,
                    out);
}
template <class T>
Error run_flash(Context& context, const AttentionHeads& plan, In<T> query, In<T> key, In<T> value,
                double, bool is_causal, Mask<T> mask, Maybe<double> scale, View<T> out,
                View<T> logsumexp) {
  attend(context, plan, Scores<T>(plan, query, key, mask, is_causal, scale), value, out.data(),
         logsumexp.data());
  return Error::ok;
}

// With weights p = exp(score - logsumexp) and d = Σ_f dout out, of query i:
//
//   dvalue_j = Σ_i p_ij dout_i         ds_ij = scale p_ij (dout_i · value_j - d_i)
//   dquery_i = Σ_j ds_ij key_j         dkey_j = Σ_i ds_ij query_i
//
// (T. Dao, "FlashAttention-2", arXiv:2307.08691, section 2.3.) If the keys are one block, d is
// computed as Σ_j p_ij dout_i · value_j / Σ_j p_ij. This is the same number, but it rounds less
// where one weight is nearly 1 and ds is nearly 0. One task computes all of a query's gradient,
// another all of a key's, so no sum is split among threads.
template <class T>
Error prepare_backward(Context& context, AttentionGradientHeads& plan, In<T> grad_out, In<T> query,
                       In<T> key, In<T> value, In<T> out, View<const T>, double dropout_p, bool,
                       Mask<T> mask, Maybe<double>, View<T>, View<T>, View<T>) {
  if (dropout_p != 0) return no_dropout(context);
  plan = attention_gradient_heads(grad_out.shape(), query.shape(), key.shape(), value.shape(),
                                  mask ? &mask->shape() : nullptr, out.shape());
  context.need_scratch(static_cast<size_t>(plan.count * plan.queries) * sizeof(T));  // d
  return Error::ok;
}
template <class T>
Error run_backward(Context& context, const AttentionGradientHeads& plan, In<T> grad_out,
                   In<T> query, In<T> key, In<T> value, In<T> out, View<const T> logsumexp, double,
                   bool is_causal, Mask<T> mask, Maybe<double> scale, View<T> grad_query,
                   View<T> grad_key, View<T> grad_value) {
  const Scores<T> scores(plan, query, key, mask, is_causal, scale);
  T* const d = static_cast<T*>(context.scratch);
  const auto row = [&](In<T> t, const Heads& h, index_t head, index_t i) {
    return t.data() + plan.offset(h, head) + i * h.row;
  };
  const index_t from_column = plan.grad_out.column;
  const auto slope = [&](const T* dy, const T* v) {
    return dot(dy, from_column, v, plan.value.column, plan.values);
  };
  parallel_for(context.threads, plan.count * plan.queries, [&](index_t task) {
    const index_t head = task / plan.queries, i = task % plan.queries;
    const T *q = scores.query(head, i), *k = scores.key(head, 0),
            *v = row(value, plan.value, head, 0), *dy = row(grad_out, plan.grad_out, head, i);
    const index_t mask_row = scores.mask(head, i, 0);
    const T shift = shift_of(logsumexp.data()[task]);
    T* dq = grad_query.data() + task * plan.features;
    for_each_element(plan.features, [=](index_t f) { dq[f] = 0; });
    d[task] = dot(dy, from_column, row(out, plan.out, head, i), plan.out.column, plan.values);
    T weights[key_block], slopes[key_block];
    const index_t keys = scores.keys(i);
    for (index_t at = 0; at < keys; at += key_block) {
      const index_t n = keys - at < key_block ? keys - at : key_block;
      for (index_t j = 0; j < n; ++j) {
        weights[j] = scores(q, k + (at + j) * plan.key.row, mask_row + (at + j) * plan.mask.column);
        slopes[j] = slope(dy, v + (at + j) * plan.value.row);
      }
      for_each_element(n, [&](index_t j) { weights[j] = math::exp(weights[j] - shift); });
      if (keys <= key_block) {
        T sum, sum_of_slopes;
        two_sums_of(n, sum, sum_of_slopes,
                    [&](index_t j, T& a, T& b) { a += weights[j], b += weights[j] * slopes[j]; });
        d[task] = sum == 0 ? 0 : sum_of_slopes / sum;
      }
      for (index_t j = 0; j < n; ++j)
        add_multiple(dq, weights[j] * (slopes[j] - d[task]) * scores.scale,
                     k + (at + j) * plan.key.row, plan.key.column, plan.features);
    }
  });
  parallel_for(context.threads, plan.groups * plan.keys, [&](index_t task) {
    const index_t group = task / plan.keys, j = task % plan.keys;
    T* dk = grad_key.data() + task * plan.features;
    T* dv = grad_value.data() + task * plan.values;
    for_each_element(plan.features, [=](index_t f) { dk[f] = 0; });
    for_each_element(plan.values, [=](index_t f) { dv[f] = 0; });
    for (index_t head = group * plan.sharing; head < (group + 1) * plan.sharing; ++head) {
      const T *q = scores.query(head, 0), *k = scores.key(head, j),
              *v = row(value, plan.value, head, j), *dy = row(grad_out, plan.grad_out, head, 0);
      const index_t mask_column = scores.mask(head, 0, j);
      for (index_t i = scores.first_query(j); i < plan.queries; ++i) {
        const T *q_row = q + i * plan.query.row, *dy_row = dy + i * plan.grad_out.row;
        const index_t at = head * plan.queries + i;
        const T p = math::exp(scores(q_row, k, mask_column + i * plan.mask.row) -
                              shift_of(logsumexp.data()[at]));
        const T ds = p * (slope(dy_row, v) - d[at]) * scores.scale;
        add_multiple(dv, p, dy_row, from_column, plan.values);
        add_multiple(dk, ds, q_row, plan.query.column, plan.features);
      }
    }
  });
  return Error::ok;
}

}  // namespace

#define TAPER_ATTENTION(variant, T)                                                                \
  TAPER_KERNEL(scaled_dot_product_attention, variant, prepare<T>, run<T>)                          \
  TAPER_KERNEL(taper_attention, variant, prepare_heads_last<T>, run_heads_last<T>)                 \
  TAPER_KERNEL(_scaled_dot_product_flash_attention_for_cpu, variant, prepare_flash<T>,             \
               run_flash<T>)                                                                       \
  TAPER_KERNEL(_scaled_dot_product_flash_attention_for_cpu_backward, variant, prepare_backward<T>, \
               run_backward<T>)
TAPER_ATTENTION(f32, float)
TAPER_ATTENTION(f64, double)

}  // namespace taper::portable
