// Medians, quantiles and modes. `dim` may be negative and goes, or stays with size 1 if `keepdim`;
// without it all elements count. Positions are i64. NaN is the largest element. Errors: a dim that
// self does not have, no elements where one is asked for.
#pragma once
#include <optional>
#include <string_view>
#include <tuple>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// The middle of all elements, the lower of two; NaN if there is one. A gradient is shared evenly
/// among equal ones.
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
/// (values, positions) of these along `dim`.
inline std::tuple<Tensor, Tensor> nanmedian(const Tensor& self, int64_t dim, bool keepdim = false,
                                            Location here = Location::current()) {
  return call<ops::nanmedian_dim>(here, self, dim, keepdim);
}
/// (values, positions) of the k-th smallest elements along `dim`, k from 1 to the extent.
inline std::tuple<Tensor, Tensor> kthvalue(const Tensor& self, Dim k, int64_t dim = -1,
                                           bool keepdim = false,
                                           Location here = Location::current()) {
  return call<ops::kthvalue>(here, self, k, dim, keepdim);
}
/// (values, positions) of the elements that occur most often along `dim`, of several the smallest.
inline std::tuple<Tensor, Tensor> mode(const Tensor& self, int64_t dim = -1, bool keepdim = false,
                                       Location here = Location::current()) {
  return call<ops::mode>(here, self, dim, keepdim);
}

// ---- quantiles, of f32 and f64; a line with NaN gives NaN ----

/// The element at the part q, in [0, 1], of the sorted elements along dim, or of all; between two
/// elements as `interpolation` says: "linear", "lower", "higher", "midpoint" or "nearest".
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
