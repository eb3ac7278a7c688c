// Sums, means, norms, minima, maxima and running sums. Quantiles: quantile.h; integrals:
// integration.h.
//
// `dim` may be negative. Without it, or with an empty list, all dimensions are reduced. The reduced
// dimensions are removed, or stay with size 1 if `keepdim`. Positions are i64. self is cast to
// `dtype` first, and the result has this dtype. f16 and bf16 are computed in f32. The order of a
// sum depends only on the shape (docs/numerics.md).
//
// Errors: a dim that self does not have, a dtype that a line rules out, the minimum or maximum of
// no elements.
#pragma once
#include <optional>
#include <tuple>

#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/ops/integration.h"
#include "taper/exporter/eager/ops/quantile.h"

namespace taper::eager {

// ---- sums and products; bool and integers are summed in i64 unless `dtype` says otherwise ----

/// The sum of all elements; 0 if there are none.
inline Tensor sum(const Tensor& self, std::optional<DType> dtype = {},
                  Location here = Location::current()) {
  return call<ops::sum>(here, self, dtype);
}
/// The sum over several dimensions.
inline Tensor sum(const Tensor& self, const Ints& dim, bool keepdim = false,
                  std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::sum_dim_IntList>(here, self, dim, keepdim, dtype);
}
/// The sum of the elements that are not NaN.
inline Tensor nansum(const Tensor& self, const Ints& dim = {}, bool keepdim = false,
                     std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::nansum>(here, self, dim, keepdim, dtype);
}
/// The product of all elements; 1 if there are none.
inline Tensor prod(const Tensor& self, std::optional<DType> dtype = {},
                   Location here = Location::current()) {
  return call<ops::prod>(here, self, dtype);
}
/// The product along a dimension.
inline Tensor prod(const Tensor& self, int64_t dim, bool keepdim = false,
                   std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::prod_dim_int>(here, self, dim, keepdim, dtype);
}
/// The sum of a matrix's diagonal.
inline Tensor trace(const Tensor& self, Location here = Location::current()) {
  return call<ops::trace>(here, self);
}
/// How many elements are not zero (i64), along a dimension or in all.
inline Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim = {},
                            Location here = Location::current()) {
  return call<ops::count_nonzero>(here, self, dim);
}
/// The same over several dimensions; all of them for an empty list.
inline Tensor count_nonzero(const Tensor& self, const Ints& dim,
                            Location here = Location::current()) {
  return call<ops::count_nonzero_dim_IntList>(here, self, dim);
}
/// log(sum(exp(self))), without overflow. Integers give f32.
inline Tensor logsumexp(const Tensor& self, const Ints& dim, bool keepdim = false,
                        Location here = Location::current()) {
  return call<ops::logsumexp>(here, self, dim, keepdim);
}

// ---- means and variances; self or `dtype` is floating ----

/// The mean of all elements; NaN if there are none.
inline Tensor mean(const Tensor& self, std::optional<DType> dtype = {},
                   Location here = Location::current()) {
  return call<ops::mean>(here, self, dtype);
}
/// The mean over several dimensions.
inline Tensor mean(const Tensor& self, const Ints& dim, bool keepdim = false,
                   std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::mean_dim>(here, self, dim, keepdim, dtype);
}
/// The mean of the elements that are not NaN.
inline Tensor nanmean(const Tensor& self, const Ints& dim = {}, bool keepdim = false,
                      std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::nanmean>(here, self, dim, keepdim, dtype);
}
/// The sum of the squared distances to the mean, divided by (count - `correction`); NaN where the
/// divisor is not positive.
inline Tensor var(const Tensor& self, const Ints& dim = {}, Scalar correction = 1,
                  bool keepdim = false, Location here = Location::current()) {
  return call<ops::var_correction>(here, self, dim, correction, keepdim);
}
/// The square root of `var`.
inline Tensor std(const Tensor& self, const Ints& dim = {}, Scalar correction = 1,
                  bool keepdim = false, Location here = Location::current()) {
  return call<ops::std_correction>(here, self, dim, correction, keepdim);
}
/// (`var`, `mean`)
inline std::tuple<Tensor, Tensor> var_mean(const Tensor& self, const Ints& dim = {},
                                           Scalar correction = 1, bool keepdim = false,
                                           Location here = Location::current()) {
  return call<ops::var_mean_correction>(here, self, dim, correction, keepdim);
}
/// (`std`, `mean`)
inline std::tuple<Tensor, Tensor> std_mean(const Tensor& self, const Ints& dim = {},
                                           Scalar correction = 1, bool keepdim = false,
                                           Location here = Location::current()) {
  return call<ops::std_mean_correction>(here, self, dim, correction, keepdim);
}

