// Composite copies and casts.
#include "taper/exporter/eager/ops/movement.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/view.h"

namespace taper::eager::decompositions {
namespace {

Tensor converted(const Tensor& self, DType dtype, bool copy, Location here) {
  return copy || self.dtype() != dtype ? call<ops::_to_copy>(here, self, std::optional(dtype))
                                       : self;
}

}  // namespace

TAPER_DECOMPOSITION(to_dtype) {
  return {converted(a.tensor<"self">(), a.dtype<"dtype">(), a.boolean<"copy">(), a.here())};
}
TAPER_DECOMPOSITION(to_dtype_layout) {
  const Tensor self = a.tensor<"self">();
  return {converted(self, a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype(), a.boolean<"copy">(),
                    a.here())};
}
TAPER_DECOMPOSITION(to_device) {
  return {converted(a.tensor<"self">(), a.dtype<"dtype">(), a.boolean<"copy">(), a.here())};
}
TAPER_DECOMPOSITION(to_other) {
  return {
      converted(a.tensor<"self">(), a.tensor<"other">().dtype(), a.boolean<"copy">(), a.here())};
}
TAPER_DECOMPOSITION(type_as) {
  return {converted(a.tensor<"self">(), a.tensor<"other">().dtype(), false, a.here())};
}
TAPER_DECOMPOSITION(lift_fresh_copy) { return {clone(a.tensor<"self">(), a.here())}; }
TAPER_DECOMPOSITION(stack) {
  const std::vector<Tensor> tensors = a.tensors<"tensors">();
  if (tensors.empty()) throw EagerError(a.here(), "stack: needs at least one tensor");
  std::vector<Tensor> rows;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Dims first = tensors[0].sizes(), own = tensors[i].sizes();
    bool equal = first.size() == own.size();
    for (size_t k = 0; equal && k < own.size(); ++k) equal = proves_equal(first[k], own[k]);
    if (!equal)
      throw EagerError(a.here(), "stack: tensor " + std::to_string(i) + " has size " +
                                     to_string(own) + ", the first has " + to_string(first));
    rows.push_back(unsqueeze(tensors[i], a.integer<"dim">(), a.here()));
  }
  int64_t dim = a.integer<"dim">();
  return {cat(rows, dim, a.here())};
}
TAPER_DECOMPOSITION(tile) {
  const Tensor self = a.tensor<"self">();
  Dims dims = a.dims<"dims">();
  while (dims.size() < static_cast<size_t>(self.rank())) dims.insert(dims.begin(), Dim(1));
  return {repeat(self, dims, a.here())};
}
TAPER_DECOMPOSITION(meshgrid_indexing) {
  const std::vector<Tensor> tensors = a.tensors<"tensors">();
  const bool swaps = a.text<"indexing">() == "xy" && tensors.size() >= 2;
  if (a.text<"indexing">() != "ij" && a.text<"indexing">() != "xy")
    throw EagerError(a.here(), "meshgrid: indexing must be ij or xy");
  Dims sizes;
  for (const Tensor& t : tensors) {
    if (t.rank() > 1)
      throw EagerError(
          a.here(), "meshgrid: tensors must have at most 1 dimension, not " + to_string(t.sizes()));
    sizes.push_back(t.numel());
  }
  if (swaps) std::swap(sizes[0], sizes[1]);
  Results grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Dims line(sizes.size(), Dim(1));
    const size_t at = swaps && i < 2 ? 1 - i : i;
    line[at] = sizes[at];
    grids.push_back(expand(reshape(tensors[i], line, a.here()), sizes, a.here()));
  }
  return grids;
}

}  // namespace taper::eager::decompositions
