// Quantiles, medians and modes: elements at a given place of the sorted ones.
#include <cmath>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/eager/text.h"

namespace taper::eager::decompositions {
namespace {

/// How many elements of each line along the last dimension are not NaN, as f32 or f64 (…, 1).
Tensor count_numbers(const Tensor& x) {
  return cast(sum(logical_not(isnan(x)), {-1}, true), x.dtype());
}

/// Interpolates between the elements at floor(rank) and ceil(rank) of sorted lines (…, n). `ranks`
/// is (…, quantiles).
Tensor interpolate(const Tensor& sorted, const Tensor& ranks, std::string_view how,
                   std::string_view op) {
  const auto at = [&](const Tensor& place) { return gather(sorted, -1, cast(place, DType::i64)); };
  if (how == "lower") return at(floor(ranks));
  if (how == "higher") return at(ceil(ranks));
  if (how == "nearest") return at(round(ranks));
  if (how != "linear" && how != "midpoint")
    throw EagerError(std::string(op) +
                     ": interpolation must be linear, lower, higher, midpoint or "
                     "nearest, not " +
                     std::string(how));
  const Tensor below = floor(ranks);
  const Tensor first = at(below), second = at(ceil(ranks));
  return how == "midpoint" ? lerp(first, second, 0.5) : lerp(first, second, sub(ranks, below));
}

/// `q` is a number, or a vector (quantiles) that becomes the result's first dimension. `skips_nan`:
/// NaN is ignored; otherwise a line with a NaN gives NaN.
template <const Operator& op>
Tensor quantiles(const Arguments<op>& a, const Tensor& q, bool skips_nan, std::string_view name) {
  Tensor self = a.template tensor<"self">();
  const int64_t rank = self.rank();
  if (self.dtype() != DType::f32 && self.dtype() != DType::f64)
    throw EagerError(std::string(name) + ": self must be f32 or f64, not " +
                     taper::name_of(self.dtype()));
  if (q.dtype() != self.dtype() || q.rank() > 1)
    throw EagerError(std::string(name) + ": q must be a number or a vector of self's dtype " +
                     taper::name_of(self.dtype()) + ", it is " + to_string(q.sizes()) + " " +
                     taper::name_of(q.dtype()));
  if (proves_equal(self.numel(), Dim(0)))
    throw EagerError(std::string(name) + ": self must not be empty");
  if (!q.is_traced())
    for (const double x : cast(q.detach(), DType::f64).template to_vector<double>())
      if (!(x >= 0 && x <= 1))
        throw EagerError(std::string(name) + ": q must lie in [0, 1], got " + to_text(x));

  int64_t dim = 0;
  if (a.template has<"dim">())
    dim = checked_dim(a.template integer<"dim">(), rank, name, self);
  else
    self = reshape(self, {self.numel()});
  if (self.rank() == 0) self = unsqueeze(self, 0);

  const Tensor sorted = std::get<0>(sort(movedim(self, dim, -1)));
  const Tensor last = skips_nan
                          ? clamp_min(sub(count_numbers(sorted), 1), 0)
                          : cast(dim_as_tensor(sorted.size(-1) - Dim(1), DType::i64), self.dtype());
  Dims sizes = sorted.sizes();
  sizes.back() = q.numel();
  Tensor ranks = expand(mul(reshape(q, {q.numel()}), last), sizes);
  if (!skips_nan)  // NaN is sorted behind all numbers
    ranks = where(any(isnan(sorted), -1, true), last, ranks);
  Tensor result = interpolate(sorted, ranks, a.template text<"interpolation">(), name);

  if (a.template boolean<"keepdim">()) {
    if (a.template has<"dim">()) {
      result = movedim(unsqueeze(result, rank > 0 ? dim : 0), -1, 0);
      if (rank == 0) result = reshape(result, {q.numel()});
    } else {
      Dims kept(static_cast<size_t>(rank) + 1, Dim(1));
      kept[0] = q.numel();
      result = reshape(result, kept);
    }
  } else {
    result = movedim(result, -1, 0);
  }
  return q.rank() == 0 ? squeeze(result, 0) : result;
}

template <const Operator& op>
Tensor scalar_quantile(const Arguments<op>& a, bool skips_nan, std::string_view name) {
  const double q = a.template real<"q">();
  const DType dtype = a.template tensor<"self">().dtype();
  return quantiles(a, scalar_tensor(q, is_floating(dtype) ? dtype : DType::f32), skips_nan, name);
}

void need_elements_along(const char* op, const Tensor& self, int64_t dim) {
  if (self.rank() > 0 && proves_equal(self.size(dim), Dim(0)))
    throw EagerError(std::string(op) + ": dim " + std::to_string(dim) + " of " +
                     to_string(self.sizes()) + " has no elements");
}

/// The lower of the two middle elements that are not NaN, and its position. NaN if there are no
/// others.
Results middle_number(const Tensor& self, int64_t dim, bool keepdim) {
  if (self.rank() == 0) return {self, zeros_like(self, DType::i64)};
  const auto [values, indices] = sort(movedim(self, dim, -1));
  const Tensor numbers = sum(logical_not(isnan(values)), {-1}, true);
  const Tensor place = clamp_min(div(sub(numbers, 1), Scalar(2), "floor"), 0);
  const auto at = [&](const Tensor& sorted) {
    const Tensor found = movedim(gather(sorted, -1, place), -1, dim);
    return keepdim ? found : squeeze(found, dim);
  };
  return {at(values), at(indices)};
}

}  // namespace

TAPER_DECOMPOSITION(quantile) { return {quantiles(a, a.tensor<"q">(), false, "quantile")}; }
TAPER_DECOMPOSITION(quantile_scalar) { return {scalar_quantile(a, false, "quantile")}; }
TAPER_DECOMPOSITION(nanquantile) { return {quantiles(a, a.tensor<"q">(), true, "nanquantile")}; }
TAPER_DECOMPOSITION(nanquantile_scalar) { return {scalar_quantile(a, true, "nanquantile")}; }

TAPER_DECOMPOSITION(nanmedian) {
  const Tensor self = a.tensor<"self">();
  if (proves_equal(self.numel(), Dim(0))) {
    if (is_floating(self.dtype())) return {full({}, NAN, self.dtype())};
    throw EagerError("nanmedian: " + to_string(self.sizes()) + " has no elements");
  }
  return {middle_number(reshape(self, {self.numel()}), 0, false)[0]};
}
TAPER_DECOMPOSITION(nanmedian_dim) {
  const Tensor self = a.tensor<"self">();
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "nanmedian", self);
  need_elements_along("nanmedian", self, dim);
  return middle_number(self, dim, a.boolean<"keepdim">());
}
// Sorting brings equal elements together. The result is the element at the end of the longest run.
TAPER_DECOMPOSITION(mode) {
  const Tensor self = a.tensor<"self">();
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "mode", self);
  if (self.rank() == 0) return {self, zeros_like(self, DType::i64)};
  need_elements_along("mode", self, dim);
  const auto [values, indices] = sort(movedim(self, dim, -1));
  const Dim n = values.size(-1);
  const Tensor first = slice(values, -1, Dim(0), Dim(1));
  const Tensor begins =
      cat({ones_like(first, DType::boolean),
           ne(slice(values, -1, Dim(1), n), slice(values, -1, Dim(0), n - Dim(1)))},
          -1);
  const Tensor places = positions(n);
  const Tensor begin = std::get<0>(cummax(where(begins, places, zeros_like(places)), -1));
  const Tensor end = argmax(sub(places, begin), -1, true);
  const auto at = [&](const Tensor& sorted) {
    const Tensor found = movedim(gather(sorted, -1, end), -1, dim);
    return a.boolean<"keepdim">() ? found : squeeze(found, dim);
  };
  return {at(values), at(indices)};
}
TAPER_DECOMPOSITION(msort) { return {std::get<0>(sort(a.tensor<"self">(), 0))}; }

}  // namespace taper::eager::decompositions
