#include "taper/exporter/eager/ops/pooling.h"

#include <algorithm>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"

namespace taper::eager::decompositions {
namespace {

/// Zeros, with each element of `self` at its index in its plane, which is the last `n` dimensions.
template <class A>
Tensor unpooled(const char* name, int n, const A& a) {
  const Tensor self = a.template tensor<"self">(), indices = a.template tensor<"indices">();
  const Dims plane = a.template dims<"output_size">();
  bool alike = self.rank() == indices.rank();
  for (int i = 0; alike && i < self.rank(); ++i)
    alike = proves_equal(self.size(i), indices.size(i));
  bool is_empty = false;  // apart from the first size: the batch, or the channels without a batch
  for (int i = 1; i < self.rank(); ++i) is_empty = is_empty || proves_equal(self.size(i), Dim(0));
  if (is_empty)
    throw EagerError(std::string(name) + ": only the first size of self may be 0, it is " +
                     to_string(self.sizes()));
  if ((self.rank() != n + 1 && self.rank() != n + 2) || !alike ||
      plane.size() != static_cast<size_t>(n) ||
      std::any_of(plane.begin(), plane.end(), [](Dim d) { return proves_less(d, Dim(0)); }))
    throw EagerError(std::string(name) + ": needs self and indices of one size, " +
                     std::to_string(n + 1) + " or " + std::to_string(n + 2) + " dimensions and " +
                     std::to_string(n) + " numbers from 0 in output_size, got " +
                     to_string(self.sizes()) + ", " + to_string(indices.sizes()) + " and " +
                     to_string(plane));
  Dims sizes = self.sizes();
  sizes.resize(sizes.size() - plane.size());
  sizes.insert(sizes.end(), plane.begin(), plane.end());
  const Tensor zero = flatten(zeros(sizes, self.dtype()), -n);
  return reshape(call<ops::scatter_src>(zero, int64_t{-1}, flatten(indices, -n), flatten(self, -n)),
                 sizes);
}

}  // namespace

TAPER_DECOMPOSITION(max_unpool2d) { return {unpooled("max_unpool2d", 2, a)}; }
TAPER_DECOMPOSITION(max_unpool3d) { return {unpooled("max_unpool3d", 3, a)}; }

TAPER_DECOMPOSITION(max_pool2d) {
  return {std::get<0>(call<ops::max_pool2d_with_indices>(
      a.tensor<"self">(), a.integers<"kernel_size">(), a.integers<"stride">(),
      a.integers<"padding">(), a.integers<"dilation">(), a.boolean<"ceil_mode">()))};
}

TAPER_DECOMPOSITION(max_pool3d) {
  return {std::get<0>(call<ops::max_pool3d_with_indices>(
      a.tensor<"self">(), a.integers<"kernel_size">(), a.integers<"stride">(),
      a.integers<"padding">(), a.integers<"dilation">(), a.boolean<"ceil_mode">()))};
}

// Uses two dimensions, the first of extent 1.
TAPER_DECOMPOSITION(max_pool1d) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() != 2 && self.rank() != 3)
    throw EagerError("max_pool1d: self must have 2 or 3 dimensions, it is " +
                     to_string(self.sizes()));
  const auto pair = [](const Ints& list, int64_t first) {
    return list.empty() ? Ints() : Ints{first, list[0]};
  };
  const Tensor pooled =
      call<ops::max_pool2d>(self.unsqueeze(-2), pair(a.integers<"kernel_size">(), 1),
                            pair(a.integers<"stride">(), 1), pair(a.integers<"padding">(), 0),
                            pair(a.integers<"dilation">(), 1), a.boolean<"ceil_mode">());
  return {pooled.squeeze(-2)};
}

// One window is the mean, as in PyTorch: its kernels also read images whose channels lie last.
// `_adaptive_avg_pool2d` says what is wrong with an image that cannot be pooled.
TAPER_DECOMPOSITION(adaptive_avg_pool2d) {
  const Tensor self = a.tensor<"self">();
  const Dims size = a.dims<"output_size">();
  const bool is_image = is_floating(self.dtype()) && (self.rank() == 3 || self.rank() == 4) &&
                        !proves_equal(self.size(-1), Dim(0)) &&
                        !proves_equal(self.size(-2), Dim(0));
  const bool is_one_window =
      size.size() == 2 && proves_equal(size[0], Dim(1)) && proves_equal(size[1], Dim(1));
  if (is_image && is_one_window) return {mean(self, {-1, -2}, true)};
  return {call<ops::_adaptive_avg_pool2d>(self, size)};
}

TAPER_DECOMPOSITION(adaptive_avg_pool3d) {
  return {call<ops::_adaptive_avg_pool3d>(a.tensor<"self">(), a.dims<"output_size">())};
}

}  // namespace taper::eager::decompositions
