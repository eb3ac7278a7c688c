// Layer and RMS normalisation of rows, over `Loops` (elements.h). layer_norm.cpp has the formulas.
#pragma once
#include <cmath>
#include <limits>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/reduction_functions.h"
#include "taper/kernels/portable/row_sums.h"

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

/// The tensors that a range of rows is computed from. weight and bias may be absent.
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
/// In the order of the reductions over rows, so the bits are those of sum(x * x).
template <class T>
T sum_of_squares(const T* x, index_t n) {
  const NormOfSquares<T> op{};
  internal::Pairwise<NormOfSquares<T>, T> sum;
  for (index_t i = 0; i < n; i += tile_width)
    sum.add(op, internal::reduce_block(op, x + i, n - i < tile_width ? n - i : tile_width, T()));
  return sum.result(op);
}
template <class T>
void scale(const Range<T>& r) {
  const T* w = r.weight;
  for (index_t row = 0; row < r.rows; ++row) {
    const T* x = r.x + row * r.width;
    T* y = r.y + row * r.width;
    const T scale = 1 / std::sqrt(sum_of_squares(x, r.width) / static_cast<T>(r.width) + r.epsilon);
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

/// The tensors of a gradient. weight and results may be absent.
template <class T>
struct Gradient {
  Rows shape;
  const T *x, *dy, *mean, *rstd, *weight;
  T *dx, *grad_weight, *grad_bias;
};

/// dx of rows [first, end).
template <class T>
void input_gradient(const Gradient<T>& g, index_t first, index_t end) {
  const index_t width = g.shape.width;
  const T n = static_cast<T>(width), *w = g.weight;
  for (index_t row = first; row < end; ++row) {
    const T *x = g.x + row * width, *dy = g.dy + row * width;
    T* dx = g.dx + row * width;
    const T center = g.mean[row], scale = g.rstd[row];
    T sum, product;
    if (w != nullptr) {
      row_sums<T>(
          width, sum, product, [=](index_t i) { return dy[i] * w[i]; },
          [=](index_t i) { return dy[i] * w[i] * ((x[i] - center) * scale); });
      const T shift = sum / n, slope = product / n;
      for_each_element(width, [=](index_t i) {
        dx[i] = scale * (dy[i] * w[i] - shift - (x[i] - center) * scale * slope);
      });
    } else {
      row_sums<T>(
          width, sum, product, [=](index_t i) { return dy[i]; },
          [=](index_t i) { return dy[i] * ((x[i] - center) * scale); });
      const T shift = sum / n, slope = product / n;
      for_each_element(width, [=](index_t i) {
        dx[i] = scale * (dy[i] - shift - (x[i] - center) * scale * slope);
      });
    }
  }
}

/// Columns of one task that sums over the rows.
inline constexpr index_t gradient_columns = 64;

/// The gradients of weight and bias in columns [first, first + count). Takes four rows at a time.
/// Sums of 64 rows are then added to the others, so that long sums round little.
template <class T>
void parameter_gradients(const Gradient<T>& g, index_t first, index_t count) {
  constexpr index_t columns = gradient_columns, step = 4, block = 64;
  const index_t width = g.shape.width, rows = g.shape.rows;
  T weight[columns] = {}, bias[columns] = {};
  for (index_t begin = 0; begin < rows; begin += block) {
    const index_t end = begin + block < rows ? begin + block : rows;
    T w[columns] = {}, b[columns] = {};
    index_t row = begin;
    for (; row + step <= end; row += step) {
      const T *x = g.x + row * width + first, *dy = g.dy + row * width + first;
      const T *c = g.mean + row, *s = g.rstd + row;
      for_each_element(count, [=, &w, &b](index_t i) {
        const T *xi = x + i, *di = dy + i;
        w[i] += (di[0] * ((xi[0] - c[0]) * s[0]) + di[width] * ((xi[width] - c[1]) * s[1])) +
                (di[2 * width] * ((xi[2 * width] - c[2]) * s[2]) +
                 di[3 * width] * ((xi[3 * width] - c[3]) * s[3]));
        b[i] += (di[0] + di[width]) + (di[2 * width] + di[3 * width]);
      });
    }
    for (; row < end; ++row) {
      const T *x = g.x + row * width + first, *dy = g.dy + row * width + first;
      const T center = g.mean[row], scale = g.rstd[row];
      for_each_element(count, [=, &w, &b](index_t i) {
        w[i] += dy[i] * ((x[i] - center) * scale), b[i] += dy[i];
      });
    }
    for (index_t i = 0; i < columns; ++i) weight[i] += w[i], bias[i] += b[i];
  }
  for (index_t i = 0; i < count; ++i) {
    if (g.grad_weight != nullptr) g.grad_weight[first + i] = weight[i];
    if (g.grad_bias != nullptr) g.grad_bias[first + i] = bias[i];
  }
}

template <class Loops, class T>
Error backward(Context& context, View<const T> grad_out, View<const T> input,
               Span<const int64_t> normalized_shape, View<const T> mean, View<const T> rstd,
               Maybe<View<const T>> weight, Maybe<View<const T>>, Span<const int64_t>,
               Maybe<View<T>> grad_input, Maybe<View<T>> grad_weight, Maybe<View<T>> grad_bias) {
  const Rows r = rows_of(input.shape(), normalized_shape.size());
  const Gradient<T> gradient{r,
                             input.data(),
                             grad_out.data(),
                             mean.data(),
                             rstd.data(),
                             weight ? weight->data() : nullptr,
                             grad_input ? grad_input->data() : nullptr,
                             grad_weight ? grad_weight->data() : nullptr,
                             grad_bias ? grad_bias->data() : nullptr};
  if (grad_input)
    parallel_ranges(context.threads, r.rows, r.width, [&](index_t first, index_t end) {
      Loops::template call<&input_gradient<T>>(gradient, first, end);
    });
  if (grad_weight || grad_bias)
    parallel_for(context.threads, pieces(r.width, gradient_columns), [&](index_t task) {
      const index_t first = task * gradient_columns, left = r.width - first;
      Loops::template call<&parameter_gradients<T>>(
          gradient, first, left < gradient_columns ? left : gradient_columns);
    });
  return Error::ok;
}

}  // namespace taper::portable::layer_norm
