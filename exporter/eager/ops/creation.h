// Tensors made of numbers.
#pragma once
#include <optional>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

inline Tensor full(const Dims& size, Scalar value, std::optional<DType> dtype = {},
                   Location here = Location::current()) {
  return call<ops::full>(here, size, value, dtype);
}
inline Tensor zeros(const Dims& size, DType dtype = DType::f32,
                    Location here = Location::current()) {
  return call<ops::full>(here, size, Scalar(0), std::optional(dtype));
}
inline Tensor ones(const Dims& size, DType dtype = DType::f32,
                   Location here = Location::current()) {
  return call<ops::full>(here, size, Scalar(1), std::optional(dtype));
}
/// Of the sizes of `self`, and its dtype unless another is given.
inline Tensor full_like(const Tensor& self, Scalar value, std::optional<DType> dtype = {},
                        Location here = Location::current()) {
  return call<ops::full_like>(here, self, value, dtype);
}
inline Tensor zeros_like(const Tensor& self, std::optional<DType> dtype = {},
                         Location here = Location::current()) {
  return call<ops::zeros_like>(here, self, dtype);
}
inline Tensor ones_like(const Tensor& self, std::optional<DType> dtype = {},
                        Location here = Location::current()) {
  return call<ops::ones_like>(here, self, dtype);
}
/// A 0-dim tensor; f32 unless another dtype is given.
inline Tensor scalar_tensor(Scalar value, std::optional<DType> dtype = {},
                            Location here = Location::current()) {
  return call<ops::scalar_tensor>(here, value, dtype);
}
/// start, start + step, … below end. i64 if all three are integers, else f32.
inline Tensor arange(Scalar start, Scalar end, Scalar step = 1, std::optional<DType> dtype = {},
                     Location here = Location::current()) {
  return call<ops::arange_start_step>(here, start, end, step, dtype);
}
inline Tensor arange(Scalar end, std::optional<DType> dtype = {},
                     Location here = Location::current()) {
  return call<ops::arange>(here, end, dtype);
}
/// `steps` numbers from start to end, both included.
inline Tensor linspace(Scalar start, Scalar end, int64_t steps, std::optional<DType> dtype = {},
                       Location here = Location::current()) {
  return call<ops::linspace>(here, start, end, steps, dtype);
}
/// (1 - cos(2πk / n)) / 2 for k < n = window_length: the window of Hann that repeats after n.
inline Tensor hann_window(int64_t window_length, std::optional<DType> dtype = {},
                          Location here = Location::current()) {
  return call<ops::hann_window>(here, window_length, dtype);
}
/// The identity matrix.
inline Tensor eye(Dim n, std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::eye>(here, n, dtype);
}
/// Rows and columns (2, n) of a matrix's elements on and below (above) a diagonal, row by row.
inline Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0,
                           std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::tril_indices>(here, row, col, offset, dtype);
}
inline Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0,
                           std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::triu_indices>(here, row, col, offset, dtype);
}
/// 1 at the position of each class (i64), else 0, along a new last dimension of size `num_classes`;
/// -1: as many as needed.
inline Tensor one_hot(const Tensor& self, int64_t num_classes = -1,
                      Location here = Location::current()) {
  return call<ops::one_hot>(here, self, num_classes);
}

/// base^start … base^end.
inline Tensor logspace(Scalar start, Scalar end, int64_t steps, double base = 10,
                       std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::logspace>(here, start, end, steps, base, dtype);
}
/// Windows of a signal, of 1 at most: periodic ones repeat after their length, others end as they
/// begin.
inline Tensor hann_window(int64_t window_length, bool periodic, std::optional<DType> dtype = {},
                          Location here = Location::current()) {
  return call<ops::hann_window_periodic>(here, window_length, periodic, dtype);
}
inline Tensor hamming_window(int64_t window_length, bool periodic = true,
                             std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::hamming_window_periodic>(here, window_length, periodic, dtype);
}
inline Tensor bartlett_window(int64_t window_length, bool periodic = true,
                              std::optional<DType> dtype = {},
                              Location here = Location::current()) {
  return call<ops::bartlett_window_periodic>(here, window_length, periodic, dtype);
}
inline Tensor blackman_window(int64_t window_length, bool periodic = true,
                              std::optional<DType> dtype = {},
                              Location here = Location::current()) {
  return call<ops::blackman_window_periodic>(here, window_length, periodic, dtype);
}
inline Tensor kaiser_window(int64_t window_length, bool periodic = true, double beta = 12,
                            std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::kaiser_window_beta>(here, window_length, periodic, beta, dtype);
}

}  // namespace taper::eager
