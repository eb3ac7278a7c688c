// Layer normalisation over the last dimensions, its gradient, and RMS normalisation.
//
//   y = xhat weight + bias,  xhat = (x - mean) rstd,  rstd = 1 / sqrt(var + eps)   for each row
//   dx = rstd (g - mean(g) - xhat mean(g xhat)),  g = dy weight
//   dweight = sum(dy xhat),  dbias = sum(dy)   over the rows
//
// (J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer Normalization", 2016.)
//
//   y = x rstd weight,  rstd = 1 / sqrt(mean(x²) + eps)
//
// (B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", 2019.)
#include <cmath>
#include <limits>

#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/shapes/norm.h"

namespace taper::portable {
namespace {

struct Rows {
  index_t rows, width;
};

Rows rows_of(const Shape& input, index_t inner) {
  Rows r{1, 1};
  for (int i = 0; i < input.rank; ++i)
    (i < input.rank - inner ? r.rows : r.width) *= input.sizes[i];
  return r;
}

template <class T>
Error forward(Context& context, View<const T> input, Span<const int64_t> normalized_shape,
              Maybe<View<const T>> weight, Maybe<View<const T>> bias, double eps, View<T> out,
              View<T> mean, View<T> rstd) {
  const Rows r = rows_of(input.shape(), normalized_shape.size());
  const T *w = weight ? weight->data() : nullptr, *b = bias ? bias->data() : nullptr;
  parallel_lines(context.threads, r.rows, r.width, [&](index_t row) {
    const T* x = input.data() + row * r.width;
    T* y = out.data() + row * r.width;
    const T n = static_cast<T>(r.width);
    const T center = sum_of<T>(r.width, [=](index_t i) { return x[i]; }) / n;
    const T variance =
        sum_of<T>(r.width, [=](index_t i) { return (x[i] - center) * (x[i] - center); }) / n;
    const T scale = 1 / std::sqrt(variance + static_cast<T>(eps));
    mean.data()[row] = center, rstd.data()[row] = scale;
    if (w != nullptr && b != nullptr)
      for_each_element(r.width, [=](index_t i) { y[i] = (x[i] - center) * scale * w[i] + b[i]; });
    else if (w != nullptr)
      for_each_element(r.width, [=](index_t i) { y[i] = (x[i] - center) * scale * w[i]; });
    else if (b != nullptr)
      for_each_element(r.width, [=](index_t i) { y[i] = (x[i] - center) * scale + b[i]; });
    else
      for_each_element(r.width, [=](index_t i) { y[i] = (x[i] - center) * scale; });
  });
  return Error::ok;
}

template <class T>
Error rms_forward(Context& context, View<const T> input, Span<const int64_t> normalized_shape,
                  Maybe<View<const T>> weight, Maybe<double> eps, View<T> out, View<T> rstd) {
  const Rows r = rows_of(input.shape(), normalized_shape.size());
  const T* w = weight ? weight->data() : nullptr;
  const T epsilon = eps ? static_cast<T>(*eps) : std::numeric_limits<T>::epsilon();
  parallel_lines(context.threads, r.rows, r.width, [&](index_t row) {
    const T* x = input.data() + row * r.width;
    T* y = out.data() + row * r.width;
    const T square = sum_of<T>(r.width, [=](index_t i) { return x[i] * x[i]; });
    const T scale = 1 / std::sqrt(square / static_cast<T>(r.width) + epsilon);
    rstd.data()[row] = scale;
    if (w != nullptr)
      for_each_element(r.width, [=](index_t i) { y[i] = x[i] * scale * w[i]; });
    else
      for_each_element(r.width, [=](index_t i) { y[i] = x[i] * scale; });
  });
  return Error::ok;
}

template <class T>
void input_gradient(const Context& context, const Rows& r, const T* grad_out, const T* input,
                    const T* mean, const T* rstd, const T* w, T* grad_input) {
  parallel_lines(context.threads, r.rows, r.width, [&](index_t row) {
    const T *x = input + row * r.width, *dy = grad_out + row * r.width;
    T* dx = grad_input + row * r.width;
    const T center = mean[row], scale = rstd[row], n = static_cast<T>(r.width);
    T sum, product;
    if (w != nullptr) {
      two_sums_of<T>(r.width, sum, product, [=](index_t i, T& a, T& b) {
        const T g = dy[i] * w[i];
        a += g, b += g * ((x[i] - center) * scale);
      });
      const T shift = sum / n, slope = product / n;
      for_each_element(r.width, [=](index_t i) {
        dx[i] = scale * (dy[i] * w[i] - shift - (x[i] - center) * scale * slope);
      });
    } else {
      two_sums_of<T>(r.width, sum, product, [=](index_t i, T& a, T& b) {
        a += dy[i], b += dy[i] * ((x[i] - center) * scale);
      });
      const T shift = sum / n, slope = product / n;
      for_each_element(r.width, [=](index_t i) {
        dx[i] = scale * (dy[i] - shift - (x[i] - center) * scale * slope);
      });
    }
  });
}

/// Sums over the rows, 32 columns a task; 64 rows at a time, so that long sums round little.
template <class T>
void parameter_gradients(const Context& context, const Rows& r, const T* grad_out, const T* input,
                         const T* mean, const T* rstd, T* grad_weight, T* grad_bias) {
  constexpr index_t columns = 32, block = 64;
  parallel_for(context.threads, pieces(r.width, columns), [&](index_t task) {
    const index_t first = task * columns,
                  count = r.width - first < columns ? r.width - first : columns;
    T weight[columns] = {}, bias[columns] = {};
    for (index_t begin = 0; begin < r.rows; begin += block) {
      T w[columns] = {}, b[columns] = {};
      for (index_t row = begin; row < r.rows && row < begin + block; ++row) {
        const T *x = input + row * r.width + first, *dy = grad_out + row * r.width + first;
        const T center = mean[row], scale = rstd[row];
        for_each_element(
            count, [&](index_t i) { w[i] += dy[i] * ((x[i] - center) * scale), b[i] += dy[i]; });
      }
      for (index_t i = 0; i < columns; ++i) weight[i] += w[i], bias[i] += b[i];
    }
    for (index_t i = 0; i < count; ++i) {
      if (grad_weight != nullptr) grad_weight[first + i] = weight[i];
      if (grad_bias != nullptr) grad_bias[first + i] = bias[i];
    }
  });
}

template <class T>
Error backward(Context& context, View<const T> grad_out, View<const T> input,
               Span<const int64_t> normalized_shape, View<const T> mean, View<const T> rstd,
               Maybe<View<const T>> weight, Maybe<View<const T>>, Span<const int64_t>,
               Maybe<View<T>> grad_input, Maybe<View<T>> grad_weight, Maybe<View<T>> grad_bias) {
  const Rows r = rows_of(input.shape(), normalized_shape.size());
  if (grad_input)
    input_gradient(context, r, grad_out.data(), input.data(), mean.data(), rstd.data(),
                   weight ? weight->data() : nullptr, grad_input->data());
  if (grad_weight || grad_bias)
    parameter_gradients(context, r, grad_out.data(), input.data(), mean.data(), rstd.data(),
                        grad_weight ? grad_weight->data() : nullptr,
                        grad_bias ? grad_bias->data() : nullptr);
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(native_layer_norm, f32, forward<float>)
TAPER_KERNEL(native_layer_norm, f64, forward<double>)
TAPER_KERNEL(_fused_rms_norm, f32, rms_forward<float>)
TAPER_KERNEL(_fused_rms_norm, f64, rms_forward<double>)
TAPER_KERNEL(native_layer_norm_backward, f32, backward<float>)
TAPER_KERNEL(native_layer_norm_backward, f64, backward<double>)

}  // namespace taper::portable
