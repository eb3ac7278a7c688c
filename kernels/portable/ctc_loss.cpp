// The connectionist temporal classification loss and its gradient, in the log domain: A. Graves et
// al., "Connectionist temporal classification: labelling unsegmented sequence data with recurrent
// neural networks", ICML 2006.
//
// A target l₁ … l_n is extended to blank l₁ blank … l_n blank. This gives states s = 0 … 2n. With p
// = log_probs,
//
//   alpha[t, s] = p[t, label s] + log Σ exp alpha[t - 1, from],
//                  from = s, s - 1, and s - 2 if s is a label other than that of s - 2;
//                  alpha[0] has the states 0 and 1
//   loss        = -log(exp alpha[T - 1, 2n] + exp alpha[T - 1, 2n - 1])
//   beta        = the same from the end, without p[t, label s]
//   d loss / d p[t, k] = exp p[t, k] - Σ exp(alpha + beta + loss)[t, s],
//                  over the states s with label k
//
// As in PyTorch, the gradient is with respect to the input of the softmax: p must be a log_softmax.
#include <limits>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/shapes/ctc.h"

namespace taper::portable {
namespace {

template <class T>
constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

/// log(exp a + exp b + exp c)
template <class T>
T log_add(T a, T b, T c = minus_infinity<T>) {
  const T ab = a > b ? a : b, most = ab > c ? ab : c,
          shift = most == minus_infinity<T> ? T(0) : most;
  return shift + math::log(math::exp(a - shift) + math::exp(b - shift) + math::exp(c - shift));
}

/// One example of the batch.
template <class T>
struct Example {
  const T* log_probs;  ///< of step 0; those of the next step lie `step` elements further on
  index_t step, time, states;
  const int64_t* target;
  int64_t blank;

  int64_t label(index_t s) const { return s % 2 == 0 ? blank : target[s / 2]; }
  T log_prob(index_t t, index_t s) const { return log_probs[t * step + label(s)]; }
  /// row[s] += log_prob(t, s)
  void add_log_probs(index_t t, T* row) const {
    for (index_t s = 0; s < states; ++s) row[s] += log_prob(t, s);
  }
  /// gates[s] is 0 if state s can be reached from s - 2, else -infinity.
  void fill_gates(T* gates) const {
    for (index_t s = 0; s < states; ++s)
      gates[s] = s >= 2 && label(s) != label(s - 2) ? T(0) : minus_infinity<T>;
  }
};

/// sum[i] = log Σ exp over the states i, i + way and, if its gate is open, i + 2 way.
template <class T>
void add_ways(const T* row, index_t way, const T* gates, index_t n, T* sum) {
  const T *next = row + way, *after = next + way;
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i)
    sum[i] = log_add(row[i], next[i], gates[i] == T(0) ? after[i] : minus_infinity<T>);
}

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
    return {log_probs.data() + b * classes,         log_probs.size(1) * classes,
            static_cast<index_t>(input_lengths[b]), static_cast<index_t>(2 * target_lengths[b] + 1),
            targets.data() + target_at(b),          blank};
  }
  /// The lengths lie in the tensors. A rule checks those that are numbers.
  Error check_lengths(Context& context) const {
    const bool rows = targets.rank() == 2;
    index_t left = targets.size(-1);  // targets that belong to no example yet
    for (index_t b = 0; b < target_lengths.size(); ++b) {
      if (input_lengths[b] < 0 || input_lengths[b] > log_probs.size(0))
        return context.fail(Error::invalid_argument,
                            TAPER_TEXT("input length {} is outside [0, {}]"), input_lengths[b],
                            log_probs.size(0));
      if (target_lengths[b] < 0 || target_lengths[b] > left)
        return context.fail(Error::invalid_argument,
                            TAPER_TEXT("target length {} is outside [0, {}]"), target_lengths[b],
                            left);
      if (!rows) left -= target_lengths[b];
    }
    if (!rows && left != 0)
      return context.fail(Error::invalid_argument,
                          TAPER_TEXT("there are {} targets, their lengths make {}"),
                          targets.size(0), targets.size(0) - left);
    return Error::ok;
  }
  /// Targets must name classes. Only the first target_lengths of them count.
  Error check_targets(Context& context) const {
    for (index_t b = 0; b < target_lengths.size(); ++b)
      for (index_t i = 0, at = target_at(b); i < target_lengths[b]; ++i)
        if (const int64_t t = targets.data()[at + i]; t < 0 || t >= log_probs.size(2))
          return context.fail(Error::invalid_argument, TAPER_TEXT("target {} is outside [0, {})"),
                              t, log_probs.size(2));
    return Error::ok;
  }
};

