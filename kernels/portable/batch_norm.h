// Batch normalisation with given statistics, and the gradient, over `Loops` (elements.h).
// batch_norm.cpp has the formulas.
#pragma once
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/norm.h"
#include "taper/kernels/portable/pays.h"
#include "taper/kernels/portable/row_sums.h"
#include "taper/kernels/portable/small_rows.h"

namespace taper::portable::batch_norm {

/// A tensor (batch, channels, plane); one channel is `batch` rows of `plane` elements.
struct Channels {
  index_t batch, channels, plane;
  double count() const { return static_cast<double>(batch) * static_cast<double>(plane); }
  index_t row(index_t image, index_t channel) const { return (image * channels + channel) * plane; }
};
inline Channels channels_of(const Shape& s) {
  Channels c{s.sizes[0], s.sizes[1], 1};
  for (int i = 2; i < s.rank; ++i) c.plane *= s.sizes[i];
  return c;
}

template <class T>
void normalize(index_t n, const T* x, T mean, T scale, T shift, T* y) {
  for_each_element(n, [=](index_t i) { y[i] = (x[i] - mean) * scale + shift; });
}

/// Statistics and parameters may be f16 or bf16, like the input. All arithmetic is in T, and the
/// result is rounded once.
template <class Loops, class E>
void evaluate(const Context& context, View<const E> input, const Maybe<View<const E>>& weight,
              const Maybe<View<const E>>& bias, View<const E> running_mean,
              View<const E> running_var, double eps, View<E> out) {
  using T = Compute<E>;
  const Channels c = channels_of(input.shape());
  const Threads* threads = if_it_pays(context.threads, c.channels * c.count());
  parallel_for(threads, c.channels, [&](index_t channel) {
    const T mean = value_of(running_mean, channel),
            invstd = 1 / std::sqrt(value_of(running_var, channel) + static_cast<T>(eps)),
            scale = weight ? invstd * value_of(*weight, channel) : invstd,
            shift = bias ? value_of(*bias, channel) : T(0);
    for (index_t image = 0; image < c.batch; ++image)
      for_each_part<Loops, E>(*input.ref, *out.ref, c.row(image, channel), c.plane,
                              [=](index_t n, const T* x, T* y) {
                                Loops::template call<&normalize<T>>(n, x, mean, scale, shift, y);
                              });
  });
}

template <class Loops, class E>
Error no_training(Context& context, View<const E> input, Maybe<View<const E>> weight,
                  Maybe<View<const E>> bias, View<const E> running_mean, View<const E> running_var,
                  double, double eps, View<E> out, View<E>, View<E>) {
  evaluate<Loops>(context, input, weight, bias, running_mean, running_var, eps, out);
  return Error::ok;
}

/// One channel of a gradient. dx is nullptr if it is not needed.
template <class T>
struct ChannelGradient {
  Channels shape;
  const T *x, *dy;
  T* dx;
  bool training;
  T mean, invstd, weight;
};

/// Computes the channel's gradients of weight and bias, and its dx.
template <class T>
void channel_gradient(const ChannelGradient<T>& g, T* grad_weight, T* grad_bias) {
  const Channels& c = g.shape;
  const index_t next = c.channels * c.plane;
  const T mean = g.mean;
  double sum = 0, product = 0;  // of dy, and of dy (x - mean)
  for (index_t image = 0; image < c.batch; ++image) {
    const T *x = g.x + image * next, *dy = g.dy + image * next;
    T row_sum, row_product;
    row_sums<T>(
        c.plane, row_sum, row_product, [=](index_t i) { return dy[i]; },
        [=](index_t i) { return dy[i] * (x[i] - mean); });
    sum += row_sum, product += row_product;
  }
  *grad_weight = static_cast<T>(product * g.invstd), *grad_bias = static_cast<T>(sum);
  if (g.dx == nullptr) return;
  const T scale = g.invstd * g.weight, shift = static_cast<T>(sum / c.count()),
          slope = static_cast<T>(product * g.invstd * g.invstd / c.count());
  for (index_t image = 0; image < c.batch; ++image) {
    const T *x = g.x + image * next, *dy = g.dy + image * next;
    T* dx = g.dx + image * next;
    if (g.training)
      for_each_element(c.plane,
                       [=](index_t i) { dx[i] = (dy[i] - shift - (x[i] - mean) * slope) * scale; });
    else
      for_each_element(c.plane, [=](index_t i) { dx[i] = dy[i] * scale; });
  }
}

/// Training: dx = weight invstd (dy - mean(dy) - xhat mean(dy xhat)), xhat = (x - mean) invstd.
/// Evaluation: dx = weight invstd dy.
template <class Loops, class T>
Error backward(Context& context, View<const T> grad_out, View<const T> input,
               Maybe<View<const T>> weight, Maybe<View<const T>> running_mean,
               Maybe<View<const T>> running_var, Maybe<View<const T>> save_mean,
               Maybe<View<const T>> save_invstd, bool training, double eps, Span<const int64_t>,
               Maybe<View<T>> grad_input, Maybe<View<T>> grad_weight, Maybe<View<T>> grad_bias) {
  const Channels c = channels_of(input.shape());
  const Threads* threads = if_it_pays(context.threads, c.channels * c.count());
  parallel_for(threads, c.channels, [&](index_t channel) {
    const index_t first = c.row(0, channel);
    const ChannelGradient<T> gradient{
        c,
        input.data() + first,
        grad_out.data() + first,
        grad_input ? grad_input->data() + first : nullptr,
        training,
        training ? save_mean->data()[channel] : running_mean->data()[channel],
        training ? save_invstd->data()[channel]
                 : 1 / std::sqrt(running_var->data()[channel] + static_cast<T>(eps)),
        value_or<T>(weight, channel, 1)};
    T of_weight, of_bias;
    Loops::template call<&channel_gradient<T>>(gradient, &of_weight, &of_bias);
    if (grad_weight) grad_weight->data()[channel] = of_weight;
    if (grad_bias) grad_bias->data()[channel] = of_bias;
  });
  return Error::ok;
}

}  // namespace taper::portable::batch_norm
