// The distinct elements, or slices, of a tensor.
#include <algorithm>
#include <numeric>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"

namespace taper::eager::decompositions {
namespace {

/// The distinct slices of a tensor in ascending order: `first` is where each occurs first,
/// `inverse` which of them each slice is, and `counts` how often each occurs. NaN counts as the
/// largest value, and as equal to itself.
template <class T>
struct SlicesInOrder {
  std::vector<int64_t> first, inverse, counts;
  /// Slices are rows of `width` elements.
  SlicesInOrder(const T* x, int64_t rows, int64_t width) : inverse(static_cast<size_t>(rows)) {
    std::vector<int64_t> order(static_cast<size_t>(rows));
    std::iota(order.begin(), order.end(), 0);
    const auto before = [](T a, T b) { return a < b || (b != b && a == a); };
    const auto less = [=](int64_t a, int64_t b) {
      return std::lexicographical_compare(x + a * width, x + (a + 1) * width, x + b * width,
                                          x + (b + 1) * width, before);
    };
    std::stable_sort(order.begin(), order.end(), less);
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || less(order[i - 1], order[i])) first.push_back(order[i]), counts.push_back(0);
      inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(first.size()) - 1;
      ++counts.back();
    }
  }
};

Tensor vector_of(const std::vector<int64_t>& v) {
  return Tensor::from(v, {static_cast<int64_t>(v.size())});
}

}  // namespace

TAPER_DECOMPOSITION(unique_dim) {
  const Tensor self = a.tensor<"self">();
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "unique_dim", self);
  need_elements(self, "unique_dim");
  const DType compared = is_floating(self.dtype()) ? DType::f64 : DType::i64;
  const Tensor slices = self.rank() > 0 ? contiguous(movedim(cast(self.detach(), compared), dim, 0))
                                        : reshape(cast(self.detach(), compared), {1});
  const int64_t rows = slices.size(0).value();
  const int64_t width = rows > 0 ? slices.numel().value() / rows : 0;
  const auto give = [&](const auto& found) -> Results {
    return {index_select(self, dim, vector_of(found.first)), vector_of(found.inverse),
            vector_of(found.counts)};
  };
  return compared == DType::f64 ? give(SlicesInOrder<double>(slices.data<double>(), rows, width))
                                : give(SlicesInOrder<int64_t>(slices.data<int64_t>(), rows, width));
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