/// Fills alpha (time, width) and returns the loss.
template <class T>
T run_forward(const Example<T>& e, T* alpha, index_t width, T* gates) {
  if (e.time == 0) return e.states == 1 ? T(0) : -minus_infinity<T>;
  e.fill_gates(gates);
  for (index_t s = 0; s < e.states && s < 2; ++s) alpha[s] = e.log_prob(0, s);
  for (index_t t = 1; t < e.time; ++t) {
    const T* before = alpha + (t - 1) * width;
    T* now = alpha + t * width;
    now[0] = log_add(before[0], minus_infinity<T>);  // changes nothing, but turns infinity into NaN
    if (e.states > 1) {
      now[1] = log_add(before[1], before[0]);
      add_ways(before + 2, -1, gates + 2, e.states - 2, now + 2);
    }
    e.add_log_probs(t, now);
  }
  const T* last = alpha + (e.time - 1) * width + e.states - 1;
  return -(e.states == 1 ? last[0] : log_add(last[0], last[-1]));
}

struct Plan {};

template <class T>
Error prepare(Context& context, Plan&, View<const T>, View<const int64_t>, Span<const int64_t>,
              Span<const int64_t>, int64_t, bool, View<T>, View<T> log_alpha) {
  context.need_scratch(static_cast<size_t>(log_alpha.size(0) * log_alpha.size(2)) * sizeof(T));
  return Error::ok;
}
template <class T>
Error compute(Context& context, const Batch<T>& batch, View<T> loss, View<T> log_alpha) {
  TAPER_TRY(batch.check_targets(context));
  const index_t width = log_alpha.size(2), size = log_alpha.size(1) * width;
  parallel_for(context.threads, loss.size(0), [&](index_t b) {
    T* alpha = log_alpha.data() + b * size;
    for (index_t i = 0; i < size; ++i) alpha[i] = minus_infinity<T>;
    loss.data()[b] =
        run_forward(batch.example(b), alpha, width, static_cast<T*>(context.scratch) + b * width);
  });
  return Error::ok;
}

template <class T>
Error forward(Context& context, const Plan&, View<const T> log_probs, View<const int64_t> targets,
              Span<const int64_t> input_lengths, Span<const int64_t> target_lengths, int64_t blank,
              bool, View<T> loss, View<T> log_alpha) {
  const Batch<T> batch{log_probs, targets, input_lengths, target_lengths, blank};
  return compute(context, batch, loss, log_alpha);
}

// ---- lengths in tensors

Span<const int64_t> elements_of(View<const int64_t> lengths) {
  return {lengths.data(), lengths.size(0)};
}

template <class T>
Error prepare_by_tensors(Context& context, Plan& plan, View<const T> log_probs,
                         View<const int64_t> targets, View<const int64_t>, View<const int64_t>,
                         int64_t blank, bool zero_infinity, View<T> loss, View<T> log_alpha) {
  return prepare<T>(context, plan, log_probs, targets, {}, {}, blank, zero_infinity, loss,
                    log_alpha);
}
template <class T>
Error forward_by_tensors(Context& context, const Plan&, View<const T> log_probs,
                         View<const int64_t> targets, View<const int64_t> input_lengths,
                         View<const int64_t> target_lengths, int64_t blank, bool, View<T> loss,
                         View<T> log_alpha) {
  const Batch<T> batch{log_probs, targets, elements_of(input_lengths), elements_of(target_lengths),
                       blank};
  TAPER_TRY(batch.check_lengths(context));
  return compute(context, batch, loss, log_alpha);
}

// ---- the gradient

/// Rows of states that the gradient of one example needs. Behind each row are two states that
/// cannot be reached.
template <class T>
struct Rows {
  static constexpr index_t count = 4, beyond = 2;
  T *beta, *behind, *gates, *shares;

  Rows(T* memory, index_t width) {
    for (T** row : {&beta, &behind, &gates, &shares}) *row = memory, memory += width + beyond;
    for (index_t i = 0; i < count * (width + beyond); ++i) beta[i] = minus_infinity<T>;
  }
};

/// The gradient of one example. Its rows of classes are `e.step` elements apart.
template <class T>
void run_backward(const Example<T>& e, const T* alpha, index_t width, Rows<T> rows, index_t classes,
                  T loss, T grad, T* out) {
  auto& [beta, behind, gates, shares] = rows;
  e.fill_gates(gates);
  for (index_t t = e.time - 1; t >= 0; --t) {
    if (t == e.time - 1)
      for (index_t s = 0; s < e.states; ++s) beta[s] = s + 2 >= e.states ? T(0) : minus_infinity<T>;
    else
      add_ways(behind, 1, gates + 2, e.states, beta);
    const T* before = alpha + t * width;
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t s = 0; s < e.states; ++s) shares[s] = math::exp(before[s] + beta[s] + loss);
    T* const row = out + t * e.step;
    const T* p = e.log_probs + t * e.step;
    const T none = loss - loss;  // NaN if the target is impossible, as in PyTorch
    for (index_t k = 0; k < classes; ++k) row[k] = none;
    for (index_t s = 0; s < e.states; ++s) row[e.label(s)] += shares[s];
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t k = 0; k < classes; ++k)  // NaN for a class of probability 0, as in PyTorch
      row[k] = grad * (math::exp(p[k]) - row[k] + (p[k] - p[k]));
    e.add_log_probs(t, beta);
    T* const spare = behind;
    behind = beta, beta = spare;
  }
}

