// Integrals and slopes of sampled functions.
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"

namespace taper::eager::decompositions {
namespace {

Tensor all_but_first(const Tensor& t, int64_t dim) { return slice(t, dim, Dim(1), t.size(dim)); }
Tensor all_but_last(const Tensor& t, int64_t dim) {
  return slice(t, dim, Dim(0), max(t.size(dim) - Dim(1), Dim(0)));
}

/// Twice the areas of the trapezoids between neighbours at a distance of 1.
Tensor neighbour_sums(const Tensor& y, int64_t dim) {
  return add(all_but_last(y, dim), all_but_first(y, dim));
}
template <const Operator& op>
int64_t dim_of(const Arguments<op>& a, const char* name) {
  const Tensor y = a.template tensor<"y">();
  if (y.rank() == 0) throw EagerError(std::string(name) + ": y has no dimension");
  return checked_dim(a.template integer<"dim">(), y.rank(), name, y);
}
/// The area over each step of x. x is a vector of y's places along the dimension, or broadcasts
/// with y.
template <const Operator& op>
Tensor areas(const Arguments<op>& a, int64_t dim, const char* name) {
  const Tensor y = a.template tensor<"y">();
  Tensor x = a.template tensor<"x">();
  if (x.rank() == 1) {
    if (proves_different(x.size(0), y.size(dim)))
      throw EagerError(std::string(name) + ": x has " + x.size(0).to_string() + " places, dim " +
                       std::to_string(dim) + " of y has " + y.size(dim).to_string());
    Dims line(static_cast<size_t>(y.rank()), Dim(1));
    line[static_cast<size_t>(dim)] = x.size(0);
    x = view(x, line);
  }
  while (x.rank() < y.rank()) x = unsqueeze(x, 0);
  const Tensor widths = sub(all_but_first(x, dim), all_but_last(x, dim));
  return div(mul(widths, neighbour_sums(y, dim)), 2);
}
template <const Operator& op>
Tensor even_areas(const Arguments<op>& a, int64_t dim) {
  const double width = a.template real<"dx">();
  return mul(neighbour_sums(a.template tensor<"y">(), dim), Scalar(width / 2));
}

/// Differences over two steps. At the ends, differences over one step (edge_order 1), or slopes of
/// the parabola through three points (edge_order 2).
Tensor slope(const Tensor& self, int64_t dim, double spacing, int64_t edge_order) {
  const Dim extent = self.size(dim);
  if (edge_order != 1 && edge_order != 2)
    throw EagerError("gradient: edge_order must be 1 or 2, not " + std::to_string(edge_order));
  if (proves_less(extent, Dim(edge_order + 1)))
    throw EagerError("gradient: dim " + std::to_string(dim) + " of " + to_string(self.sizes()) +
                     " must have at least " + std::to_string(edge_order + 1) + " elements");
  const Tensor x = is_inexact(self.dtype()) ? self : cast(self, DType::f32);
  const auto part = [&](Dim from, Dim to) { return slice(x, dim, from, to); };
  const auto at = [&](int64_t i) {
    return i < 0 ? part(extent + Dim(i), extent + Dim(i + 1)) : part(i, i + 1);
  };
  const auto edge = [&](int64_t i, int64_t next, int64_t second, double sign) {
    const Tensor step = sub(at(next), at(i));
    if (edge_order == 1) return div(step, Scalar(sign * spacing));
    const Tensor far = sub(at(second), at(next));
    return mul(sub(mul(step, 1.5), far, 0.5), Scalar(sign / spacing));
  };
  const Tensor wide = sub(part(2, extent), part(0, extent - Dim(2)));
  const Tensor inner = mul(div(wide, Scalar(spacing)), 0.5);
  return cat({edge(0, 1, 2, 1), inner, edge(-1, -2, -3, -1)}, dim);
}
template <const Operator& op>
Results slopes(const Arguments<op>& a, Ints dims, double spacing) {
  const Tensor self = a.template tensor<"self">();
  if (dims.empty())
    for (int64_t d = 0; d < self.rank(); ++d) dims.push_back(d);
  Results results;
  for (const int64_t d : dims)
    results.push_back(slope(self, checked_dim(d, self.rank(), "gradient", self), spacing,
                            a.template integer<"edge_order">()));
  return results;
}

}  // namespace

TAPER_DECOMPOSITION(trapezoid_x) {
  const int64_t dim = dim_of(a, "trapezoid");
  return {sum(areas(a, dim, "trapezoid"), {dim})};
}
TAPER_DECOMPOSITION(trapezoid_dx) {
  const int64_t dim = dim_of(a, "trapezoid");
  const Tensor y = a.tensor<"y">();
  if (proves_equal(y.size(dim), Dim(0))) return {sum(even_areas(a, dim), {dim})};
  // the sum of all places, minus half of both ends, as in PyTorch
  const Tensor ends = add(select(y, dim, 0), select(y, dim, -1));
  const Tensor whole = sub(sum(y, {dim}), mul(ends, 0.5));
  return {mul(whole, a.real<"dx">())};
}
TAPER_DECOMPOSITION(cumulative_trapezoid_x) {
  const int64_t dim = dim_of(a, "cumulative_trapezoid");
  return {cumsum(areas(a, dim, "cumulative_trapezoid"), dim)};
}
TAPER_DECOMPOSITION(cumulative_trapezoid_dx) {
  const int64_t dim = dim_of(a, "cumulative_trapezoid");
  return {cumsum(even_areas(a, dim), dim)};
}

TAPER_DECOMPOSITION(gradient_scalarint) {
  return slopes(a, a.has<"dim">() ? Ints{a.integer<"dim">()} : Ints{},
                a.has<"spacing">() ? a.real<"spacing">() : 1);
}
TAPER_DECOMPOSITION(gradient_scalararray) {
  return slopes(a, a.integers<"dim">(), a.real<"spacing">());
}
TAPER_DECOMPOSITION(gradient_array) { return slopes(a, a.integers<"dim">(), 1); }

}  // namespace taper::eager::decompositions
