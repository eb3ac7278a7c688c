// Composite operators that create tensors: full with a dtype, and ranges.
#include "taper/exporter/eager/ops/creation.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager::decompositions {
namespace {

template <const Operator& op>
DType dtype_or(const Arguments<op>& a, DType otherwise) {
  return a.template has<"dtype">() ? a.template dtype<"dtype">() : otherwise;
}
template <const Operator& op>
Tensor like(const Arguments<op>& a, Scalar value) {
  const Tensor self = a.template tensor<"self">();
  return full(self.sizes(), value, dtype_or(a, self.dtype()));
}

/// A call whose arguments may be symbolic numbers, which a Scalar cannot hold.
template <const Operator& op>
Tensor called(Boxed* arguments) {
  Tensor result;
  dispatch(info_of(op), arguments, &result, place());
  return result;
}
Tensor range(const Boxed& start, const Boxed& end, const Boxed& dtype) {
  Boxed arguments[] = {start, end, Boxed::of(Dim(1)), dtype};
  return called<ops::arange_start_step>(arguments);
}

/// The coordinates (2, n) of the elements on and below (or above) a diagonal. They depend only on
/// numbers, so they are a constant.
template <const Operator& op>
Tensor triangle_indices(const Arguments<op>& a, bool lower) {
  const int64_t rows = a.template integer<"row">(), columns = a.template integer<"col">(),
                offset = a.template integer<"offset">();
  constexpr int64_t most = int64_t{1} << 31;
  if (rows < 0 || columns < 0 || rows > most || columns > most || rows * columns > most)
    throw EagerError(std::string(schema<op>.name) + ": " + std::to_string(rows) + " rows and " +
                     std::to_string(columns) +
                     " columns must not be negative, and at most 2^31 elements");
  const int64_t from = std::clamp(offset, -most, most);
  std::vector<int64_t> row, column;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t edge = std::clamp(r + from + (lower ? 1 : 0), int64_t{0}, columns);
    for (int64_t c = lower ? 0 : edge; c < (lower ? edge : columns); ++c)
      row.push_back(r), column.push_back(c);
  }
  const int64_t count = static_cast<int64_t>(row.size());
  row.insert(row.end(), column.begin(), column.end());
  const DType dtype = dtype_or(a, DType::i64);
  if (dtype != DType::i64 && dtype != DType::i32)
    throw EagerError(std::string(schema<op>.name) + ": dtype must be i64 or i32, not " +
                     taper::name_of(dtype));
  const Tensor indices = Tensor::from(row, {2, count});
  return dtype == DType::i64 ? indices : to(indices, dtype);
}

}  // namespace

