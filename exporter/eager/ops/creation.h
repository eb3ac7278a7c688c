// Tensors made from numbers. The default `dtype` is f32 unless a line says otherwise. `size` may
// hold symbols while tracing. Errors: a negative size, a dtype that cannot hold the numbers.
#pragma once
#include <optional>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

// ---- tensors of a size, filled with one number ----

/// Every element is `value`. The default `dtype` follows from the value: bool, i64 or f32.
inline Tensor full(const Dims& size, Scalar value, std::optional<DType> dtype = {},
                   Location here = Location::current()) {
  return call<ops::full>(here, size, value, dtype);
}
/// Every element is 0.
inline Tensor zeros(const Dims& size, DType dtype = DType::f32,
                    Location here = Location::current()) {
  return call<ops::full>(here, size, Scalar(0), std::optional(dtype));
}
/// Every element is 1.
inline Tensor ones(const Dims& size, DType dtype = DType::f32,
                   Location here = Location::current()) {
  return call<ops::full>(here, size, Scalar(1), std::optional(dtype));
}
/// The elements have no defined value: write them before you read them.
inline Tensor empty(const Dims& size, DType dtype = DType::f32,
                    Location here = Location::current()) {
  return call<ops::empty_memory_format>(here, size, std::optional(dtype));
}
/// The same with given strides: one for each size, counted in elements.
inline Tensor empty_strided(const Dims& size, const Dims& stride, DType dtype = DType::f32,
                            Location here = Location::current()) {
  return call<ops::empty_strided>(here, size, stride, std::optional(dtype));
}
/// A 0-dim tensor.
inline Tensor scalar_tensor(Scalar value, std::optional<DType> dtype = {},
                            Location here = Location::current()) {
  return call<ops::scalar_tensor>(here, value, dtype);
}

// ---- like `self`: the same sizes, and the same dtype unless another is given ----

/// Every element is `value`.
inline Tensor full_like(const Tensor& self, Scalar value, std::optional<DType> dtype = {},
                        Location here = Location::current()) {
  return call<ops::full_like>(here, self, value, dtype);
}
/// Every element is 0.
inline Tensor zeros_like(const Tensor& self, std::optional<DType> dtype = {},
                         Location here = Location::current()) {
  return call<ops::zeros_like>(here, self, dtype);
}
/// Every element is 1.
inline Tensor ones_like(const Tensor& self, std::optional<DType> dtype = {},
                        Location here = Location::current()) {
  return call<ops::ones_like>(here, self, dtype);
}
/// The elements have no defined value.
inline Tensor empty_like(const Tensor& self, std::optional<DType> dtype = {},
                         Location here = Location::current()) {
  return call<ops::empty_like>(here, self, dtype);
}

// ---- other sizes than `self`, and the same dtype unless another is given ----

/// Every element is `value`.
inline Tensor new_full(const Tensor& self, const Dims& size, Scalar value,
                       std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::new_full>(here, self, size, value, dtype);
}
/// Every element is 0.
inline Tensor new_zeros(const Tensor& self, const Dims& size, std::optional<DType> dtype = {},
                        Location here = Location::current()) {
  return call<ops::new_zeros>(here, self, size, dtype);
}
/// Every element is 1.
inline Tensor new_ones(const Tensor& self, const Dims& size, std::optional<DType> dtype = {},
                       Location here = Location::current()) {
  return call<ops::new_ones>(here, self, size, dtype);
}
/// The elements have no defined value.
inline Tensor new_empty(const Tensor& self, const Dims& size, std::optional<DType> dtype = {},
                        Location here = Location::current()) {
  return call<ops::new_empty>(here, self, size, dtype);
}

// ---- ranges ----