// ---- norms of a floating self ----

/// (sum of |self|^ord)^(1 / ord). Order infinity: the largest |self|. Order -infinity: the
/// smallest. Order 0: how many elements are not zero.
inline Tensor vector_norm(const Tensor& self, Scalar ord = 2, const Ints& dim = {},
                          bool keepdim = false, std::optional<DType> dtype = {},
                          Location here = Location::current()) {
  return call<ops::linalg_vector_norm>(here, self, ord, Dims(dim.begin(), dim.end()), keepdim,
                                       dtype);
}
/// `vector_norm` of order p, of all elements.
inline Tensor norm(const Tensor& self, Scalar p = 2, Location here = Location::current()) {
  return call<ops::norm_Scalar>(here, self, p);
}
/// The same, cast to `dtype` first.
inline Tensor norm(const Tensor& self, Scalar p, DType dtype, Location here = Location::current()) {
  return call<ops::norm_ScalarOpt_dtype>(here, self, p, dtype);
}
/// `vector_norm` of order p over several dimensions.
inline Tensor norm(const Tensor& self, Scalar p, const Ints& dim, bool keepdim = false,
                   Location here = Location::current()) {
  return call<ops::norm_ScalarOpt_dim>(here, self, p, dim, keepdim);
}
/// The same, cast to `dtype` first.
inline Tensor norm(const Tensor& self, Scalar p, const Ints& dim, bool keepdim, DType dtype,
                   Location here = Location::current()) {
  return call<ops::norm_ScalarOpt_dim_dtype>(here, self, p, dim, keepdim, dtype);
}
/// Without `ord`: the root of the sum of squares over `dim`. With `ord` and one dimension: the norm
/// of vectors. With `ord` and two dimensions: the norm of matrices. Orders 1 and infinity take the
/// largest sum of a column or row; -1 and -infinity the smallest. Orders 2 and -2 take the largest
/// and the smallest singular value.
inline Tensor linalg_norm(const Tensor& self, std::optional<Scalar> ord = {},
                          std::optional<Ints> dim = {}, bool keepdim = false,
                          std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::linalg_norm>(here, self, ord, dim, keepdim, dtype);
}
/// The p-norm of self - other; both broadcast.
inline Tensor dist(const Tensor& self, const Tensor& other, Scalar p = 2,
                   Location here = Location::current()) {
  return call<ops::dist>(here, self, other, p);
}
/// A copy of self. Each slice along dim whose p-norm is above maxnorm is scaled down to maxnorm.
inline Tensor renorm(const Tensor& self, Scalar p, int64_t dim, Scalar maxnorm,
                     Location here = Location::current()) {
  return call<ops::renorm>(here, self, p, dim, maxnorm);
}

// ---- minima and maxima; NaN if an element is NaN ----

/// The largest element. Equal elements share a gradient evenly.
inline Tensor amax(const Tensor& self, const Ints& dim = {}, bool keepdim = false,
                   Location here = Location::current()) {
  return call<ops::amax>(here, self, dim, keepdim);
}
/// The smallest element, likewise.
inline Tensor amin(const Tensor& self, const Ints& dim = {}, bool keepdim = false,
                   Location here = Location::current()) {
  return call<ops::amin>(here, self, dim, keepdim);
}
/// The largest of all elements. Equal elements share a gradient evenly.
inline Tensor max(const Tensor& self, Location here = Location::current()) {
  return call<ops::max>(here, self);
}
/// The smallest of all elements, likewise.
inline Tensor min(const Tensor& self, Location here = Location::current()) {
  return call<ops::min>(here, self);
}
/// (values, positions) of the largest elements along `dim`. Among equal elements the first one
/// counts, and gets the gradient.
inline std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false,
                                      Location here = Location::current()) {
  return call<ops::max_dim>(here, self, dim, keepdim);
}
/// (values, positions) of the smallest elements, likewise.
inline std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim = false,
                                      Location here = Location::current()) {
  return call<ops::min_dim>(here, self, dim, keepdim);
}
/// (smallest, largest) element along `dim`, or of all elements.
inline std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<int64_t> dim = {},
                                          bool keepdim = false,
                                          Location here = Location::current()) {
  return call<ops::aminmax>(here, self, dim, keepdim);
}
/// The position of the first largest element along `dim`. Without `dim`: among all elements, in
/// row-major order.
inline Tensor argmax(const Tensor& self, std::optional<int64_t> dim = {}, bool keepdim = false,
                     Location here = Location::current()) {
  return call<ops::argmax>(here, self, dim, keepdim);
}
/// The position of the first smallest element.
inline Tensor argmin(const Tensor& self, std::optional<int64_t> dim = {}, bool keepdim = false,
                     Location here = Location::current()) {
  return call<ops::argmin>(here, self, dim, keepdim);
}

