// softmax and log-softmax along one dimension, and their derivatives.
//
//   softmax      y = exp(x - peak) / sum(exp(x - peak))      dx = y (dy - sum(y dy))
//   log_softmax  y = x - peak - log(sum(exp(x - peak)))      dx = dy - exp(y) sum(dy)
//
// peak = max(x): subtracting it leaves y unchanged and keeps exp() finite. Each function has two
// loops: one along dense lines, and one across strips of neighbouring lines if other dimensions lie
// inside.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/pays.h"
#include "taper/kernels/portable/row_sums.h"
#include "taper/kernels/shapes/softmax.h"

namespace taper::portable::softmax {

inline constexpr int strip = 16;

/// If lines are dense, calls row(offset) for each line. Otherwise calls columns(offset, width) for
/// each strip of at most 16 lines.
template <class Row, class Columns>
void for_each_line(const Context& context, const Lines& lines, const Row& row,
                   const Columns& columns) {
  const index_t outer = lines.outer, extent = lines.extent, inner = lines.inner;
  if (extent == 0) return;
  if (inner == 1)
    return parallel_lines(context.threads, outer, extent, [&](index_t o) { row(o * extent); });
  const index_t strips = pieces(inner, strip);
  const Threads* threads = if_it_pays(context.threads, outer * extent * inner);
  parallel_for(threads, outer * strips, [&](index_t task) {
    const index_t o = task / strips, i = task % strips * strip;
    columns(o * extent * inner + i, static_cast<int>(inner - i < strip ? inner - i : strip));
  });
}

template <class T>
T peak_of(const T* x, index_t n) {
  constexpr int lanes = 16;
  T peak[lanes];
  for (int l = 0; l < lanes; ++l) peak[l] = x[0];
  index_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    TAPER_LANES
    for (int l = 0; l < lanes; ++l) peak[l] = x[i + l] > peak[l] ? x[i + l] : peak[l];
  }
  const int rest = static_cast<int>(n - i);
  TAPER_LANES
  for (int l = 0; l < lanes; ++l) {
    const T v = l < rest ? x[i + l] : peak[l];
    peak[l] = v > peak[l] ? v : peak[l];
  }
  TAPER_UNROLLED
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) peak[l] = peak[l + width] > peak[l] ? peak[l + width] : peak[l];
  return peak[0];
}

/// y = exp(x - peak). Returns the sum of y: element i goes to lane i % 16, and lanes are added in
/// pairs.
template <class T, class M>
T exponentials(const T* x, T* y, index_t n, T peak) {
  constexpr int lanes = 16;
  T sum[lanes] = {};
  index_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    TAPER_LANES
    for (int l = 0; l < lanes; ++l) {
      y[i + l] = math::exp_of_negative<M>(x[i + l] - peak);
      sum[l] += y[i + l];
    }
  }
  if (const int rest = static_cast<int>(n - i); rest > 0) {
    T e[lanes];
    TAPER_LANES
    for (int l = 0; l < lanes; ++l)
      e[l] = math::exp_of_negative<M>((l < rest ? x[i + l] : peak) - peak);
    TAPER_LANES
    for (int l = 0; l < lanes; ++l) sum[l] += l < rest ? e[l] : T(0);
    for (int l = 0; l < rest; ++l) y[i + l] = e[l];
  }
  TAPER_UNROLLED
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) sum[l] += sum[l + width];
  return sum[0];
}

template <class T, bool log, class M>
void forward_row(const T* x, T* y, index_t n) {
  const T peak = peak_of(x, n);
  if (log) {
    const T shift = math::log<M>(
        row_sum<T>(n, [=](index_t i) { return math::exp_of_negative<M>(x[i] - peak); }));
    for_each_element(n, [=](index_t i) { y[i] = x[i] - peak - shift; });
  } else {
    const T scale = 1 / exponentials<T, M>(x, y, n, peak);
    for_each_element(n, [=](index_t i) { y[i] *= scale; });
  }
}

template <class T, bool log, class M>
void backward_row(const T* dy, const T* y, T* dx, index_t n) {
  const T sum = row_sum<T>(n, [=](index_t i) { return log ? dy[i] : dy[i] * y[i]; });
  for_each_element(
      n, [=](index_t i) { dx[i] = log ? dy[i] - math::exp<M>(y[i]) * sum : y[i] * (dy[i] - sum); });
}

