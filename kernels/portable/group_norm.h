// Group normalisation, over `Loops` (elements.h). group_norm.cpp has the formulas.
#pragma once
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/norm.h"
#include "taper/kernels/portable/pays.h"
#include "taper/kernels/portable/row_sums.h"

namespace taper::portable::group_norm {

/// One group of one image; weight and bias may be absent.
template <class T>
struct Group {
  index_t channels, plane;
  const T *x, *weight, *bias;
  T epsilon;
  T *y, *mean, *rstd;
};

inline constexpr int lanes = 16;

template <class T>
void center_and_scale(const Group<T>& g) {
  const index_t size = g.channels * g.plane;
  const T* all = g.x;
  const T center = sum_of<T, lanes>(size, [=](index_t i) { return all[i]; }) / static_cast<T>(size);
  const T variance =
      sum_of<T, lanes>(size, [=](index_t i) { return (all[i] - center) * (all[i] - center); }) /
      static_cast<T>(size);
  const T rstd = 1 / std::sqrt(variance + g.epsilon);
  *g.mean = center, *g.rstd = rstd;
  for (index_t c = 0; c < g.channels; ++c) {
    const T *x = g.x + c * g.plane, scale = g.weight != nullptr ? rstd * g.weight[c] : rstd,
            shift = g.bias != nullptr ? g.bias[c] : T(0);
    T* y = g.y + c * g.plane;
    for_each_element(g.plane, [=](index_t i) { y[i] = (x[i] - center) * scale + shift; });
  }
}

template <class Loops, class T>
Error forward(Context& context, View<const T> input, Maybe<View<const T>> weight,
              Maybe<View<const T>> bias, int64_t n, int64_t channels, int64_t plane, int64_t groups,
              double eps, View<T> out, View<T> mean, View<T> rstd) {
  const index_t per_group = static_cast<index_t>(channels / groups),
                size = per_group * static_cast<index_t>(plane);
  const Threads* threads = if_it_pays(context.threads, static_cast<index_t>(n * groups) * size);
  parallel_for(threads, static_cast<index_t>(n * groups), [&](index_t task) {
    const index_t first = task % static_cast<index_t>(groups) * per_group;
    const Group<T> group{per_group,
                         static_cast<index_t>(plane),
                         input.data() + task * size,
                         weight ? weight->data() + first : nullptr,
                         bias ? bias->data() + first : nullptr,
                         static_cast<T>(eps),
                         out.data() + task * size,
                         mean.data() + task,
                         rstd.data() + task};
    Loops::template call<&center_and_scale<T>>(group);
  });
  return Error::ok;
}

/// The gradient of one group of one image. `sums` holds the sums of dy and of dy xhat for each
/// channel.
template <class T>
struct GroupGradient {
  index_t channels, plane;
  const T *x, *dy, *weight;
  T mean, rstd;
  T *sums, *dx;
};

template <class T>
void group_gradient(const GroupGradient<T>& g) {
  const T center = g.mean, scale = g.rstd;
  T shift = 0, slope = 0;
  for (index_t c = 0; c < g.channels; ++c) {
    const T *x = g.x + c * g.plane, *dy = g.dy + c * g.plane;
    T sum, product;
    row_sums<T>(
        g.plane, sum, product, [=](index_t i) { return dy[i]; },
        [=](index_t i) { return dy[i] * ((x[i] - center) * scale); });
    g.sums[2 * c] = sum, g.sums[2 * c + 1] = product;
    const T w = g.weight != nullptr ? g.weight[c] : T(1);
    shift += sum * w, slope += product * w;
  }
  if (g.dx == nullptr) return;
  const T size = static_cast<T>(g.channels * g.plane);
  shift /= size, slope /= size;
  for (index_t c = 0; c < g.channels; ++c) {
    const T *x = g.x + c * g.plane, *dy = g.dy + c * g.plane,
            w = g.weight != nullptr ? g.weight[c] : T(1);
    T* dx = g.dx + c * g.plane;
    for_each_element(g.plane, [=](index_t i) {
      dx[i] = scale * (dy[i] * w - shift - (x[i] - center) * scale * slope);
    });
  }
}

/// The scratch holds the sums of each channel of each image.
struct Groups {
  index_t images, groups, channels, plane;  ///< `channels`: those of one group
};

template <class T>
Error prepare_backward(Context& context, Groups& plan, View<const T>, View<const T>, View<const T>,
                       View<const T>, Maybe<View<const T>>, int64_t n, int64_t channels,
                       int64_t plane, int64_t groups, Span<const int64_t>, Maybe<View<T>>,
                       Maybe<View<T>>, Maybe<View<T>>) {
  plan = {static_cast<index_t>(n), static_cast<index_t>(groups),
          static_cast<index_t>(channels / groups), static_cast<index_t>(plane)};
  context.need_scratch(static_cast<size_t>(2 * n * channels) * sizeof(T));
  return Error::ok;
}

template <class Loops, class T>
Error backward(Context& context, const Groups& g, View<const T> grad_out, View<const T> input,
               View<const T> mean, View<const T> rstd, Maybe<View<const T>> weight, int64_t,
               int64_t, int64_t, int64_t, Span<const int64_t>, Maybe<View<T>> grad_input,
               Maybe<View<T>> grad_weight, Maybe<View<T>> grad_bias) {
  T* const sums = static_cast<T*>(context.scratch);
  const Threads* threads = if_it_pays(context.threads, g.images * g.groups * g.channels * g.plane);
  parallel_for(threads, g.images * g.groups, [&](index_t task) {
    const index_t at = task * g.channels * g.plane;
    const GroupGradient<T> group{g.channels,
                                 g.plane,
                                 input.data() + at,
                                 grad_out.data() + at,
                                 weight ? weight->data() + task % g.groups * g.channels : nullptr,
                                 mean.data()[task],
                                 rstd.data()[task],
                                 sums + 2 * task * g.channels,
                                 grad_input ? grad_input->data() + at : nullptr};
    Loops::template call<&group_gradient<T>>(group);
  });
  const index_t channels = g.groups * g.channels;
  for (index_t c = 0; c < channels; ++c) {
    T sum = 0, product = 0;
    for (index_t image = 0; image < g.images; ++image) {
      const T* of_image = sums + 2 * (image * channels + c);
      sum += of_image[0], product += of_image[1];
    }
    if (grad_weight) grad_weight->data()[c] = product;
    if (grad_bias) grad_bias->data()[c] = sum;
  }
  return Error::ok;
}

}  // namespace taper::portable::group_norm
