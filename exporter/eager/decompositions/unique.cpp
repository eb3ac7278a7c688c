// The distinct elements, or slices, of a tensor.
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager::decompositions {
namespace {

/// Slices of no elements are neither equal nor different.
void check_slices(const Dim& rows, const Dim& elements, std::string_view op, const Tensor& self) {
  if (proves_equal(elements, Dim(0)) && proves_different(rows, Dim(0)))
    throw EagerError(std::string(op) + ": slices without elements cannot be compared, for self " +
                     to_string(self.sizes()));
}

/// For each column of (rows, width): the rank of each element among the distinct ones, i64. NaN is
/// the largest, and equal to itself.
Tensor ranks_in_columns(const Tensor& columns) {
  const Dim rows = columns.size(0), first = min(rows, Dim(1));
  const auto [sorted, order] = sort(columns, 0);
  const Tensor later = slice(sorted, 0, first, rows), earlier = slice(sorted, 0, 0, rows - first);
  Tensor steps = ne(later, earlier);
  if (is_floating(columns.dtype())) steps = logical_and(steps, logical_not(isnan(earlier)));
  const Tensor zero = zeros({first, columns.size(1)}, DType::i64);
  const Tensor ranks = cat({zero, cumsum(steps, 0, DType::i64)});
  return scatter(zeros_like(ranks), 0, order, ranks);
}
/// The rank of each row of (rows, width) in lexicographic order: (rows). Neighbouring columns of
/// ranks become one column, until there is only one.
Tensor ranks_of_rows(const Tensor& table) {
  const Dim rows = table.size(0);
  if (proves_equal(table.size(1), Dim(0))) return zeros({rows}, DType::i64);
  Tensor ranks = ranks_in_columns(table);
  for (int64_t width = table.size(1).value(); width > 1; width = (width + 1) / 2) {
    if (width % 2 != 0) ranks = cat({ranks, zeros({rows, 1}, DType::i64)}, 1);
    const Tensor pairs = reshape(ranks, {rows, (width + 1) / 2, 2});
    const Tensor high = select(pairs, 2, 0), low = select(pairs, 2, 1);
    ranks = ranks_in_columns(add(mul(high, dim_as_tensor(rows, DType::i64)), low));
  }
  return select(ranks, 1, 0);
}

}  // namespace

// Rows are sorted by their ranks. A row that differs from the one before begins a group; so each
// row with a NaN is a group.
TAPER_DECOMPOSITION(unique_dim) {
  const Tensor self = a.tensor<"self">();
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "unique_dim", self);
  const Tensor slices = self.rank() > 0 ? movedim(self.detach(), dim, 0) : reshape(self, {1});
  const Dim rows = slices.size(0);
  Dim width = 1;
  for (int64_t d = 1; d < slices.rank(); ++d) width = width * slices.size(d);
  if (!width.is_constant())
    throw EagerError("unique_dim: the sizes of a slice must be numbers in a trace, for self " +
                     to_string(self.sizes()) + " and dim " + std::to_string(dim));
  check_slices(rows, width, "unique_dim", self);
  const DType compared = self.dtype() == DType::boolean ? DType::u8 : self.dtype();
  const Tensor table = reshape(cast(slices, compared), {rows, width});
  const auto [sorted, order] = sort(ranks_of_rows(table), 0);
  const Dim first = min(rows, Dim(1));
  const Tensor in_order = index_select(table, 0, order);
  const Tensor differs =
      any(ne(slice(in_order, 0, first, rows), slice(in_order, 0, 0, rows - first)), 1);
  const Tensor begins = cat({ones({first}, DType::boolean), differs});
  const Tensor starts = masked_select(positions(rows), begins);
  const Tensor group = sub(cumsum(begins, 0, DType::i64), 1);
  const Tensor inverse = scatter(zeros_like(group), 0, order, group);
  const Tensor counts = index_add(zeros_like(starts), 0, group, ones_like(group));
  const Tensor values = self.rank() > 0 ? self : reshape(self, {1});
  return {index_select(values, dim, index_select(order, 0, starts)), inverse, counts};
}
TAPER_DECOMPOSITION(unique_dim_consecutive) {
  auto [values, inverse, counts] = call<ops::unique_consecutive>(
      a.tensor<"self">(), a.boolean<"return_inverse">(), a.boolean<"return_counts">(),
      std::optional(a.integer<"dim">()));
  return {values, inverse, counts};
}

// After sorting, each element that differs from the one before begins a group. NaN differs from
// everything, so each NaN is a group.
TAPER_DECOMPOSITION(_unique2) {
  const Tensor self = a.tensor<"self">(), line = flatten(self);
  const DType compared = self.dtype() == DType::boolean ? DType::u8 : self.dtype();
  const auto [sorted, order] = sort(cast(line, compared), 0);
  const Tensor places = positions(line.size(0));
  const Tensor before = index_select(sorted, 0, clamp_min(sub(places, 1), 0));
  const Tensor begins = logical_or(eq(places, 0), ne(sorted, before));
  const Tensor first = flatten(nonzero(begins));
  const Tensor group = sub(cumsum(cast(begins, DType::i64), 0), 1);
  const Tensor inverse = scatter(zeros_like(places), 0, order, group);
  const Tensor counts = index_add(zeros_like(first), 0, group, ones_like(places));
  const Tensor none = zeros({0}, DType::i64);
  return {index_select(line, 0, index_select(order, 0, first)),
          a.boolean<"return_inverse">() ? reshape(inverse, self.sizes()) : none,
          a.boolean<"return_counts">() ? counts : none};
}

// Runs of equal elements. The mask of elements that begin a run has a known size; how many there
// are is known only at run time.
TAPER_DECOMPOSITION(unique_consecutive) {
  const Tensor self = a.tensor<"self">();
  const bool of_slices = a.has<"dim">() && self.rank() > 0;
  const int64_t dim =
      of_slices ? checked_dim(a.integer<"dim">(), self.rank(), "unique_consecutive", self) : 0;
  const Tensor x = of_slices ? self : reshape(self, {self.numel()});
  const Dim n = x.size(dim), first = min(n, Dim(1));
  check_slices(n, x.numel(), "unique_consecutive", self);
  Tensor differs = ne(slice(x, dim, first, n), slice(x, dim, Dim(0), n - first));
  if (x.rank() > 1) differs = any(flatten(movedim(differs, dim, 0), 1), -1);
  const Tensor starts = cat({ones({first}, DType::boolean), differs});
  const Tensor places = masked_select(positions(n), starts);

  Tensor inverse = zeros({0}, DType::i64), counts = inverse;
  // for slices, they are always returned, as in PyTorch
  if (of_slices || a.boolean<"return_inverse">()) {
    inverse = sub(cumsum(starts, 0, DType::i64), 1);
    if (!of_slices) inverse = reshape(inverse, self.sizes());
  }
  if (of_slices || a.boolean<"return_counts">())
    counts = diff(places, 1, 0, {}, reshape(dim_as_tensor(n, DType::i64), {1}));
  return {index_select(x, dim, places), inverse, counts};
}

}  // namespace taper::eager::decompositions
