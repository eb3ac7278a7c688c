// softmax and log-softmax along one dimension, and their derivatives.
//
//   softmax      y = exp(x - peak) / sum(exp(x - peak))      dx = y (dy - sum(y dy))
//   log_softmax  y = x - peak - log(sum(exp(x - peak)))      dx = dy - exp(y) sum(dy)
//
// peak = max(x): subtracting it leaves y unchanged and keeps exp() finite. Two loops each: along
// dense lines, and across strips of neighbouring lines when other dimensions lie inside.
#include "taper/kernels/shapes/softmax.h"

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/portable.h"

namespace taper::portable {
namespace {

inline constexpr int strip = 16;

/// Calls row(offset) for each line if lines are dense, else columns(offset, width) for each strip
/// of at most 16 lines.
template <class Row, class Columns>
void for_each_line(const Context& context, const Lines& lines, const Row& row,
                   const Columns& columns) {
  const index_t outer = lines.outer, extent = lines.extent, inner = lines.inner;
  if (extent == 0) return;
  if (inner == 1) {
    // a task takes about 4096 elements
    const index_t chunk = extent < 4096 ? 4096 / extent : 1;
    parallel_for(context.threads, pieces(outer, chunk), [&](index_t task) {
      for (index_t o = task * chunk; o < outer && o < (task + 1) * chunk; ++o) row(o * extent);
    });
    return;
  }
  const index_t strips = pieces(inner, strip);
  parallel_for(context.threads, outer * strips, [&](index_t task) {
    const index_t o = task / strips, i = task % strips * strip;
    columns(o * extent * inner + i, static_cast<int>(inner - i < strip ? inner - i : strip));
  });
}

template <class T>
T peak_of(const T* x, index_t n) {
  T peak[lane_count];
  for (int l = 0; l < lane_count; ++l) peak[l] = x[0];
  index_t i = 0;
  for (; i + lane_count <= n; i += lane_count)
    for (int l = 0; l < lane_count; ++l) peak[l] = x[i + l] > peak[l] ? x[i + l] : peak[l];
  for (; i < n; ++i) peak[0] = x[i] > peak[0] ? x[i] : peak[0];
  for (int l = 1; l < lane_count; ++l) peak[0] = peak[l] > peak[0] ? peak[l] : peak[0];
  return peak[0];
}

template <class T, bool log>
void forward_row(const T* x, T* y, index_t n) {
  const T peak = peak_of(x, n);
  if (log) {
    const T shift = math::log(sum_of<T>(n, [=](index_t i) { return math::exp(x[i] - peak); }));
    for_each_element(n, [=](index_t i) { y[i] = x[i] - peak - shift; });
  } else {
    for_each_element(n, [=](index_t i) { y[i] = math::exp(x[i] - peak); });
    const T sum = sum_of<T>(n, [=](index_t i) { return y[i]; });
    for_each_element(n, [=](index_t i) { y[i] /= sum; });
  }
}

template <class T, bool log>
void backward_row(const T* dy, const T* y, T* dx, index_t n) {
  const T sum = sum_of<T>(n, [=](index_t i) { return log ? dy[i] : dy[i] * y[i]; });
  for_each_element(
      n, [=](index_t i) { dx[i] = log ? dy[i] - math::exp(y[i]) * sum : y[i] * (dy[i] - sum); });
}

/// `full`: width is 16, a length that the compiler knows.
template <class T, bool log, bool full>
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
      const T e = math::exp(x[k * inner + c] - peak[c]);
      sum[c] += e;
      if (!log) y[k * inner + c] = e;
    }
  }
  if (log)
    for (int c = 0; c < width; ++c) sum[c] = math::log(sum[c]);
  for (index_t k = 0; k < n; ++k) {
    TAPER_INDEPENDENT_ITERATIONS
    for (int c = 0; c < width; ++c)
      y[k * inner + c] = log ? x[k * inner + c] - peak[c] - sum[c] : y[k * inner + c] / sum[c];
  }
}

template <class T, bool log, bool full>
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
      dx[i] = log ? dy[i] - math::exp(y[i]) * sum[c] : y[i] * (dy[i] - sum[c]);
    }
  }
}

template <class T>
Error prepare(Context&, Lines& plan, View<const T> self, int64_t dim, bool, View<T>) {
  plan = lines_along(self.shape(), dim);
  return Error::ok;
}

template <class T, bool log>
Error forward(Context& context, const Lines& plan, View<const T> self, int64_t, bool, View<T> out) {
  const T* x = self.data();
  T* y = out.data();
  for_each_line(
      context, plan, [&](index_t at) { forward_row<T, log>(x + at, y + at, plan.extent); },
      [&](index_t at, int width) {
        if (width == strip)
          forward_strip<T, log, true>(x + at, y + at, plan.extent, plan.inner, width);
        else
          forward_strip<T, log, false>(x + at, y + at, plan.extent, plan.inner, width);
      });
  return Error::ok;
}

template <class T>
Error prepare_backward(Context&, Lines& plan, View<const T>, View<const T> output, int64_t dim,
                       DType, View<T>) {
  plan = lines_along(output.shape(), dim);
  return Error::ok;
}

template <class T, bool log>
Error backward(Context& context, const Lines& plan, View<const T> grad_output, View<const T> output,
               int64_t, DType, View<T> out) {
  const T *dy = grad_output.data(), *y = output.data();
  T* dx = out.data();
  for_each_line(
      context, plan,
      [&](index_t at) { backward_row<T, log>(dy + at, y + at, dx + at, plan.extent); },
      [&](index_t at, int width) {
        if (width == strip)
          backward_strip<T, log, true>(dy + at, y + at, dx + at, plan.extent, plan.inner, width);
        else
          backward_strip<T, log, false>(dy + at, y + at, dx + at, plan.extent, plan.inner, width);
      });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(_softmax, f32, prepare<float>, forward<float, false>)
TAPER_KERNEL(_softmax, f64, prepare<double>, forward<double, false>)
TAPER_KERNEL(_log_softmax, f32, prepare<float>, forward<float, true>)
TAPER_KERNEL(_log_softmax, f64, prepare<double>, forward<double, true>)
TAPER_KERNEL(_softmax_backward_data, f32, prepare_backward<float>, backward<float, false>)
TAPER_KERNEL(_softmax_backward_data, f64, prepare_backward<double>, backward<double, false>)
TAPER_KERNEL(_log_softmax_backward_data, f32, prepare_backward<float>, backward<float, true>)
TAPER_KERNEL(_log_softmax_backward_data, f64, prepare_backward<double>, backward<double, true>)

}  // namespace taper::portable