template <class T>
Error prepare_backward(Context& context, Plan&, View<const T>, View<const T>, View<const int64_t>,
                       Span<const int64_t>, Span<const int64_t>, View<const T>,
                       View<const T> log_alpha, int64_t, bool, View<T>) {
  const index_t row = log_alpha.size(2) + Rows<T>::beyond;
  context.need_scratch(static_cast<size_t>(log_alpha.size(0) * Rows<T>::count * row) * sizeof(T));
  return Error::ok;
}

template <class T>
Error compute_gradient(Context& context, const Batch<T>& batch, View<const T> grad,
                       View<const T> loss, View<const T> log_alpha, bool zero_infinity,
                       View<T> out) {
  TAPER_TRY(batch.check_targets(context));
  const index_t time = out.size(0), classes = out.size(2), width = log_alpha.size(2);
  parallel_for(context.threads, loss.size(0), [&](index_t b) {
    const Example<T> e = batch.example(b);
    T* rows = out.data() + b * classes;
    // Steps beyond the input's length do not count. With zero_infinity, an impossible target does
    // not count either.
    const T nll = loss.data()[b];
    const bool skipped = zero_infinity && nll == -minus_infinity<T>;
    for (index_t t = skipped ? 0 : e.time; t < time; ++t)
      for (index_t k = 0; k < classes; ++k) rows[t * e.step + k] = 0;
    if (!skipped)
      run_backward(
          e, log_alpha.data() + b * time * width, width,
          Rows<T>(static_cast<T*>(context.scratch) + b * Rows<T>::count * (width + Rows<T>::beyond),
                  width),
          classes, nll, grad.data()[b], rows);
  });
  return Error::ok;
}

template <class T>
Error backward(Context& context, const Plan&, View<const T> grad, View<const T> log_probs,
               View<const int64_t> targets, Span<const int64_t> input_lengths,
               Span<const int64_t> target_lengths, View<const T> loss, View<const T> log_alpha,
               int64_t blank, bool zero_infinity, View<T> out) {
  const Batch<T> batch{log_probs, targets, input_lengths, target_lengths, blank};
  return compute_gradient(context, batch, grad, loss, log_alpha, zero_infinity, out);
}

template <class T>
Error prepare_backward_by_tensors(Context& context, Plan& plan, View<const T> grad,
                                  View<const T> log_probs, View<const int64_t> targets,
                                  View<const int64_t>, View<const int64_t>, View<const T> loss,
                                  View<const T> log_alpha, int64_t blank, bool zero_infinity,
                                  View<T> out) {
  return prepare_backward<T>(context, plan, grad, log_probs, targets, {}, {}, loss, log_alpha,
                             blank, zero_infinity, out);
}
template <class T>
Error backward_by_tensors(Context& context, const Plan&, View<const T> grad,
                          View<const T> log_probs, View<const int64_t> targets,
                          View<const int64_t> input_lengths, View<const int64_t> target_lengths,
                          View<const T> loss, View<const T> log_alpha, int64_t blank,
                          bool zero_infinity, View<T> out) {
  const Batch<T> batch{log_probs, targets, elements_of(input_lengths), elements_of(target_lengths),
                       blank};
  TAPER_TRY(batch.check_lengths(context));
  for (const int64_t n : batch.target_lengths)
    if (2 * n + 1 > log_alpha.size(2))
      return context.fail(Error::invalid_argument,
                          TAPER_TEXT("a target of length {} needs {} states, log_alpha has {}"), n,
                          2 * n + 1, log_alpha.size(2));
  return compute_gradient(context, batch, grad, loss, log_alpha, zero_infinity, out);
}

}  // namespace

TAPER_KERNEL(_ctc_loss, f32, prepare<float>, forward<float>)
TAPER_KERNEL(_ctc_loss, f64, prepare<double>, forward<double>)
TAPER_KERNEL(_ctc_loss_backward, f32, prepare_backward<float>, backward<float>)
TAPER_KERNEL(_ctc_loss_backward, f64, prepare_backward<double>, backward<double>)
TAPER_KERNEL(_ctc_loss_Tensor, f32, prepare_by_tensors<float>, forward_by_tensors<float>)
TAPER_KERNEL(_ctc_loss_Tensor, f64, prepare_by_tensors<double>, forward_by_tensors<double>)
TAPER_KERNEL(_ctc_loss_backward_Tensor, f32, prepare_backward_by_tensors<float>,
             backward_by_tensors<float>)
TAPER_KERNEL(_ctc_loss_backward_Tensor, f64, prepare_backward_by_tensors<double>,
             backward_by_tensors<double>)

}  // namespace taper::portable
