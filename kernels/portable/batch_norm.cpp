// Batch normalisation of an input (batch, channels, …), and its gradient.
//
//   y = (x - mean) invstd weight + bias,  invstd = 1 / sqrt(var + eps)
//
// Training uses the mean and the biased variance of each channel of the batch; evaluation uses the
// running ones. The sum along a row is in T, the sum over the rows in double. (S. Ioffe, C.
// Szegedy, "Batch Normalization", ICML 2015.)
#include "taper/kernels/portable/batch_norm.h"

#include "taper/kernels/portable/pays.h"
#include "taper/kernels/shapes/norm.h"

namespace taper::portable {

using namespace batch_norm;

namespace {

/// The mean of a channel, and the sum of squared distances from the mean.
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

/// Normalises by the statistics of the batch, and passes them to `keep(channel, mean, unbiased
/// variance)`.
template <class T, class Keep>
void train(const Context& context, View<const T> input, const Maybe<View<const T>>& weight,
           const Maybe<View<const T>>& bias, double eps, View<T> out, View<T> save_mean,
           View<T> save_invstd, const Keep& keep) {
  const Channels c = channels_of(input.shape());
  const Threads* threads = if_it_pays(context.threads, c.channels * c.count());
  parallel_for(threads, c.channels, [&](index_t channel) {
    double mean, squares;
    statistics(c, input.data(), channel, mean, squares);
    const T center = static_cast<T>(mean),
            invstd = static_cast<T>(1 / std::sqrt(squares / c.count() + eps));
    save_mean.data()[channel] = center, save_invstd.data()[channel] = invstd;
    keep(channel, mean, squares / (c.count() - 1));
    const T scale = invstd * value_or<T>(weight, channel, 1), shift = value_or<T>(bias, channel, 0);
    for (index_t image = 0; image < c.batch; ++image) {
      const index_t row = c.row(image, channel);
      normalize(c.plane, input.data() + row, center, scale, shift, out.data() + row);
    }
  });
}

template <class T>
Error no_stats(Context& context, View<const T> input, Maybe<View<const T>> weight,
               Maybe<View<const T>> bias, bool, double, double eps, View<T> out, View<T> save_mean,
               View<T> save_invstd) {
  train(context, input, weight, bias, eps, out, save_mean, save_invstd,
        [](index_t, double, double) {});
  return Error::ok;
}

/// Training moves the running statistics towards those of the batch by `momentum`. Evaluation
/// returns them unchanged.
template <class T>
Error functional(Context& context, View<const T> input, Maybe<View<const T>> weight,
                 Maybe<View<const T>> bias, View<const T> running_mean, View<const T> running_var,
                 bool training, double momentum, double eps, View<T> out, View<T> save_mean,
                 View<T> save_invstd, View<T> running_mean_out, View<T> running_var_out) {
  const T *mean = running_mean.data(), *var = running_var.data();
  T *new_mean = running_mean_out.data(), *new_var = running_var_out.data();
  if (!training) {
    for (index_t i = 0; i < running_mean.numel(); ++i) new_mean[i] = mean[i], new_var[i] = var[i];
    evaluate<PlainLoops>(context, input, weight, bias, running_mean, running_var, eps, out);
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

}  // namespace

TAPER_KERNEL(_native_batch_norm_legit_no_training, f32, no_training<PlainLoops, float>)
TAPER_KERNEL(_native_batch_norm_legit_no_training, f64, no_training<PlainLoops, double>)
TAPER_KERNEL(_native_batch_norm_legit_no_training, small_float, no_training<PlainLoops, SmallFloat>)
TAPER_KERNEL(_native_batch_norm_legit_no_stats, f32, no_stats<float>)
TAPER_KERNEL(_native_batch_norm_legit_no_stats, f64, no_stats<double>)
TAPER_KERNEL(_native_batch_norm_legit_functional, f32, functional<float>)
TAPER_KERNEL(_native_batch_norm_legit_functional, f64, functional<double>)
TAPER_KERNEL(native_batch_norm_backward, f32, backward<PlainLoops, float>)
TAPER_KERNEL(native_batch_norm_backward, f64, backward<PlainLoops, double>)

}  // namespace taper::portable