/// start, start + step, … up to but without end: ceil((end - start) / step) numbers. The default
/// dtype is i64 if all three are integers. Errors: a step that is 0 or leads away from end.
inline Tensor arange(Scalar start, Scalar end, Scalar step = 1, std::optional<DType> dtype = {},
                     Location here = Location::current()) {
  return call<ops::arange_start_step>(here, start, end, step, dtype);
}
/// 0, 1, 2, … up to but without end.
inline Tensor arange(Scalar end, std::optional<DType> dtype = {},
                     Location here = Location::current()) {
  return call<ops::arange>(here, end, dtype);
}
/// `steps` numbers at equal distances from start to end, both included.
inline Tensor linspace(Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype = {},
                       Location here = Location::current()) {
  return call<ops::linspace>(here, start, end, steps, dtype);
}
/// The same between the elements of two 0-dim tensors, which get no gradient.
inline Tensor linspace(const Tensor& start, const Tensor& end, int64_t steps,
                       std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::linspace_Tensor_Tensor>(here, start, end, steps, dtype);
}
/// base^x for each x of `linspace`.
inline Tensor logspace(Scalar start, Scalar end, int64_t steps, double base = 10,
                       std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::logspace>(here, start, end, steps, base, dtype);
}
/// The frequencies of a discrete Fourier transform of n samples at a distance of d, in cycles per
/// unit of d. They are 0, 1, … and then the negative ones, divided by n d.
inline Tensor fft_fftfreq(int64_t n, double d = 1, std::optional<DType> dtype = {},
                          Location here = Location::current()) {
  return call<ops::fft_fftfreq>(here, n, d, dtype);
}
/// The frequencies of a transform of real samples, none of them negative: (n / 2 + 1).
inline Tensor fft_rfftfreq(int64_t n, double d = 1, std::optional<DType> dtype = {},
                           Location here = Location::current()) {
  return call<ops::fft_rfftfreq>(here, n, d, dtype);
}

// ---- matrices and positions ----

/// The identity matrix (n, n).
inline Tensor eye(Dim n, std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::eye>(here, n, dtype);
}
/// (n, m) with ones on the diagonal and zeros elsewhere.
inline Tensor eye(Dim n, Dim m, std::optional<DType> dtype = {},
                  Location here = Location::current()) {
  return call<ops::eye_m>(here, n, m, dtype);
}
/// The positions of the elements on and below a diagonal of a (row, col) matrix, row by row: i64
/// (2, count), first the rows, then the columns. The diagonal lies `offset` above the main one.
inline Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0,
                           std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::tril_indices>(here, row, col, offset, dtype);
}
/// The same for the elements on and above the diagonal.
inline Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0,
                           std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::triu_indices>(here, row, col, offset, dtype);
}
/// A new last dimension with 1 at the position of each class (i64) and 0 elsewhere: (…) -> (…,
/// num_classes). -1 stands for the number of classes that occur; a trace cannot know that number.
/// Errors: a class that is negative or too large.
inline Tensor one_hot(const Tensor& self, int64_t num_classes = -1,
                      Location here = Location::current()) {
  return call<ops::one_hot>(here, self, num_classes);
}

// ---- windows of a signal: (window_length), of a floating dtype, with values up to 1 ---- A
// periodic window repeats after its length; a symmetric window ends as it begins. In the formulas k
// runs from 0 to window_length - 1. n is window_length for a periodic window, else window_length -
// 1.

/// (1 - cos(2πk / n)) / 2
inline Tensor hann_window(int64_t window_length, bool periodic = true,
                          std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::hann_window_periodic>(here, window_length, periodic, dtype);
}
/// alpha - beta cos(2πk / n)
inline Tensor hamming_window(int64_t window_length, bool periodic = true, double alpha = 0.54,
                             double beta = 0.46, std::optional<DType> dtype = {},
                             Location here = Location::current()) {
  return call<ops::hamming_window_periodic_alpha_beta>(here, window_length, periodic, alpha, beta,
                                                       dtype);
}
/// 1 - |2k / n - 1|
inline Tensor bartlett_window(int64_t window_length, bool periodic = true,
                              std::optional<DType> dtype = {},
                              Location here = Location::current()) {
  return call<ops::bartlett_window_periodic>(here, window_length, periodic, dtype);
}
/// 0.42 - 0.5 cos(2πk / n) + 0.08 cos(4πk / n)
inline Tensor blackman_window(int64_t window_length, bool periodic = true,
                              std::optional<DType> dtype = {},
                              Location here = Location::current()) {
  return call<ops::blackman_window_periodic>(here, window_length, periodic, dtype);
}
/// I₀(beta √(1 - (2k / n - 1)²)) / I₀(beta)
inline Tensor kaiser_window(int64_t window_length, bool periodic = true, double beta = 12,
                            std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::kaiser_window_beta>(here, window_length, periodic, beta, dtype);
}

}  // namespace taper::eager
