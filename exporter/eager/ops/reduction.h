// Sums, means, extremes, running sums. `dim` may be negative; an empty list of dims means all;
// `keepdim` keeps reduced dimensions with size 1. Sums are formed in a fixed order that depends on
// the shape alone (docs/numerics.md).
#pragma once
#include <optional>
#include <tuple>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// Of bool and integers: i64, unless `dtype` says otherwise.
inline Tensor sum(const Tensor& self, std::optional<DType> dtype = {},
                  Location here = Location::current()) {
  return call<ops::sum>(here, self, dtype);
}
inline Tensor sum(const Tensor& self, const Ints& dim, bool keepdim = false,
                  std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::sum_dim_IntList>(here, self, dim, keepdim, dtype);
}
/// Needs a floating dtype, or `dtype`.
inline Tensor mean(const Tensor& self, std::optional<DType> dtype = {},
                   Location here = Location::current()) {
  return call<ops::mean>(here, self, dtype);
}
inline Tensor mean(const Tensor& self, const Ints& dim, bool keepdim = false,
                   std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::mean_dim>(here, self, dim, keepdim, dtype);
}
/// Mean square of the distances to the mean, the count lessened by `correction`.
inline Tensor var(const Tensor& self, const Ints& dim = {}, Scalar correction = 1,
                  bool keepdim = false, Location here = Location::current()) {
  return call<ops::var_correction>(here, self, dim, correction, keepdim);
}
/// The square root of `var`.
inline Tensor std(const Tensor& self, const Ints& dim = {}, Scalar correction = 1,
                  bool keepdim = false, Location here = Location::current()) {
  return call<ops::std_correction>(here, self, dim, correction, keepdim);
}
inline std::tuple<Tensor, Tensor> var_mean(const Tensor& self, const Ints& dim = {},
                                           Scalar correction = 1, bool keepdim = false,
                                           Location here = Location::current()) {
  return call<ops::var_mean_correction>(here, self, dim, correction, keepdim);
}
inline std::tuple<Tensor, Tensor> std_mean(const Tensor& self, const Ints& dim = {},
                                           Scalar correction = 1, bool keepdim = false,
                                           Location here = Location::current()) {
  return call<ops::std_mean_correction>(here, self, dim, correction, keepdim);
}
/// The sum (mean) of the elements that are not NaN.
inline Tensor nansum(const Tensor& self, const Ints& dim = {}, bool keepdim = false,
                     std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::nansum>(here, self, dim, keepdim, dtype);
}
inline Tensor nanmean(const Tensor& self, const Ints& dim = {}, bool keepdim = false,
                      std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::nanmean>(here, self, dim, keepdim, dtype);
}
/// (sum of |self|^ord)^(1 / ord); the largest |self| for infinity, the smallest for -infinity, the
/// number of elements that are not zero for 0.
inline Tensor vector_norm(const Tensor& self, Scalar ord = 2, const Ints& dim = {},
                          bool keepdim = false, std::optional<DType> dtype = {},
                          Location here = Location::current()) {
  return call<ops::linalg_vector_norm>(here, self, ord, Dims(dim.begin(), dim.end()), keepdim,
                                       dtype);
}
inline Tensor norm(const Tensor& self, Scalar p = 2, Location here = Location::current()) {
  return call<ops::norm_Scalar>(here, self, p);
}
inline Tensor norm(const Tensor& self, Scalar p, const Ints& dim, bool keepdim = false,
                   Location here = Location::current()) {
  return call<ops::norm_ScalarOpt_dim>(here, self, p, dim, keepdim);
}
/// Without `ord` the 2-norm of all elements of `dim`; with it that of a vector, or of a matrix (two
/// dimensions): 1 or infinity, the largest sum of a column or row; -1 or -infinity, the smallest.
inline Tensor linalg_norm(const Tensor& self, std::optional<Scalar> ord = {},
                          std::optional<Ints> dim = {}, bool keepdim = false,
                          std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::linalg_norm>(here, self, ord, dim, keepdim, dtype);
}
/// The sum of a matrix's diagonal.
inline Tensor trace(const Tensor& self, Location here = Location::current()) {
  return call<ops::trace>(here, self);
}
inline Tensor count_nonzero(const Tensor& self, std::optional<int64_t> dim = {},
                            Location here = Location::current()) {
  return call<ops::count_nonzero>(here, self, dim);
}
inline Tensor prod(const Tensor& self, std::optional<DType> dtype = {},
                   Location here = Location::current()) {
  return call<ops::prod>(here, self, dtype);
}
inline Tensor prod(const Tensor& self, int64_t dim, bool keepdim = false,
                   std::optional<DType> dtype = {}, Location here = Location::current()) {
  return call<ops::prod_dim_int>(here, self, dim, keepdim, dtype);
}
/// The largest element; NaN if there is one. A gradient is shared evenly among equal ones.
inline Tensor amax(const Tensor& self, const Ints& dim = {}, bool keepdim = false,
                   Location here = Location::current()) {
  return call<ops::amax>(here, self, dim, keepdim);
}
inline Tensor amin(const Tensor& self, const Ints& dim = {}, bool keepdim = false,
                   Location here = Location::current()) {
  return call<ops::amin>(here, self, dim, keepdim);
}
inline Tensor max(const Tensor& self, Location here = Location::current()) {
  return call<ops::max>(here, self);
}
inline Tensor min(const Tensor& self, Location here = Location::current()) {
  return call<ops::min>(here, self);
}
/// (values, indices) along `dim`: the first of equal ones.
inline std::tuple<Tensor, Tensor> max(const Tensor& self, int64_t dim, bool keepdim = false,
                                      Location here = Location::current()) {
  return call<ops::max_dim>(here, self, dim, keepdim);
}
inline std::tuple<Tensor, Tensor> min(const Tensor& self, int64_t dim, bool keepdim = false,
                                      Location here = Location::current()) {
  return call<ops::min_dim>(here, self, dim, keepdim);
}
/// The smallest and the largest element along `dim`, or of all.
inline std::tuple<Tensor, Tensor> aminmax(const Tensor& self, std::optional<int64_t> dim = {},
                                          bool keepdim = false,
                                          Location here = Location::current()) {
  return call<ops::aminmax>(here, self, dim, keepdim);
}
/// The middle element, the lower of two; NaN if there is one. A gradient is shared evenly among
/// equal ones.
inline Tensor median(const Tensor& self, Location here = Location::current()) {
  return call<ops::median>(here, self);
}
/// (values, indices) of the middle elements along `dim`.
inline std::tuple<Tensor, Tensor> median(const Tensor& self, int64_t dim, bool keepdim = false,
                                         Location here = Location::current()) {
  return call<ops::median_dim>(here, self, dim, keepdim);
}
/// (values, indices) of the k-th smallest elements along `dim`, k from 1 on.
inline std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, Dim k, int64_t dim = -1,
                                           bool keepdim = false,
                                           Location here = Location::current()) {
  return call<ops::kthvalue>(here, self, k, dim, keepdim);
}
/// The position (i64) of the first largest element along `dim`, or among all.
inline Tensor argmax(const Tensor& self, std::optional<int64_t> dim = {}, bool keepdim = false,
                     Location here = Location::current()) {
  return call<ops::argmax>(here, self, dim, keepdim);
}
inline Tensor argmin(const Tensor& self, std::optional<int64_t> dim = {}, bool keepdim = false,
                     Location here = Location::current()) {
  return call<ops::argmin>(here, self, dim, keepdim);
}
/// Whether any (all) elements are other than zero.
inline Tensor any(const Tensor& self, Location here = Location::current()) {
  return call<ops::any>(here, self);
}
inline Tensor any(const Tensor& self, int64_t dim, bool keepdim = false,
                  Location here = Location::current()) {
  return call<ops::any_dim>(here, self, dim, keepdim);
}
inline Tensor all(const Tensor& self, Location here = Location::current()) {
  return call<ops::all>(here, self);
}
inline Tensor all(const Tensor& self, int64_t dim, bool keepdim = false,
                  Location here = Location::current()) {
  return call<ops::all_dim>(here, self, dim, keepdim);
}
/// Over several dimensions: none for an empty list, all without one.
inline Tensor all(const Tensor& self, const Ints& dim, bool keepdim = false,
                  Location here = Location::current()) {
  return call<ops::all_dims>(here, self, dim, keepdim);
}
/// log(sum(exp(self))), without overflow.
inline Tensor logsumexp(const Tensor& self, const Ints& dim, bool keepdim = false,
                        Location here = Location::current()) {
  return call<ops::logsumexp>(here, self, dim, keepdim);
}
/// Running sums (products) along `dim`.
inline Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype = {},
                     Location here = Location::current()) {
  return call<ops::cumsum>(here, self, dim, dtype);
}
inline Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype = {},
                      Location here = Location::current()) {
  return call<ops::cumprod>(here, self, dim, dtype);
}
/// (values, indices) of the largest (smallest) elements so far along `dim`; the last of equal ones.
inline std::tuple<Tensor, Tensor> cummax(const Tensor& self, int64_t dim,
                                         Location here = Location::current()) {
  return call<ops::cummax>(here, self, dim);
}
inline std::tuple<Tensor, Tensor> cummin(const Tensor& self, int64_t dim,
                                         Location here = Location::current()) {
  return call<ops::cummin>(here, self, dim);
}
/// log(cumsum(exp(self))), without overflow.
inline Tensor logcumsumexp(const Tensor& self, int64_t dim, Location here = Location::current()) {
  return call<ops::logcumsumexp>(here, self, dim);
}
/// y[i] = b[i] + a[i] y[i - 1] along `dim`; a[0] does not count.
inline Tensor linear_recurrence(const Tensor& a, const Tensor& b, int64_t dim,
                                Location here = Location::current()) {
  return call<ops::taper_linear_recurrence>(here, a, b, dim);
}