// ---- tests for elements other than zero; the result is bool, or u8 if self is u8 ----

/// Whether any element is not zero.
inline Tensor any(const Tensor& self, Location here = Location::current()) {
  return call<ops::any>(here, self);
}
/// The same along a dimension.
inline Tensor any(const Tensor& self, int64_t dim, bool keepdim = false,
                  Location here = Location::current()) {
  return call<ops::any_dim>(here, self, dim, keepdim);
}
/// The same over several dimensions. An empty list reduces nothing: each element is tested alone.
inline Tensor any(const Tensor& self, const Ints& dim, bool keepdim = false,
                  Location here = Location::current()) {
  return call<ops::any_dims>(here, self, dim, keepdim);
}
/// Whether all elements are other than zero.
inline Tensor all(const Tensor& self, Location here = Location::current()) {
  return call<ops::all>(here, self);
}
/// The same along a dimension.
inline Tensor all(const Tensor& self, int64_t dim, bool keepdim = false,
                  Location here = Location::current()) {
  return call<ops::all_dim>(here, self, dim, keepdim);
}
/// The same over several dimensions. An empty list reduces nothing: each element is tested alone.
inline Tensor all(const Tensor& self, const Ints& dim, bool keepdim = false,
                  Location here = Location::current()) {
  return call<ops::all_dims>(here, self, dim, keepdim);
}

/// `all` of a bool tensor; other dtypes are refused. PyTorch calls it in assertions of exported
/// models.
inline Tensor _is_all_true(const Tensor& self, Location here = Location::current()) {
  return call<ops::_is_all_true>(here, self);
}
/// `any` of a bool tensor, likewise.
inline Tensor _is_any_true(const Tensor& self, Location here = Location::current()) {
  return call<ops::_is_any_true>(here, self);
}

// ---- reductions of segments ----

/// The sum, mean, max, min or prod (`reduce`) of each segment of a dimension of floating data.
/// `lengths` (…, segments) has the sizes of data before `axis`, and sums to its extent. `initial`
/// is one more element of each segment; mean does not count it. Without it, an empty segment gives
/// 0, NaN, -infinity, infinity or 1.
inline Tensor segment_reduce(const Tensor& data, std::string_view reduce, const Tensor& lengths,
                             int64_t axis = 0, std::optional<Scalar> initial = {},
                             Location here = Location::current()) {
  return call<ops::segment_reduce>(here, data, reduce, lengths, std::nullopt, std::nullopt, axis,
                                   false, initial);
}
/// The same with offsets (…, segments + 1): where segments begin, and where the last one ends.
inline Tensor segment_reduce_by_offsets(const Tensor& data, std::string_view reduce,
                                        const Tensor& offsets, int64_t axis = 0,
                                        std::optional<Scalar> initial = {},
                                        Location here = Location::current()) {
  return call<ops::segment_reduce>(here, data, reduce, std::nullopt, std::nullopt, offsets, axis,
                                   false, initial);
}

// ---- running reductions along `dim`; the result has the sizes of self ----

/// The sum of the elements up to each one.
inline Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype = {},
                     Location here = Location::current()) {
  return call<ops::cumsum>(here, self, dim, dtype);
}
/// The product of the elements up to each one.
inline Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype = {},
                      Location here = Location::current()) {
  return call<ops::cumprod>(here, self, dim, dtype);
}
/// (values, positions) of the largest elements so far. Among equal elements the last one counts.
inline std::tuple<Tensor, Tensor> cummax(const Tensor& self, int64_t dim,
                                         Location here = Location::current()) {
  return call<ops::cummax>(here, self, dim);
}
/// (values, positions) of the smallest elements so far. Among equal elements the last one counts.
inline std::tuple<Tensor, Tensor> cummin(const Tensor& self, int64_t dim,
                                         Location here = Location::current()) {
  return call<ops::cummin>(here, self, dim);
}
/// log(cumsum(exp(self))), without overflow. self is floating.
inline Tensor logcumsumexp(const Tensor& self, int64_t dim, Location here = Location::current()) {
  return call<ops::logcumsumexp>(here, self, dim);
}
/// y[i] = b[i] + a[i] y[i - 1]; a[0] is not read. a and b have the same sizes and dtype, f32 or
/// f64.
inline Tensor linear_recurrence(const Tensor& a, const Tensor& b, int64_t dim,
                                Location here = Location::current()) {
  return call<ops::taper_linear_recurrence>(here, a, b, dim);
}

}  // namespace taper::eager
