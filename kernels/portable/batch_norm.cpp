// Batch normalisation, input (batch, channels, …), and its gradient.
//
//   y = (x - mean) invstd weight + bias,  invstd = 1 / sqrt(var + eps)
//
// Training takes mean and variance (biased) of each channel of the batch, evaluation the running
// ones. Sums run along the rows of a channel in T and over the rows in double. (S. Ioffe, C.
// Szegedy, "Batch Normalization", ICML 2015.)
#include <cmath>

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/norm.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/shapes/norm.h"

namespace taper::portable {
namespace {

/// A tensor (batch, channels, plane); one channel is `batch` rows of `plane` elements.
struct Channels {
  index_t batch, channels, plane;
  double count() const { return static_cast<double>(batch) * static_cast<double>(plane); }
  index_t row(index_t image, index_t channel) const { return (image * channels + channel) * plane; }
};
Channels channels_of(const Shape& s) {
  Channels c{s.sizes[0], s.sizes[1], 1};
  for (int i = 2; i < s.rank; ++i) c.plane *= s.sizes[i];
  return c;
}

/// The mean of a channel, and the sum of the squared distances from it.
template <class T>
void statistics(const Channels& c, const T* input, index_t channel, double& mean, double& squares) {
  double sum = 0;
  for (index_t image = 0; image < c.batch; ++image) {
    const T* x = input + c.row(image, channel);
    sum += sum_of<T>(c.plane, [=](index_t i) { return x[i]; });
  }
  mean = sum / c.count();
  squares = 0;
  const T center = static_cast<T>(mean);
  for (index_t image = 0; image < c.batch; ++image) {
    const T* x = input + c.row(image, channel);
    squares += sum_of<T>(c.plane, [=](index_t i) { return (x[i] - center) * (x[i] - center); });
  }
}

template <class T>
void normalize(const Channels& c, const T* input, index_t channel, T mean, T scale, T shift,
               T* out) {
  for (index_t image = 0; image < c.batch; ++image) {
    const T* x = input + c.row(image, channel);
    T* y = out + c.row(image, channel);
    for_each_element(c.plane, [=](index_t i) { y[i] = (x[i] - mean) * scale + shift; });
  }
}

/// Normalises by the batch; `keep(channel, mean, unbiased variance)` gets the statistics.
template <class T, class Keep>
void train(const Context& context, View<const T> input, const Maybe<View<const T>>& weight,
           const Maybe<View<const T>>& bias, double eps, View<T> out, View<T> save_mean,
           View<T> save_invstd, const Keep& keep) {
  const Channels c = channels_of(input.shape());
  parallel_for(context.threads, c.channels, [&](index_t channel) {
    double mean, squares;
    statistics(c, input.data(), channel, mean, squares);
    const T center = static_cast<T>(mean),
            invstd = static_cast<T>(1 / std::sqrt(squares / c.count() + eps));
    save_mean.data()[channel] = center, save_invstd.data()[channel] = invstd;
    keep(channel, mean, squares / (c.count() - 1));
    normalize(c, input.data(), channel, center, invstd * value_or<T>(weight, channel, 1),
              value_or<T>(bias, channel, 0), out.data());
  });
}

template <class T>
void evaluate(const Context& context, View<const T> input, const Maybe<View<const T>>& weight,
              const Maybe<View<const T>>& bias, View<const T> running_mean,
              View<const T> running_var, double eps, View<T> out) {
  const Channels c = channels_of(input.shape());
  parallel_for(context.threads, c.channels, [&](index_t channel) {
    const T invstd = 1 / std::sqrt(running_var.data()[channel] + static_cast<T>(eps));
    normalize(c, input.data(), channel, running_mean.data()[channel],
              invstd * value_or<T>(weight, channel, 1), value_or<T>(bias, channel, 0), out.data());
  });
}

template <class T>
Error no_training(Context& context, View<const T> input, Maybe<View<const T>> weight,
                  Maybe<View<const T>> bias, View<const T> running_mean, View<const T> running_var,
                  double, double eps, View<T> out, View<T>, View<T>) {
  evaluate(context, input, weight, bias, running_mean, running_var, eps, out);
  return Error::ok;
}

template <class T>
Error no_stats(Context& context, View<const T> input, Maybe<View<const T>> weight,
               Maybe<View<const T>> bias, bool, double, double eps, View<T> out, View<T> save_mean,
               View<T> save_invstd) {
  train(context, input, weight, bias, eps, out, save_mean, save_invstd,
        [](index_t, double, double) {});
  return Error::ok;
}

/// The running statistics move towards the batch's by `momentum`; evaluation hands them through.
template <class T>
Error functional(Context& context, View<const T> input, Maybe<View<const T>> weight,
                 Maybe<View<const T>> bias, View<const T> running_mean, View<const T> running_var,
                 bool training, double momentum, double eps, View<T> out, View<T> save_mean,
                 View<T> save_invstd, View<T> running_mean_out, View<T> running_var_out) {
  const T *mean = running_mean.data(), *var = running_var.data();
  T *new_mean = running_mean_out.data(), *new_var = running_var_out.data();
  if (!training) {
    for (index_t i = 0; i < running_mean.numel(); ++i) new_mean[i] = mean[i], new_var[i] = var[i];
    evaluate(context, input, weight, bias, running_mean, running_var, eps, out);
    return Error::ok;
  }
  train(context, input, weight, bias, eps, out, save_mean, save_invstd,
        [=](index_t channel, double batch_mean, double batch_var) {
          new_mean[channel] =
              static_cast<T>(momentum * batch_mean + (1 - momentum) * mean[channel]);
          new_var[channel] = static_cast<T>(momentum * batch_var + (1 - momentum) * var[channel]);
        });
  return Error::ok;
}

/// Training: dx = weight invstd (dy - mean(dy) - xhat mean(dy xhat)), xhat = (x - mean) invstd.
/// Evaluation: dx = weight invstd dy.
template <class T>
Error backward(Context& context, View<const T> grad_out, View<const T> input,
               Maybe<View<const T>> weight, Maybe<View<const T>> running_mean,
               Maybe<View<const T>> running_var, Maybe<View<const T>> save_mean,
               Maybe<View<const T>> save_invstd, bool training, double eps, Span<const int64_t>,
               Maybe<View<T>> grad_input, Maybe<View<T>> grad_weight, Maybe<View<T>> grad_bias) {
  const Channels c = channels_of(input.shape());
  parallel_for(context.threads, c.channels, [&](index_t channel) {
    const T mean = training ? save_mean->data()[channel] : running_mean->data()[channel];
    const T invstd = training ? save_invstd->data()[channel]
                              : 1 / std::sqrt(running_var->data()[channel] + static_cast<T>(eps));
    double sum = 0, product = 0;  // of dy, and of dy (x - mean)
    for (index_t image = 0; image < c.batch; ++image) {
      const T *x = input.data() + c.row(image, channel),
              *dy = grad_out.data() + c.row(image, channel);
      T row_sum, row_product;
      two_sums_of<T>(c.plane, row_sum, row_product,
                     [=](index_t i, T& a, T& b) { a += dy[i], b += dy[i] * (x[i] - mean); });
      sum += row_sum, product += row_product;
    }
    if (grad_weight) grad_weight->data()[channel] = static_cast<T>(product * invstd);
    if (grad_bias) grad_bias->data()[channel] = static_cast<T>(sum);
    if (!grad_input) return;
    const T scale = invstd * value_or<T>(weight, channel, 1);
    const T shift = training ? static_cast<T>(sum / c.count()) : 0,
            slope = training ? static_cast<T>(product * invstd * invstd / c.count()) : 0;
    for (index_t image = 0; image < c.batch; ++image) {
      const T *x = input.data() + c.row(image, channel),
              *dy = grad_out.data() + c.row(image, channel);
      T* dx = grad_input->data() + c.row(image, channel);
      if (training)
        for_each_element(
            c.plane, [=](index_t i) { dx[i] = (dy[i] - shift - (x[i] - mean) * slope) * scale; });
      else
        for_each_element(c.plane, [=](index_t i) { dx[i] = dy[i] * scale; });
    }
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(_native_batch_norm_legit_no_training, f32, no_training<float>)
TAPER_KERNEL(_native_batch_norm_legit_no_training, f64, no_training<double>)
TAPER_KERNEL(_native_batch_norm_legit_no_stats, f32, no_stats<float>)
TAPER_KERNEL(_native_batch_norm_legit_no_stats, f64, no_stats<double>)
TAPER_KERNEL(_native_batch_norm_legit_functional, f32, functional<float>)
TAPER_KERNEL(_native_batch_norm_legit_functional, f64, functional<double>)
TAPER_KERNEL(native_batch_norm_backward, f32, backward<float>)
TAPER_KERNEL(native_batch_norm_backward, f64, backward<double>)

}  // namespace taper::portable
