// Medians, quantiles and modes. `dim` may be negative. It is removed, or stays with size 1 if
// `keepdim`. Without `dim` all elements count. Positions are i64. NaN is the largest element.
// Errors: a dim that self does not have, a tensor without elements.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// The middle one of all elements; of two middle elements, the lower. NaN if an element is NaN.
/// Equal elements share a gradient evenly.
inline Tensor median(const Tensor& self, Location here = Location::current()) {
  return call<ops::median>(here, self);
}
/// (values, positions) of the middle elements along `dim`.
inline std::tuple<Tensor, Tensor> median(const Tensor& self, int64_t dim, bool keepdim = false,
                                         Location here = Location::current()) {
  return call<ops::median_dim>(here, self, dim, keepdim);
}
/// The median of the elements that are not NaN.
inline Tensor nanmedian(const Tensor& self, Location here = Location::current()) {
  return call<ops::nanmedian>(here, self);
}
/// (values, positions) of these medians along `dim`.
inline std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, int64_t dim, bool keepdim = false,
                                            Location here = Location::current()) {
  return call<ops::nanmedian_dim>(here, self, dim, keepdim);
}
/// (values, positions) of the k-th smallest elements along `dim`. k counts from 1.
inline std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, Dim k, int64_t dim = -1,
                                           bool keepdim = false,
                                           Location here = Location::current()) {
  return call<ops::kthvalue>(here, self, k, dim, keepdim);
}
/// (values, positions) of the elements that occur most often along `dim`; of several, the smallest.
inline std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim = -1, bool keepdim = false,
                                       Location here = Location::current()) {
  return call<ops::mode>(here, self, dim, keepdim);
}

// ---- quantiles of f32 and f64; a line with NaN gives NaN ----

/// The q-quantile of the elements along dim, or of all elements; q lies in [0, 1]. `interpolation`
/// says which value to take between two elements: "linear", "lower", "higher", "midpoint" or
/// "nearest".
inline Tensor quantile(const Tensor& self, double q, std::optional<int64_t> dim = {},
                       bool keepdim = false, std::string_view interpolation = "linear",
                       Location here = Location::current()) {
  return call<ops::quantile_scalar>(here, self, q, dim, keepdim, interpolation);
}
/// The same for each element of a vector q, which has self's dtype. The first dimension of the
/// result has one element for each element of q.
inline Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = {},
                       bool keepdim = false, std::string_view interpolation = "linear",
                       Location here = Location::current()) {
  return call<ops::quantile>(here, self, q, dim, keepdim, interpolation);
}
/// `quantile` of the elements that are not NaN.
inline Tensor nanquantile(const Tensor& self, double q, std::optional<int64_t> dim = {},
                          bool keepdim = false, std::string_view interpolation = "linear",
                          Location here = Location::current()) {
  return call<ops::nanquantile_scalar>(here, self, q, dim, keepdim, interpolation);
}
/// The same for each element of a vector q.
inline Tensor nanquantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim = {},
                          bool keepdim = false, std::string_view interpolation = "linear",
                          Location here = Location::current()) {
  return call<ops::nanquantile>(here, self, q, dim, keepdim, interpolation);
}

}  // namespace taper::eager