/// `full`: width is 16, so that the loop's count is a compile-time constant.
template <class T, bool log, bool full, class M>
void forward_strip(const T* x, T* y, index_t n, index_t inner, int width) {
  if (full) width = strip;
  T peak[strip], sum[strip] = {};
  for (int c = 0; c < width; ++c) peak[c] = x[c];
  for (index_t k = 1; k < n; ++k)
    for (int c = 0; c < width; ++c)
      peak[c] = x[k * inner + c] > peak[c] ? x[k * inner + c] : peak[c];
  for (index_t k = 0; k < n; ++k) {
    TAPER_INDEPENDENT_ITERATIONS
    for (int c = 0; c < width; ++c) {
      const T e = math::exp_of_negative<M>(x[k * inner + c] - peak[c]);
      sum[c] += e;
      if (!log) y[k * inner + c] = e;
    }
  }
  for (int c = 0; c < width; ++c) sum[c] = log ? math::log<M>(sum[c]) : 1 / sum[c];
  for (index_t k = 0; k < n; ++k) {
    TAPER_INDEPENDENT_ITERATIONS
    for (int c = 0; c < width; ++c)
      y[k * inner + c] = log ? x[k * inner + c] - peak[c] - sum[c] : y[k * inner + c] * sum[c];
  }
}

template <class T, bool log, bool full, class M>
void backward_strip(const T* dy, const T* y, T* dx, index_t n, index_t inner, int width) {
  if (full) width = strip;
  T sum[strip] = {};
  for (index_t k = 0; k < n; ++k)
    for (int c = 0; c < width; ++c)
      sum[c] += log ? dy[k * inner + c] : dy[k * inner + c] * y[k * inner + c];
  for (index_t k = 0; k < n; ++k) {
    TAPER_INDEPENDENT_ITERATIONS
    for (int c = 0; c < width; ++c) {
      const index_t i = k * inner + c;
      dx[i] = log ? dy[i] - math::exp<M>(y[i]) * sum[c] : y[i] * (dy[i] - sum[c]);
    }
  }
}

template <class T>
Error prepare(Context&, Lines& plan, View<const T> self, int64_t dim, bool, View<T>) {
  plan = lines_along(self.shape(), dim);
  return Error::ok;
}

template <class Loops, class T, bool log, class M = math::Separate>
Error forward(Context& context, const Lines& plan, View<const T> self, int64_t, bool, View<T> out) {
  const T* x = self.data();
  T* y = out.data();
  for_each_line(
      context, plan,
      [&](index_t at) {
        Loops::template call<forward_row<T, log, M>>(x + at, y + at, plan.extent);
      },
      [&](index_t at, int width) {
        if (width == strip)
          Loops::template call<forward_strip<T, log, true, M>>(x + at, y + at, plan.extent,
                                                               plan.inner, width);
        else
          Loops::template call<forward_strip<T, log, false, M>>(x + at, y + at, plan.extent,
                                                                plan.inner, width);
      });
  return Error::ok;
}

template <class T>
Error prepare_backward(Context&, Lines& plan, View<const T>, View<const T> output, int64_t dim,
                       DType, View<T>) {
  plan = lines_along(output.shape(), dim);
  return Error::ok;
}

template <class Loops, class T, bool log, class M = math::Separate>
Error backward(Context& context, const Lines& plan, View<const T> grad_output, View<const T> output,
               int64_t, DType, View<T> out) {
  const T *dy = grad_output.data(), *y = output.data();
  T* dx = out.data();
  for_each_line(
      context, plan,
      [&](index_t at) {
        Loops::template call<backward_row<T, log, M>>(dy + at, y + at, dx + at, plan.extent);
      },
      [&](index_t at, int width) {
        if (width == strip)
          Loops::template call<backward_strip<T, log, true, M>>(dy + at, y + at, dx + at,
                                                                plan.extent, plan.inner, width);
        else
          Loops::template call<backward_strip<T, log, false, M>>(dy + at, y + at, dx + at,
                                                                 plan.extent, plan.inner, width);
      });
  return Error::ok;
}

}  // namespace taper::portable::softmax
