// Layer and RMS normalisation of rows, over `Loops` (elements.h). Formulas in layer_norm.cpp.
#pragma once
#include <cmath>
#include <limits>

#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/portable.h"

namespace taper::portable::layer_norm {

struct Rows {
  index_t rows, width;
};

inline Rows rows_of(const Shape& input, index_t inner) {
  Rows r{1, 1};
  for (int i = 0; i < input.rank; ++i)
    (i < input.rank - inner ? r.rows : r.width) *= input.sizes[i];
  return r;
}

/// What a range of rows is made of; weight and bias may be absent.
template <class T>
struct Range {
  index_t rows, width;
  const T *x, *weight, *bias;
  T epsilon;
  T *y, *mean, *rstd;
};

inline constexpr int lanes = 16;

template <class T>
void center_and_scale(const Range<T>& r) {
  const T n = static_cast<T>(r.width);
  const T *w = r.weight, *b = r.bias;
  for (index_t row = 0; row < r.rows; ++row) {
    const T* x = r.x + row * r.width;
    T* y = r.y + row * r.width;
    const T center = sum_of<T, lanes>(r.width, [=](index_t i) { return x[i]; }) / n;
    const T variance =
        sum_of<T, lanes>(r.width, [=](index_t i) { return (x[i] - center) * (x[i] - center); }) / n;
    const T scale = 1 / std::sqrt(variance + r.epsilon);
    r.mean[row] = center, r.rstd[row] = scale;
    if (w != nullptr && b != nullptr)
      for_each_element(r.width, [=](index_t i) { y[i] = (x[i] - center) * scale * w[i] + b[i]; });
    else if (w != nullptr)
      for_each_element(r.width, [=](index_t i) { y[i] = (x[i] - center) * scale * w[i]; });
    else if (b != nullptr)
      for_each_element(r.width, [=](index_t i) { y[i] = (x[i] - center) * scale + b[i]; });
    else
      for_each_element(r.width, [=](index_t i) { y[i] = (x[i] - center) * scale; });
  }
}
template <class T>
void scale(const Range<T>& r) {
  const T* w = r.weight;
  for (index_t row = 0; row < r.rows; ++row) {
    const T* x = r.x + row * r.width;
    T* y = r.y + row * r.width;
    const T square = sum_of<T, lanes>(r.width, [=](index_t i) { return x[i] * x[i]; });
    const T scale = 1 / std::sqrt(square / static_cast<T>(r.width) + r.epsilon);
    r.rstd[row] = scale;
    if (w != nullptr)
      for_each_element(r.width, [=](index_t i) { y[i] = x[i] * scale * w[i]; });
    else
      for_each_element(r.width, [=](index_t i) { y[i] = x[i] * scale; });
  }
}

template <class Loops, class T>
Error forward(Context& context, View<const T> input, Span<const int64_t> normalized_shape,
              Maybe<View<const T>> weight, Maybe<View<const T>> bias, double eps, View<T> out,
              View<T> mean, View<T> rstd) {
  const Rows r = rows_of(input.shape(), normalized_shape.size());
  parallel_ranges(context.threads, r.rows, r.width, [&](index_t first, index_t end) {
    const Range<T> range{end - first,
                         r.width,
                         input.data() + first * r.width,
                         weight ? weight->data() : nullptr,
                         bias ? bias->data() : nullptr,
                         static_cast<T>(eps),
                         out.data() + first * r.width,
                         mean.data() + first,
                         rstd.data() + first};
    Loops::template call<&center_and_scale<T>>(range);
  });
  return Error::ok;
}

template <class Loops, class T>
Error rms_forward(Context& context, View<const T> input, Span<const int64_t> normalized_shape,
                  Maybe<View<const T>> weight, Maybe<double> eps, View<T> out, View<T> rstd) {
  const Rows r = rows_of(input.shape(), normalized_shape.size());
  parallel_ranges(context.threads, r.rows, r.width, [&](index_t first, index_t end) {
    const Range<T> range{end - first,
                         r.width,
                         input.data() + first * r.width,
                         weight ? weight->data() : nullptr,
                         nullptr,
                         eps ? static_cast<T>(*eps) : std::numeric_limits<T>::epsilon(),
                         out.data() + first * r.width,
                         nullptr,
                         rstd.data() + first};
    Loops::template call<&scale<T>>(range);
  });
  return Error::ok;
}

}  // namespace taper::portable::layer_norm
