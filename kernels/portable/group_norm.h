// Group normalisation, over `Loops` (elements.h). Formulas in group_norm.cpp.
#pragma once
#include <cmath>

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/norm.h"
#include "taper/kernels/portable/portable.h"

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
  parallel_for(context.threads, static_cast<index_t>(n * groups), [&](index_t task) {
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

}  // namespace taper::portable::group_norm
