// Integrals and slopes of samples along `dim`, which may be negative. Integers give f32. Errors: a
// dim that the samples do not have, a number of places that does not fit the samples.
#pragma once
#include <vector>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// The integral of y along dim by the trapezoidal rule; dim is removed. The places x are 1-dim, or
/// have the sizes of y.
inline Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1,
                        Location here = Location::current()) {
  return call<ops::trapezoid_x>(here, y, x, dim);
}
/// The same for places at a distance of dx.
inline Tensor trapezoid(const Tensor& y, Scalar dx = 1, int64_t dim = -1,
                        Location here = Location::current()) {
  return call<ops::trapezoid_dx>(here, y, dx, dim);
}
/// The integral up to each place, without the first: the extent is smaller by one.
inline Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1,
                                   Location here = Location::current()) {
  return call<ops::cumulative_trapezoid_x>(here, y, x, dim);
}
/// The same for places at a distance of dx.
inline Tensor cumulative_trapezoid(const Tensor& y, Scalar dx = 1, int64_t dim = -1,
                                   Location here = Location::current()) {
  return call<ops::cumulative_trapezoid_dx>(here, y, dx, dim);
}
/// The slope along each of `dims`, or along all dimensions; each result has the sizes of self.
/// Samples lie at a distance of `spacing`. The slope is a central difference; at the ends it is a
/// difference of order `edge_order`, 1 or 2. A dimension must have at least edge_order + 1
/// elements.
inline std::vector<Tensor> gradient(const Tensor& self, Scalar spacing = 1, const Ints& dims = {},
                                    int64_t edge_order = 1, Location here = Location::current()) {
  return call<ops::gradient_scalararray>(here, self, spacing, dims, edge_order);
}

}  // namespace taper::eager