TAPER_DECOMPOSITION(tril_indices) { return {triangle_indices(a, true)}; }
TAPER_DECOMPOSITION(triu_indices) { return {triangle_indices(a, false)}; }
TAPER_DECOMPOSITION(new_empty) {
  return {
      call<ops::empty_memory_format>(a.dims<"size">(), dtype_or(a, a.tensor<"self">().dtype()))};
}
// Results are row-major; the requested order of dimensions in memory is ignored.
TAPER_DECOMPOSITION(empty_permuted) {
  const Dims size = a.dims<"size">();
  Ints order = a.integers<"physical_layout">();
  std::sort(order.begin(), order.end());
  bool permutes = order.size() == size.size();
  for (size_t i = 0; permutes && i < order.size(); ++i)
    permutes = order[i] == static_cast<int64_t>(i);
  if (!permutes)
    throw EagerError("empty_permuted: physical_layout must name each dimension of " +
                     to_string(size) + " once");
  return {call<ops::empty_memory_format>(size, dtype_or(a, DType::f32))};
}
TAPER_DECOMPOSITION(new_empty_strided) {
  return {call<ops::empty_strided>(a.dims<"size">(), a.dims<"stride">(),
                                   dtype_or(a, a.tensor<"self">().dtype()))};
}
TAPER_DECOMPOSITION(zeros) { return {full(a.dims<"size">(), 0, dtype_or(a, DType::f32))}; }
TAPER_DECOMPOSITION(ones) { return {full(a.dims<"size">(), 1, dtype_or(a, DType::f32))}; }
TAPER_DECOMPOSITION(full_like) { return {like(a, a.scalar<"fill_value">())}; }
TAPER_DECOMPOSITION(zeros_like) { return {like(a, 0)}; }
TAPER_DECOMPOSITION(ones_like) { return {like(a, 1)}; }
TAPER_DECOMPOSITION(empty_like) { return {like(a, 0)}; }
TAPER_DECOMPOSITION(new_zeros) {
  return {full(a.dims<"size">(), 0, dtype_or(a, a.tensor<"self">().dtype()))};
}
TAPER_DECOMPOSITION(new_ones) {
  return {full(a.dims<"size">(), 1, dtype_or(a, a.tensor<"self">().dtype()))};
}
TAPER_DECOMPOSITION(new_full) {
  const Dims size = a.dims<"size">();
  Boxed arguments[] = {Boxed::of(size), a.boxed<"fill_value">(),
                       Boxed::of(dtype_or(a, a.tensor<"self">().dtype()))};
  return {called<ops::full>(arguments)};
}
TAPER_DECOMPOSITION(zero) {
  const Tensor self = a.tensor<"self">();
  return {call<ops::fill_Scalar>(self, Scalar(0))};
}
TAPER_DECOMPOSITION(arange) {
  return {range(Boxed::of(Dim(0)), a.boxed<"end">(), a.boxed<"dtype">())};
}
TAPER_DECOMPOSITION(arange_start) {
  return {range(a.boxed<"start">(), a.boxed<"end">(), a.boxed<"dtype">())};
}
/// One more than the largest class. In a trace, a run of the program finds it.
static Dim count_classes(const Tensor& self) {
  if (proves_equal(self.numel(), Dim(0)))
    throw EagerError("one_hot: num_classes must be given for an empty tensor");
  constexpr int64_t limit = int64_t{1} << 60;
  const Tensor greatest = max(self);
  if (!self.is_traced() && greatest.item<int64_t>() >= limit)
    throw EagerError("one_hot: the classes of self must be less than 2^60, got " +
                     std::to_string(greatest.item<int64_t>()));
  if (!self.is_traced() && greatest.item<int64_t>() < 0)
    throw EagerError("one_hot: the classes of self must not be negative, the largest is " +
                     std::to_string(greatest.item<int64_t>()));
  return element_as_dim(add(greatest, 1), 1, limit);
}
// A zero tensor in which a one is written at each class. The write refuses a class outside its
// range.
TAPER_DECOMPOSITION(one_hot) {
  const Tensor self = a.tensor<"self">();
  if (self.dtype() != DType::i64)
    throw EagerError(std::string("one_hot: needs an i64 tensor of classes, not ") +
                     taper::name_of(self.dtype()));
  const int64_t given = a.integer<"num_classes">();
  if (given < 1 && given != -1)
    throw EagerError("one_hot: num_classes must be positive, not " + std::to_string(given));
  const Dim classes = given == -1 ? count_classes(self) : Dim(given);
  Dims sizes = self.sizes();
  sizes.push_back(classes);
  return {call<ops::scatter_value>(zeros(sizes, DType::i64), int64_t{-1}, unsqueeze(self, -1),
                                   Scalar(1))};
}
// Ones where the numbers of row and column are equal.
static Tensor identity(Dim rows, Dim columns, DType dtype) {
  if (proves_at_least(columns, rows)) {
    // read as one line, rows are a one and `columns` zeros, again and again
    const Tensor lines = constant_pad_nd(full({rows, 1}, 1, dtype), {0, columns});
    const Tensor line = reshape(lines, {rows * (columns + 1)});
    return reshape(slice(line, 0, 0, rows * columns), {rows, columns});
  }
  const Tensor ones = full({rows, columns}, 1, dtype);
  return call<ops::tril>(call<ops::triu>(ones, Dim(0)), Dim(0));
}
TAPER_DECOMPOSITION(eye) {
  const Dim n = a.dim<"n">();
  return {identity(n, n, dtype_or(a, DType::f32))};
}
TAPER_DECOMPOSITION(eye_m) {
  return {identity(a.dim<"n">(), a.dim<"m">(), dtype_or(a, DType::f32))};
}
// base^start … base^end, with evenly spaced exponents.
TAPER_DECOMPOSITION(logspace) {
  const Tensor exponents =
      linspace(a.scalar<"start">(), a.scalar<"end">(), a.integer<"steps">(), DType::f64);
  return {to(pow(Scalar(a.real<"base">()), exponents), dtype_or(a, DType::f32))};
}

