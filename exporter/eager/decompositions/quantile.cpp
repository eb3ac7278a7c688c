// What stands at a given part of the sorted elements.
#include <cmath>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/indexing.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/reduction.h"
#include "taper/exporter/eager/ops/view.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/text.h"

namespace taper::eager::decompositions {
namespace {

/// How many elements of each line of the last dimension are numbers, as f32 or f64 (…, 1).
Tensor count_numbers(const Tensor& x, Location here) {
  return cast(sum(logical_not(isnan(x, here), here), {-1}, true, {}, here), x.dtype(), here);
}

/// Between the elements at floor(rank) and ceil(rank) of sorted lines (…, n): ranks (…, quantiles).
Tensor interpolate(const Tensor& sorted, const Tensor& ranks, std::string_view how,
                   std::string_view op, Location here) {
  const auto at = [&](const Tensor& place) {
    return gather(sorted, -1, cast(place, DType::i64, here), here);
  };
  if (how == "lower") return at(floor(ranks, here));
  if (how == "higher") return at(ceil(ranks, here));
  if (how == "nearest") return at(round(ranks, here));
  if (how != "linear" && how != "midpoint")
    throw EagerError(here, std::string(op) +
                               ": interpolation must be linear, lower, higher, midpoint or "
                               "nearest, not " +
                               std::string(how));
  const Tensor below = floor(ranks, here);
  const Tensor first = at(below), second = at(ceil(ranks, here));
  return how == "midpoint" ? lerp(first, second, 0.5, here)
                           : lerp(first, second, sub(ranks, below, 1, here), here);
}

/// `q` without dimensions, or (quantiles), which then is the result's first dimension. With
/// `skips_nan` NaN is left out, otherwise a line with one gives NaN.
template <const Operator& op>
Tensor quantiles(const Arguments<op>& a, const Tensor& q, bool skips_nan, std::string_view name) {
  const Location here = a.here();
  Tensor self = a.template tensor<"self">();
  const int64_t rank = self.rank();
  if (self.dtype() != DType::f32 && self.dtype() != DType::f64)
    throw EagerError(
        here, std::string(name) + ": self must be f32 or f64, not " + taper::name_of(self.dtype()));
  if (q.dtype() != self.dtype() || q.rank() > 1)
    throw EagerError(here, std::string(name) + ": q must be a number or a vector of self's dtype " +
                               taper::name_of(self.dtype()) + ", it is " + to_string(q.sizes()) +
                               " " + taper::name_of(q.dtype()));
  if (proves_equal(self.numel(), Dim(0)))
    throw EagerError(here, std::string(name) + ": self must not be empty");
  if (!q.is_traced())
    for (const double x : cast(q.detach(), DType::f64, here).template to_vector<double>(here))
      if (!(x >= 0 && x <= 1))
        throw EagerError(here, std::string(name) + ": q must lie in [0, 1], got " + to_text(x));

  int64_t dim = 0;
  if (a.template has<"dim">())
    dim = checked_dim(a.template integer<"dim">(), rank, name, self, here);
  else
    self = reshape(self, {self.numel()}, here);
  if (self.rank() == 0) self = unsqueeze(self, 0, here);

  const Tensor sorted = std::get<0>(sort(movedim(self, dim, -1, here), -1, false, here));
  const Tensor last = skips_nan
                          ? clamp_min(sub(count_numbers(sorted, here), 1, 1, here), 0, here)
                          : cast(as_tensor(sorted.size(-1) - Dim(1), here), self.dtype(), here);
  Dims sizes = sorted.sizes();
  sizes.back() = q.numel();
  Tensor ranks = expand(mul(reshape(q, {q.numel()}, here), last, here), sizes, here);
  if (!skips_nan)  // NaN is sorted behind all numbers
    ranks = where(any(isnan(sorted, here), -1, true, here), last, ranks, here);
  Tensor result = interpolate(sorted, ranks, a.template text<"interpolation">(), name, here);

  if (a.template boolean<"keepdim">()) {
    if (a.template has<"dim">()) {
      result = movedim(unsqueeze(result, rank > 0 ? dim : 0, here), -1, 0, here);
      if (rank == 0) result = reshape(result, {q.numel()}, here);
    } else {
      Dims kept(static_cast<size_t>(rank) + 1, Dim(1));
      kept[0] = q.numel();
      result = reshape(result, kept, here);
    }
  } else {
    result = movedim(result, -1, 0, here);
  }
  return q.rank() == 0 ? squeeze(result, 0, here) : result;
}

template <const Operator& op>
Tensor scalar_quantile(const Arguments<op>& a, bool skips_nan, std::string_view name) {
  const double q = a.template real<"q">();
  const DType dtype = a.template tensor<"self">().dtype();
  return quantiles(a, scalar_tensor(q, is_floating(dtype) ? dtype : DType::f32, a.here()),
                   skips_nan, name);
}

void need_elements_along(const char* op, const Tensor& self, int64_t dim, Location here) {
  if (self.rank() > 0 && proves_equal(self.size(dim), Dim(0)))
    throw EagerError(here, std::string(op) + ": dim " + std::to_string(dim) + " of " +
                               to_string(self.sizes()) + " has no elements");
}

/// The lower of the two middle elements that are numbers, and where it stands; of NaN alone, NaN.
Results middle_number(const Tensor& self, int64_t dim, bool keepdim, Location here) {
  if (self.rank() == 0) return {self, zeros_like(self, DType::i64, here)};
  const auto [values, indices] = sort(movedim(self, dim, -1, here), -1, false, here);
  const Tensor numbers = sum(logical_not(isnan(values, here), here), {-1}, true, {}, here);
  const Tensor place = clamp_min(div(sub(numbers, 1, 1, here), Scalar(2), "floor", here), 0, here);
  const auto at = [&](const Tensor& sorted) {
    const Tensor found = movedim(gather(sorted, -1, place, here), -1, dim, here);
    return keepdim ? found : squeeze(found, dim, here);
  };
  return {at(values), at(indices)};
}

}  // namespace

TAPER_DECOMPOSITION(quantile) { return {quantiles(a, a.tensor<"q">(), false, "quantile")}; }
TAPER_DECOMPOSITION(quantile_scalar) { return {scalar_quantile(a, false, "quantile")}; }
TAPER_DECOMPOSITION(nanquantile) { return {quantiles(a, a.tensor<"q">(), true, "nanquantile")}; }
TAPER_DECOMPOSITION(nanquantile_scalar) { return {scalar_quantile(a, true, "nanquantile")}; }

TAPER_DECOMPOSITION(nanmedian) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  if (proves_equal(self.numel(), Dim(0))) {
    if (is_floating(self.dtype())) return {full({}, NAN, self.dtype(), here)};
    throw EagerError(here, "nanmedian: " + to_string(self.sizes()) + " has no elements");
  }
  return {middle_number(reshape(self, {self.numel()}, here), 0, false, here)[0]};
}
TAPER_DECOMPOSITION(nanmedian_dim) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "nanmedian", self, here);
  need_elements_along("nanmedian", self, dim, here);
  return middle_number(self, dim, a.boolean<"keepdim">(), here);
}
// In sorted order equal elements stand together, and the end of the longest run is looked for.
TAPER_DECOMPOSITION(mode) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "mode", self, here);
  if (self.rank() == 0) return {self, zeros_like(self, DType::i64, here)};
  need_elements_along("mode", self, dim, here);
  const auto [values, indices] = sort(movedim(self, dim, -1, here), -1, false, here);
  const Dim n = values.size(-1);
  const Tensor first = slice(values, -1, Dim(0), Dim(1), 1, here);
  const Tensor begins = cat({ones_like(first, DType::boolean, here),
                             ne(slice(values, -1, Dim(1), n, 1, here),
                                slice(values, -1, Dim(0), n - Dim(1), 1, here), here)},
                            -1, here);
  const Tensor places = positions(n, here);
  const Tensor begin =
      std::get<0>(cummax(where(begins, places, zeros_like(places, {}, here), here), -1, here));
  const Tensor end = argmax(sub(places, begin, 1, here), -1, true, here);
  const auto at = [&](const Tensor& sorted) {
    const Tensor found = movedim(gather(sorted, -1, end, here), -1, dim, here);
    return a.boolean<"keepdim">() ? found : squeeze(found, dim, here);
  };
  return {at(values), at(indices)};
}
TAPER_DECOMPOSITION(msort) { return {std::get<0>(sort(a.tensor<"self">(), 0, false, a.here()))}; }

}  // namespace taper::eager::decompositions
