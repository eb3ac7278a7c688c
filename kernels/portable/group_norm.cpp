// Group normalisation of (N, C, HxW), and its gradient: statistics over the channels of each group.
//
//   y = xhat weight + bias,  xhat = (x - mean) rstd,  rstd = 1 / sqrt(var + eps)
//   dx = rstd (g - mean(g) - xhat mean(g xhat)),  g = dy weight;  dweight = sum(dy xhat),  dbias =
//   sum(dy)
//
// (Y. Wu, K. He, "Group Normalization", ECCV 2018.)
#include "taper/kernels/portable/group_norm.h"

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/norm.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/shapes/norm.h"

namespace taper::portable {
namespace {

/// The sums of dy and of dy xhat over one channel of one image.
template <class T>
void channel_sums(const T* x, const T* dy, index_t plane, T mean, T rstd, T& sum, T& product) {
  two_sums_of<T>(plane, sum, product,
                 [=](index_t i, T& a, T& b) { a += dy[i], b += dy[i] * ((x[i] - mean) * rstd); });
}

template <class T>
Error backward(Context& context, View<const T> grad_out, View<const T> input, View<const T> mean,
               View<const T> rstd, Maybe<View<const T>> weight, int64_t n, int64_t channels,
               int64_t plane_, int64_t groups, Span<const int64_t>, Maybe<View<T>> grad_input,
               Maybe<View<T>> grad_weight, Maybe<View<T>> grad_bias) {
  const index_t plane = static_cast<index_t>(plane_),
                per_group = static_cast<index_t>(channels / groups), size = per_group * plane;
  if (grad_input)
    parallel_for(context.threads, static_cast<index_t>(n * groups), [&](index_t task) {
      const T *x = input.data() + task * size, *dy = grad_out.data() + task * size;
      T* dx = grad_input->data() + task * size;
      const T center = mean.data()[task], scale = rstd.data()[task];
      const index_t first = task % static_cast<index_t>(groups) * per_group;
      T shift = 0, slope = 0;
      for (index_t c = 0; c < per_group; ++c) {
        T sum, product;
        channel_sums(x + c * plane, dy + c * plane, plane, center, scale, sum, product);
        const T w = value_or<T>(weight, first + c, 1);
        shift += sum * w, slope += product * w;
      }
      shift /= static_cast<T>(size), slope /= static_cast<T>(size);
      for (index_t c = 0; c < per_group; ++c) {
        const T *row = x + c * plane, *g = dy + c * plane, w = value_or<T>(weight, first + c, 1);
        T* to = dx + c * plane;
        for_each_element(plane, [=](index_t i) {
          to[i] = scale * (g[i] * w - shift - (row[i] - center) * scale * slope);
        });
      }
    });
  if (grad_weight || grad_bias)
    parallel_for(context.threads, static_cast<index_t>(channels), [&](index_t c) {
      T sums = 0, products = 0;
      for (index_t image = 0; image < n; ++image) {
        const index_t at = (image * static_cast<index_t>(channels) + c) * plane,
                      group = image * static_cast<index_t>(groups) + c / per_group;
        T sum, product;
        channel_sums(input.data() + at, grad_out.data() + at, plane, mean.data()[group],
                     rstd.data()[group], sum, product);
        sums += sum, products += product;
      }
      if (grad_weight) grad_weight->data()[c] = products;
      if (grad_bias) grad_bias->data()[c] = sums;
    });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(native_group_norm, f32, group_norm::forward<PlainLoops, float>)
TAPER_KERNEL(native_group_norm, f64, group_norm::forward<PlainLoops, double>)
TAPER_KERNEL(native_group_norm_backward, f32, backward<float>)
TAPER_KERNEL(native_group_norm_backward, f64, backward<double>)

}  // namespace taper::portable