// ---- ranges between elements of tensors, which a run reads

namespace {

/// The first half is counted from the start, the second from the end. Integers are those of f64,
/// without their fractions. As in PyTorch, the ends get no gradient.
Tensor spaced_between(std::string_view op, const Tensor& start, const Tensor& end, int64_t steps,
                      DType dtype) {
  if (start.rank() != 0 || end.rank() != 0)
    throw EagerError(std::string(op) + ": start and end must have no dimensions, got " +
                     to_string(start.sizes()) + " and " + to_string(end.sizes()));
  if (steps < 0)
    throw EagerError(std::string(op) + ": steps must be 0 or more, got " + std::to_string(steps));
  const bool half = dtype == DType::f16 || dtype == DType::bf16;
  const DType work = half ? DType::f32 : is_floating(dtype) ? dtype : DType::f64;
  const Tensor first = cast(start.detach(), work), last = cast(end.detach(), work);
  if (steps < 2) return cast(expand(first, {steps}), dtype);
  const Tensor at = positions(steps), step = div(sub(last, first), Scalar(steps - 1));
  const Tensor from_start = add(first, mul(step, cast(at, work)));
  const Tensor from_end = sub(last, mul(step, cast(rsub(at, steps - 1), work)));
  return cast(where(lt(at, steps / 2), from_start, from_end), dtype);
}

/// An end that is a number.
Tensor constant_end(Scalar value) { return full({}, value, DType::f64); }

template <const Operator& op>
Results line_between(const Arguments<op>& a, const Tensor& start, const Tensor& end) {
  return {spaced_between("linspace", start, end, a.template integer<"steps">(),
                         dtype_or(a, DType::f32))};
}
template <const Operator& op>
Results powers_between(const Arguments<op>& a, const Tensor& start, const Tensor& end) {
  const Tensor exponents =
      spaced_between("logspace", start, end, a.template integer<"steps">(), DType::f64);
  return {cast(pow(Scalar(a.template real<"base">()), exponents), dtype_or(a, DType::f32))};
}

}  // namespace

TAPER_DECOMPOSITION(linspace_Tensor_Tensor) {
  return line_between(a, a.tensor<"start">(), a.tensor<"end">());
}
TAPER_DECOMPOSITION(linspace_Tensor_Scalar) {
  return line_between(a, a.tensor<"start">(), constant_end(a.scalar<"end">()));
}
TAPER_DECOMPOSITION(linspace_Scalar_Tensor) {
  return line_between(a, constant_end(a.scalar<"start">()), a.tensor<"end">());
}
TAPER_DECOMPOSITION(logspace_Tensor_Tensor) {
  return powers_between(a, a.tensor<"start">(), a.tensor<"end">());
}
TAPER_DECOMPOSITION(logspace_Tensor_Scalar) {
  return powers_between(a, a.tensor<"start">(), constant_end(a.scalar<"end">()));
}
TAPER_DECOMPOSITION(logspace_Scalar_Tensor) {
  return powers_between(a, constant_end(a.scalar<"start">()), a.tensor<"end">());
}

/// The frequencies k / (n d) of a transform of n samples at a distance of d. From place `first` on,
/// k is negative.
static Tensor frequencies(int64_t first, int64_t count, int64_t n, double d, DType dtype) {
  if (n < 1 || n > int64_t{1} << 31 || d == 0)
    throw EagerError("fftfreq: needs n in [1, 2^31] and d other than 0, got " + std::to_string(n));
  std::vector<double> elements;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = i < first ? i : i - n;
    elements.push_back(static_cast<double>(k) / (static_cast<double>(n) * d));
  }
  return to(Tensor::from(elements, {count}), dtype);
}
TAPER_DECOMPOSITION(fft_fftfreq) {
  const int64_t n = a.integer<"n">();
  return {frequencies((n + 1) / 2, n, n, a.real<"d">(), dtype_or(a, DType::f32))};
}
TAPER_DECOMPOSITION(fft_rfftfreq) {
  const int64_t n = a.integer<"n">();
  return {frequencies(n, n / 2 + 1, n, a.real<"d">(), dtype_or(a, DType::f32))};
}

}  // namespace taper::eager::decompositions
