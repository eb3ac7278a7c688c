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

}  // namespace taper::eager
