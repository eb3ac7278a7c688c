// The connectionist temporal classification loss and its gradient, in the log domain: A. Graves et
// al., "Connectionist temporal classification: labelling unsegmented sequence data with recurrent
// neural networks", ICML 2006.
//
// A target l₁ … l_n is extended to blank l₁ blank … l_n blank, states s = 0 … 2n. With p =
// log_probs,
//
//   alpha[t, s] = p[t, label s] + log Σ exp alpha[t - 1, from],   from = s, s - 1 and, if s is a
//   label
//                 other than that of s - 2, s - 2;  alpha[0] has the states 0 and 1
//   loss        = -log(exp alpha[T - 1, 2n] + exp alpha[T - 1, 2n - 1])
//   beta        the same from the end
//   d loss / d p[t, k] = exp p[t, k] - exp(loss - p[t, k] + log Σ exp(alpha + beta)[t, s]),
//                 over the states s with label k
//
// As in PyTorch the gradient is the one for the softmax's input: p must be a log_softmax.
#include <limits>

#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/shapes/ctc.h"

namespace taper::portable {
namespace {

template <class T>
constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

template <class T>
T log_add(T a, T b) {
  const T greater = a > b ? a : b;
  if (greater == minus_infinity<T>) return greater;
  return greater + math::log(math::exp(a - greater) + math::exp(b - greater));
}

/// One example of the batch.
template <class T>
struct Example {
  const T* log_probs;  ///< of step 0; `step` further on that of step 1
  index_t step, time, states;
  const int64_t* target;
  int64_t blank;

  int64_t label(index_t s) const { return s % 2 == 0 ? blank : target[s / 2]; }
  T log_prob(index_t t, index_t s) const { return log_probs[t * step + label(s)]; }
  /// Whether state s can be reached from s - 2.
  bool skips(index_t s) const { return s >= 2 && label(s) != label(s - 2); }
};

template <class T>
struct Batch {
  View<const T> log_probs;
  View<const int64_t> targets;
  Span<const int64_t> input_lengths, target_lengths;
  int64_t blank;

