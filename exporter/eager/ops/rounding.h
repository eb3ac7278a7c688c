// Rounding to integers, and limits, elementwise. Shapes, dtypes and errors: pointwise.h. The result
// has the dtype of self; `clamp` gives the common dtype. Integers stay as they are when rounded.
#pragma once
#include <optional>

#include "taper/exporter/eager/ops/signatures.h"

namespace taper::eager {

/// The smallest integer that is not below x.
TAPER_EAGER_UNARY(ceil)
/// The largest integer that is not above x.
TAPER_EAGER_UNARY(floor)
/// The nearest integer. Halves go to the even one.
TAPER_EAGER_UNARY(round)
/// The nearest multiple of 10^-decimals.
inline Tensor round(const Tensor& self, int64_t decimals, Location here = Location::current()) {
  return call<ops::round_decimals>(here, self, decimals);
}
/// The integer part: rounded towards 0.
TAPER_EAGER_UNARY(trunc)
/// x without its integer part; it keeps the sign.
TAPER_EAGER_UNARY(frac)

/// x limited to [min, max]. If min > max, the result is max. Throws if neither is given. NaN stays
/// NaN.
inline Tensor clamp(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max = {},
                    Location here = Location::current()) {
  return call<ops::clamp>(here, self, min, max);
}
/// The same with bounds for each element, which broadcast. A bound of NaN gives NaN.
inline Tensor clamp(const Tensor& self, const std::optional<Tensor>& min,
                    const std::optional<Tensor>& max = {}, Location here = Location::current()) {
  return call<ops::clamp_Tensor>(here, self, min, max);
}
/// x, or `min` where x is smaller.
inline Tensor clamp_min(const Tensor& self, Scalar min, Location here = Location::current()) {
  return call<ops::clamp_min>(here, self, min);
}
/// x, or `max` where x is larger.
inline Tensor clamp_max(const Tensor& self, Scalar max, Location here = Location::current()) {
  return call<ops::clamp_max>(here, self, max);
}
/// The same with a bound for each element.
inline Tensor clamp_min(const Tensor& self, const Tensor& min,
                        Location here = Location::current()) {
  return call<ops::clamp_min_Tensor>(here, self, min);
}
/// The same with a bound for each element.
inline Tensor clamp_max(const Tensor& self, const Tensor& max,
                        Location here = Location::current()) {
  return call<ops::clamp_max_Tensor>(here, self, max);
}
/// Another name of `clamp`, from NumPy.
inline Tensor clip(const Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max = {},
                   Location here = Location::current()) {
  return call<ops::clip>(here, self, min, max);
}
/// The same with bounds for each element.
inline Tensor clip(const Tensor& self, const std::optional<Tensor>& min,
                   const std::optional<Tensor>& max = {}, Location here = Location::current()) {
  return call<ops::clip_Tensor>(here, self, min, max);
}
/// `clamp` in place.
inline Tensor& clamp_(Tensor& self, std::optional<Scalar> min, std::optional<Scalar> max = {},
                      Location here = Location::current()) {
  return call_in_place<ops::clamp>(here, self, min, max);
}
/// These numbers instead of NaN, infinity and minus infinity. The defaults are 0, and the largest
/// and the smallest finite number of the dtype.
inline Tensor nan_to_num(const Tensor& self, std::optional<double> nan = {},
                         std::optional<double> posinf = {}, std::optional<double> neginf = {},
                         Location here = Location::current()) {
  return call<ops::nan_to_num>(here, self, nan, posinf, neginf);
}

}  // namespace taper::eager
