// Histograms with edges.
#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/promotion.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/exporter/eager/text.h"

namespace taper::eager::decompositions {
namespace {

[[noreturn]] void fail(const std::string& what) { throw EagerError("histogram: " + what); }

void check_elements(const Tensor& self, const Tensor& weight) {
  if (!is_floating(self.dtype()))
    fail(std::string("needs a floating dtype, not ") + taper::name_of(self.dtype()));
  if (!weight.defined()) return;
  if (weight.dtype() != self.dtype())
    fail(std::string("weight must have the dtype of self, ") + taper::name_of(self.dtype()) +
         ", not " + taper::name_of(weight.dtype()));
  bool equal = weight.rank() == self.rank();
  for (int64_t i = 0; equal && i < self.rank(); ++i)
    equal = !proves_different(weight.size(i), self.size(i));
  if (!equal)
    fail("weight must have the sizes of self, " + to_string(self.sizes()) + ", not " +
         to_string(weight.sizes()));
}

/// What lies in [edges[k], edges[k + 1]), for each k. The last bin has its upper edge, too. Halves
/// are added in f32.
Results counted(const Tensor& self, const Tensor& edges, const Tensor& weight, bool density) {
  const Tensor x = flatten(self.detach());
  const Dim bins = edges.size(0) - 1;
  const DType sums = self.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor first = slice(edges, 0, 0, 1), last = slice(edges, 0, bins, bins + 1);
  const Tensor inside = logical_and(ge(x, first), le(x, last));
  const Tensor above = sub(searchsorted(edges, where(inside, x, first), true), 1);
  const Tensor bin = minimum(clamp_min(above, 0), sub(dim_as_tensor(bins, DType::i64), 1));
  const Tensor each = weight.defined() ? cast(flatten(weight), sums) : ones_like(x, sums);
  Tensor hist = index_add(zeros({bins}, sums), 0, bin, where(inside, each, Scalar(0)));
  if (density) hist = div(div(hist, sum(hist)), cast(diff(edges), sums));
  return {cast(hist, self.dtype()), clone(edges)};
}

/// The least and the greatest element as tensors of one element. Equal ones move apart by 1/2 each.
/// No element gives 0 and 1.
std::pair<Tensor, Tensor> data_range(const Tensor& self) {
  if (proves_equal(self.numel(), Dim(0)))
    return {zeros({1}, self.dtype()), ones({1}, self.dtype())};
  const Tensor low = reshape(min(self), {1}), high = reshape(max(self), {1});
  if (!self.is_traced() && !logical_and(isfinite(low), isfinite(high)).item<bool>())
    fail("the range of self is not finite, [" + to_text(low.item()) + ", " + to_text(high.item()) +
         "]; give a range");
  const Tensor apart = cast(eq(low, high), self.dtype());
  return {sub(low, apart, 0.5), add(high, apart, 0.5)};
}
std::pair<Tensor, Tensor> given_range(std::vector<double> range, DType dtype) {
  if (range.size() != 2)
    fail("range must have two elements, it has " + std::to_string(range.size()));
  if (!std::isfinite(range[0]) || !std::isfinite(range[1]) || range[0] > range[1])
    fail("range must be finite and ascend, it is [" + to_text(range[0]) + ", " + to_text(range[1]) +
         "]");
  if (range[0] == range[1]) range[0] -= 0.5, range[1] += 0.5;
  return {full({1}, range[0], dtype), full({1}, range[1], dtype)};
}
/// bins + 1 numbers at equal distances. The upper half is counted from the end, as in linspace.
Tensor edges_between(const Tensor& low, const Tensor& high, int64_t bins) {
  const Tensor step = div(sub(high, low), Scalar(bins)), at = positions(bins + 1);
  const Tensor from_low = cast(at, low.dtype()), from_high = cast(rsub(at, bins), low.dtype());
  return where(lt(at, (bins + 1) / 2), add(low, mul(step, from_low)),
               sub(high, mul(step, from_high)));
}

}  // namespace

TAPER_DECOMPOSITION(histogram_bins_tensor) {
  const Tensor self = a.tensor<"self">(), edges = a.tensor<"bins">(), weight = a.tensor<"weight">();
  check_elements(self, weight);
  if (edges.rank() != 1 || edges.dtype() != self.dtype() || proves_less(edges.numel(), Dim(2)))
    fail(std::string("bins must be a vector of two or more edges with the dtype of self, ") +
         taper::name_of(self.dtype()) + ", got " + to_string(edges.sizes()) + " " +
         taper::name_of(edges.dtype()));
  return counted(self, contiguous(edges.detach()), weight, a.boolean<"density">());
}
TAPER_DECOMPOSITION(histogram_bin_ct) {
  const Tensor self = a.tensor<"self">(), weight = a.tensor<"weight">();
  const int64_t bins = a.integer<"bins">();
  check_elements(self, weight);
  if (bins < 1) fail("bins must be positive, not " + std::to_string(bins));
  const auto [low, high] =
      a.has<"range">() ? given_range(a.reals<"range">(), self.dtype()) : data_range(self.detach());
  return counted(self, edges_between(low, high, bins), weight, a.boolean<"density">());
}

}  // namespace taper::eager::decompositions