  index_t target_at(index_t b) const {
    if (targets.rank() == 2) return b * targets.size(1);
    index_t at = 0;
    for (index_t i = 0; i < b; ++i) at += target_lengths[i];
    return at;
  }
  Example<T> example(index_t b) const {
    const index_t classes = log_probs.size(2);
    return {log_probs.data() + b * classes, log_probs.size(1) * classes,   input_lengths[b],
            2 * target_lengths[b] + 1,      targets.data() + target_at(b), blank};
  }
  /// The targets that count must name classes.
  Error check(Context& context) const {
    for (index_t b = 0; b < target_lengths.size(); ++b)
      for (index_t i = 0, at = target_at(b); i < target_lengths[b]; ++i)
        if (const int64_t t = targets.data()[at + i]; t < 0 || t >= log_probs.size(2))
          return context.fail(Error::invalid_argument, TAPER_TEXT("target {} is outside [0, {})"),
                              t, log_probs.size(2));
    return Error::ok;
  }
};

/// Fills alpha (time, width) and gives the loss.
template <class T>
T run_forward(const Example<T>& e, T* alpha, index_t width) {
  if (e.time == 0) return e.states == 1 ? T(0) : -minus_infinity<T>;
  for (index_t s = 0; s < e.states; ++s) alpha[s] = s < 2 ? e.log_prob(0, s) : minus_infinity<T>;
  for (index_t t = 1; t < e.time; ++t) {
    const T* before = alpha + (t - 1) * width;
    T* now = alpha + t * width;
    for (index_t s = 0; s < e.states; ++s) {
      T sum = before[s];
      if (s > 0) sum = log_add(sum, before[s - 1]);
      if (e.skips(s)) sum = log_add(sum, before[s - 2]);
      now[s] = sum + e.log_prob(t, s);
    }
  }
  const T* last = alpha + (e.time - 1) * width + e.states - 1;
  return -(e.states == 1 ? last[0] : log_add(last[0], last[-1]));
}

template <class T>
Error forward(Context& context, View<const T> log_probs, View<const int64_t> targets,
              Span<const int64_t> input_lengths, Span<const int64_t> target_lengths, int64_t blank,
              bool, View<T> loss, View<T> log_alpha) {
  const Batch<T> batch{log_probs, targets, input_lengths, target_lengths, blank};
  TAPER_TRY(batch.check(context));
  const index_t size = log_alpha.size(1) * log_alpha.size(2);
  parallel_for(context.threads, loss.size(0), [&](index_t b) {
    T* alpha = log_alpha.data() + b * size;
    for (index_t i = 0; i < size; ++i) alpha[i] = minus_infinity<T>;
    loss.data()[b] = run_forward(batch.example(b), alpha, log_alpha.size(2));
  });
  return Error::ok;
}

/// The gradient of one example, one row of classes every `e.step` elements. beta: two rows.
template <class T>
void run_backward(const Example<T>& e, const T* alpha, index_t width, T* beta, index_t classes,
                  T loss, T grad, T* out) {
  T *now = beta, *behind = beta + width;
  for (index_t t = e.time - 1; t >= 0; --t) {
    T* row = out + t * e.step;
    for (index_t k = 0; k < classes; ++k) row[k] = minus_infinity<T>;
    for (index_t s = 0; s < e.states; ++s) {
      T sum;
      if (t == e.time - 1) {
        sum = s + 2 >= e.states ? T(0) : minus_infinity<T>;
      } else {
        sum = behind[s];
        if (s + 1 < e.states) sum = log_add(sum, behind[s + 1]);
        if (s + 2 < e.states && e.skips(s + 2)) sum = log_add(sum, behind[s + 2]);
      }
      now[s] = sum + e.log_prob(t, s);
      T& together = row[e.label(s)];
      together = log_add(together, alpha[t * width + s] + now[s]);
    }
    const T* p = e.log_probs + t * e.step;
    for (index_t k = 0; k < classes; ++k)
      row[k] = grad * (math::exp(p[k]) - math::exp(row[k] + loss - p[k]));
    T* const spare = behind;
    behind = now, now = spare;
  }
}

struct Plan {};

template <class T>
Error prepare_backward(Context& context, Plan&, View<const T>, View<const T>, View<const int64_t>,
                       Span<const int64_t>, Span<const int64_t>, View<const T>,
                       View<const T> log_alpha, int64_t, bool, View<T>) {
  context.need_scratch(static_cast<size_t>(2 * log_alpha.size(0) * log_alpha.size(2)) * sizeof(T));
  return Error::ok;
}

template <class T>
Error backward(Context& context, const Plan&, View<const T> grad, View<const T> log_probs,
               View<const int64_t> targets, Span<const int64_t> input_lengths,
               Span<const int64_t> target_lengths, View<const T> loss, View<const T> log_alpha,
               int64_t blank, bool zero_infinity, View<T> out) {
  const Batch<T> batch{log_probs, targets, input_lengths, target_lengths, blank};
  TAPER_TRY(batch.check(context));
  const index_t time = out.size(0), classes = out.size(2), width = log_alpha.size(2);
  parallel_for(context.threads, loss.size(0), [&](index_t b) {
    const Example<T> e = batch.example(b);
    T* rows = out.data() + b * classes;
    // Steps behind the input's length count for nothing; nor does an impossible target, if asked.
    const T nll = loss.data()[b];
    const bool skipped = zero_infinity && nll == -minus_infinity<T>;
    for (index_t t = skipped ? 0 : e.time; t < time; ++t)
      for (index_t k = 0; k < classes; ++k) rows[t * e.step + k] = 0;
    if (!skipped)
      run_backward(e, log_alpha.data() + b * time * width, width,
                   static_cast<T*>(context.scratch) + 2 * b * width, classes, nll, grad.data()[b],
                   rows);
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(_ctc_loss, f32, forward<float>)
TAPER_KERNEL(_ctc_loss, f64, forward<double>)
TAPER_KERNEL(_ctc_loss_backward, f32, prepare_backward<float>, backward<float>)
TAPER_KERNEL(_ctc_loss_backward, f64, prepare_backward<double>, backward<double>)

}  // namespace taper::portable