/// The element at the part q, in [0, 1], of the sorted elements along dim, or of all; between two
/// elements as `interpolation` says: linear, lower, higher, midpoint or nearest. Of f32 and f64; a
/// line with NaN gives NaN.
inline Tensor quantile(const Tensor& self, double q, std::optional<int64_t> dim = {},
                       bool keepdim = false, std::string_view interpolation = "linear",
                       Location here = Location::current()) {
  return call<ops::quantile_scalar>(here, self, q, dim, keepdim, interpolation);
}
/// The same for each element of a vector q of self's dtype: they are the first dimension.
inline Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = {},
                       bool keepdim = false, std::string_view interpolation = "linear",
                       Location here = Location::current()) {
  return call<ops::quantile>(here, self, q, dim, keepdim, interpolation);
}
/// The same of the elements that are not NaN.
inline Tensor nanquantile(const Tensor& self, double q, std::optional<int64_t> dim = {},
                          bool keepdim = false, std::string_view interpolation = "linear",
                          Location here = Location::current()) {
  return call<ops::nanquantile_scalar>(here, self, q, dim, keepdim, interpolation);
}
inline Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = {},
                          bool keepdim = false, std::string_view interpolation = "linear",
                          Location here = Location::current()) {
  return call<ops::nanquantile>(here, self, q, dim, keepdim, interpolation);
}
/// The element that occurs most often along dim, of several the smallest, and where it stands.
inline std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim = -1, bool keepdim = false,
                                       Location here = Location::current()) {
  return call<ops::mode>(here, self, dim, keepdim);
}
/// The median of the elements that are not NaN: the lower of two middle ones.
inline Tensor nanmedian(const Tensor& self, Location here = Location::current()) {
  return call<ops::nanmedian>(here, self);
}
/// The same along dim, and where it stands.
inline std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, int64_t dim, bool keepdim = false,
                                            Location here = Location::current()) {
  return call<ops::nanmedian_dim>(here, self, dim, keepdim);
}
/// The p-norm of self - other.
inline Tensor dist(const Tensor& self, const Tensor& other, Scalar p = 2,
                   Location here = Location::current()) {
  return call<ops::dist>(here, self, other, p);
}
/// Slices along dim whose p-norm is above maxnorm are shortened to it.
inline Tensor renorm(const Tensor& self, Scalar p, int64_t dim, Scalar maxnorm,
                     Location here = Location::current()) {
  return call<ops::renorm>(here, self, p, dim, maxnorm);
}
/// The integral of y along dim by the trapezoidal rule, over places x: a vector, or as y.
inline Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1,
                        Location here = Location::current()) {
  return call<ops::trapezoid_x>(here, y, x, dim);
}
/// The same over places at a distance of dx.
inline Tensor trapezoid(const Tensor& y, Scalar dx = 1, int64_t dim = -1,
                        Location here = Location::current()) {
  return call<ops::trapezoid_dx>(here, y, dx, dim);
}
/// The integral up to each place but the first.
inline Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1,
                                   Location here = Location::current()) {
  return call<ops::cumulative_trapezoid_x>(here, y, x, dim);
}
inline Tensor cumulative_trapezoid(const Tensor& y, Scalar dx = 1, int64_t dim = -1,
                                   Location here = Location::current()) {
  return call<ops::cumulative_trapezoid_dx>(here, y, dx, dim);
}
/// The slope along each of `dims`, or along all dimensions, of samples at a distance of `spacing`:
/// central differences, at the ends of order 1 or 2.
inline std::vector<Tensor> gradient(const Tensor& self, Scalar spacing = 1, const Ints& dims = {},
                                    int64_t edge_order = 1, Location here = Location::current()) {
  return call<ops::gradient_scalararray>(here, self, spacing, dims, edge_order);
}

}  // namespace taper::eager
