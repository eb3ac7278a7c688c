// Integrals and slopes of samples along a dimension, which may be negative. Integers give f32.
// Errors: a dim that the samples do not have, places that do not fit them.
#pragma once
#include <vector>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// The integral of y along dim, which goes, by the trapezoidal rule, over places x: a vector, or of
/// the sizes of y.
inline Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1,
                        Location here = Location::current()) {
  return call<ops::trapezoid_x>(here, y, x, dim);
}
/// The same over places at a distance of dx.
inline Tensor trapezoid(const Tensor& y, Scalar dx = 1, int64_t dim = -1,
                        Location here = Location::current()) {
  return call<ops::trapezoid_dx>(here, y, dx, dim);
}
/// The integral up to each place but the first: the extent is less by one.
inline Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim = -1,
                                   Location here = Location::current()) {
  return call<ops::cumulative_trapezoid_x>(here, y, x, dim);
}
/// The same over places at a distance of dx.
inline Tensor cumulative_trapezoid(const Tensor& y, Scalar dx = 1, int64_t dim = -1,
                                   Location here = Location::current()) {
  return call<ops::cumulative_trapezoid_dx>(here, y, dx, dim);
}
/// The slope along each of `dims`, or along all dimensions, of samples at a distance of `spacing`,
/// each of the sizes of self: central differences, at the ends of order `edge_order`, 1 or 2. A
/// dimension has edge_order + 1 elements at least.
inline std::vector<Tensor> gradient(const Tensor& self, Scalar spacing = 1, const Ints& dims = {},
                                    int64_t edge_order = 1, Location here = Location::current()) {
  return call<ops::gradient_scalararray>(here, self, spacing, dims, edge_order);
}

}  // namespace taper::eager
