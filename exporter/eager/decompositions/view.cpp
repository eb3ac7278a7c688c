// Composite views: in terms of the views that programs hold as values.
#include "taper/exporter/eager/ops/view.h"

#include <numeric>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/movement.h"
#include "taper/kernels/shapes/view.h"

namespace taper::eager::decompositions {
namespace {

/// Whether `view` can give these sizes. Throws nothing and leaves no checks.
bool is_viewable(const Tensor& self, const Dims& sizes) {
  const TensorType<Dim> type = self.type();
  TensorType<Dim> out;
  Facts<Dim> facts;
  const DimList<Dim> list{
      sizes.data(), static_cast<index_t>(sizes.size()),
      [](const void* source, index_t i) { return static_cast<const Dim*>(source)[i]; }};
  return !taper::internal::infer_sizes(facts, type, list, out) ||
         taper::internal::view_strides(facts, type, out);  // wrong sizes: `view` says so
}
Tensor reshape_to(const Tensor& self, const Dims& sizes, Location here) {
  return view(is_viewable(self, sizes) ? self : clone(self, here), sizes, here);
}

Tensor exchange_last_two(const Tensor& self, Location here) {
  return transpose(self, -2, -1, here);
}

Results split_to(const Tensor& self, const Dims& sizes, int64_t dim, std::string_view op,
                 Location here) {
  if (self.rank() == 0)
    throw EagerError(here, std::string(op) + ": a tensor without dimensions cannot be split");
  dim = checked_dim(dim, self.rank(), op, self, here);
  Dim total = 0;
  for (const Dim& s : sizes) {
    if (proves_less(s, Dim(0)))
      throw EagerError(here, std::string(op) + ": size " + s.to_string() + " is negative");
    total = total + s;
  }
  if (!proves_equal(total, self.size(dim)))
    throw EagerError(here, std::string(op) + ": the sizes add up to " + total.to_string() +
                               ", dim " + std::to_string(dim) + " of " + to_string(self.sizes()) +
                               " has " + self.size(dim).to_string());
  Results parts;
  Dim from = 0;
  for (const Dim& s : sizes) {
    parts.push_back(slice(self, dim, from, from + s, 1, here));
    from = from + s;
  }
  return parts;
}
/// Pieces of one size, the last smaller.
Results split_evenly(const Tensor& self, Dim size, int64_t dim, std::string_view op,
                     Location here) {
  if (self.rank() == 0)
    throw EagerError(here, std::string(op) + ": a tensor without dimensions cannot be split");
  dim = checked_dim(dim, self.rank(), op, self, here);
  const int64_t extent = self.size(dim).value(), step = size.value();
  if (step < 0 || (step == 0 && extent != 0))
    throw EagerError(here, std::string(op) + ": pieces of size " + std::to_string(step) +
                               " do not make up a size of " + std::to_string(extent));
  Dims sizes;
  for (int64_t at = 0; at < extent; at += step) sizes.push_back(std::min(step, extent - at));
  if (sizes.empty()) sizes.push_back(0);
  return split_to(self, sizes, dim, op, here);
}

}  // namespace

TAPER_DECOMPOSITION(reshape) {
  return {reshape_to(a.tensor<"self">(), a.dims<"shape">(), a.here())};
}
TAPER_DECOMPOSITION(_unsafe_view) {
  return {reshape_to(a.tensor<"self">(), a.dims<"size">(), a.here())};
}
TAPER_DECOMPOSITION(view_as) {
  return {view(a.tensor<"self">(), a.tensor<"other">().sizes(), a.here())};
}
TAPER_DECOMPOSITION(expand_as) {
  return {expand(a.tensor<"self">(), a.tensor<"other">().sizes(), a.here())};
}
TAPER_DECOMPOSITION(flatten_using_ints) {
  const Tensor self = a.tensor<"self">();
  const int64_t first =
      checked_dim(a.integer<"start_dim">(), self.rank(), "flatten", self, a.here());
  const int64_t last = checked_dim(a.integer<"end_dim">(), self.rank(), "flatten", self, a.here());
  if (first > last)
    throw EagerError(a.here(), "flatten: start_dim " + std::to_string(first) +
                                   " lies behind end_dim " + std::to_string(last));
  if (self.rank() == 0) return {reshape(self, {Dim(1)}, a.here())};
  if (first == last) return {self};
  Dims sizes;
  Dim joined = 1;
  for (int64_t i = 0; i < self.rank(); ++i) {
    if (i >= first && i <= last) joined = joined * self.size(i);
    if (i < first || i > last)
      sizes.push_back(self.size(i));
    else if (i == last)
      sizes.push_back(joined);
  }
  return {reshape(self, sizes, a.here())};
}
TAPER_DECOMPOSITION(unflatten_int) {
  const Tensor self = a.tensor<"self">();
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "unflatten", self, a.here());
  Dims sizes = self.sizes(), parts = a.dims<"sizes">();
  if (self.rank() == 0 || parts.empty())
    throw EagerError(a.here(), "unflatten: needs a dimension and at least one size");
  Dim known = 1;
  Dim* inferred = nullptr;
  for (Dim& p : parts) {
    if (!proves_equal(p, Dim(-1)))
      known = known * p;
    else if (inferred != nullptr)
      throw EagerError(a.here(), "unflatten: only one size may be -1");
    else
      inferred = &p;
  }
  if (inferred != nullptr)
    *inferred = proves_equal(known, Dim(0)) ? Dim(0) : sizes[static_cast<size_t>(dim)] / known;
  Dim product = 1;
  for (const Dim& p : parts) product = product * p;
  if (proves_different(product, sizes[static_cast<size_t>(dim)]))  // what is open, view checks
    throw EagerError(a.here(), "unflatten: sizes " + to_string(parts) + " do not multiply to " +
                                   sizes[static_cast<size_t>(dim)].to_string());
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, parts.begin(), parts.end());
  return {view(self, sizes, a.here())};
}
TAPER_DECOMPOSITION(t) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() > 2)
    throw EagerError(a.here(), "t: takes at most 2 dimensions, not " + to_string(self.sizes()) +
                                   "; use transpose()");
  return {self.rank() < 2 ? call<ops::alias>(a.here(), self) : transpose(self, 0, 1, a.here())};
}
TAPER_DECOMPOSITION(numpy_T) {
  const Tensor self = a.tensor<"self">();
  Ints reversed(static_cast<size_t>(self.rank()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return {permute(self, reversed, a.here())};
}
TAPER_DECOMPOSITION(mT) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() < 2)
    throw EagerError(a.here(), "mT: needs at least 2 dimensions, not " + to_string(self.sizes()));
  return {exchange_last_two(self, a.here())};
}
TAPER_DECOMPOSITION(movedim_int) {
  const Tensor self = a.tensor<"self">();
  const int64_t from = checked_dim(a.integer<"source">(), self.rank(), "movedim", self, a.here());
  const int64_t to =
      checked_dim(a.integer<"destination">(), self.rank(), "movedim", self, a.here());
  if (self.rank() == 0) return {call<ops::alias>(a.here(), self)};
  Ints dims(static_cast<size_t>(self.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  dims.erase(dims.begin() + from);
  dims.insert(dims.begin() + to, from);
  return {permute(self, dims, a.here())};
}
TAPER_DECOMPOSITION(contiguous) {
  const Tensor self = a.tensor<"self">();
  return {self.is_dense() ? self : clone(self, a.here())};
}
TAPER_DECOMPOSITION(squeeze) {
  const Tensor self = a.tensor<"self">();
  Ints dims(static_cast<size_t>(self.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return {squeeze(self, dims, a.here())};
}
TAPER_DECOMPOSITION(narrow) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() == 0)
    throw EagerError(a.here(), "narrow: a tensor without dimensions cannot be narrowed");
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "narrow", self, a.here());
  const Dim extent = self.size(dim), length = a.dim<"length">();
  Dim start = a.dim<"start">();
  if (proves_less(start, Dim(0))) start = start + extent;
  if (proves_less(start, Dim(0)) || proves_less(length, Dim(0)) ||
      proves_less(extent, start + length))
    throw EagerError(a.here(), "narrow: " + length.to_string() + " elements from " +
                                   start.to_string() + " on do not lie in a size of " +
                                   extent.to_string());
  return {slice(self, dim, start, start + length, 1, a.here())};
}
TAPER_DECOMPOSITION(split_with_sizes) {
  return split_to(a.tensor<"self">(), a.dims<"split_sizes">(), a.integer<"dim">(), "split",
                  a.here());
}
TAPER_DECOMPOSITION(split_sizes) {
  return split_to(a.tensor<"self">(), a.dims<"split_size">(), a.integer<"dim">(), "split",
                  a.here());
}
TAPER_DECOMPOSITION(split_Tensor) {
  return split_evenly(a.tensor<"self">(), a.dim<"split_size">(), a.integer<"dim">(), "split",
                      a.here());
}
TAPER_DECOMPOSITION(chunk) {
  const Tensor self = a.tensor<"self">();
  const int64_t chunks = a.integer<"chunks">();
  if (chunks < 1)
    throw EagerError(a.here(), "chunk: chunks must be 1 or more, got " + std::to_string(chunks));
  if (self.rank() == 0)
    throw EagerError(a.here(), "chunk: a tensor without dimensions cannot be split");
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "chunk", self, a.here());
  const Dim extent = self.size(dim);
  if (same(extent % chunks, Dim(0)))
    return split_to(self, Dims(static_cast<size_t>(chunks), extent / chunks), dim, "chunk",
                    a.here());
  if (!extent.is_constant())
    throw EagerError(a.here(), "chunk: how many pieces there are depends on the size " +
                                   extent.to_string() + ", which may be no multiple of chunks " +
                                   std::to_string(chunks) + "; make it " + std::to_string(chunks) +
                                   " times a symbol, or call split");
  return split_evenly(self, (extent - 1) / chunks + 1, dim, "chunk", a.here());
}
TAPER_DECOMPOSITION(unbind_int) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() == 0)
    throw EagerError(a.here(), "unbind: a tensor without dimensions has no rows");
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "unbind", self, a.here());
  Results rows;
  for (int64_t i = 0; i < self.size(dim).value(); ++i)
    rows.push_back(select(self, dim, i, a.here()));
  return rows;
}
// The pieces are views: what PyTorch calls unsafe is that it does not follow writes to them.
TAPER_DECOMPOSITION(unsafe_split_Tensor) {
  return split_evenly(a.tensor<"self">(), a.dim<"split_size">(), a.integer<"dim">(), "unsafe_split",
                      a.here());
}
TAPER_DECOMPOSITION(squeeze_copy) {
  return {clone(squeeze(a.tensor<"self">(), a.here()), a.here())};
}
TAPER_DECOMPOSITION(swapaxes) {
  return {transpose(a.tensor<"self">(), a.integer<"axis0">(), a.integer<"axis1">(), a.here())};
}
TAPER_DECOMPOSITION(ravel) {
  const Tensor self = a.tensor<"self">();
  return {reshape(self, {self.numel()}, a.here())};
}
TAPER_DECOMPOSITION(detach) { return {a.tensor<"self">().detach()}; }
// These two give the handle that `self` is to become.
TAPER_DECOMPOSITION(detach_) { return {a.tensor<"self">().detach()}; }
TAPER_DECOMPOSITION(resize_) {
  const Location here = a.here();
  const Tensor self = a.tensor<"self">();
  const Dims size = a.dims<"size">();
  if (self.requires_grad())
    throw EagerError(here, "resize_: a tensor that requires a gradient cannot be resized");
  Dim count = 1;
  for (const Dim& d : size) count *= d;
  const Tensor line = flatten(self, 0, -1, here);
  if (!proves_less(self.numel(), count))
    return {view(slice(line, 0, Dim(0), count, 1, here), size, here)};
  return {
      view(cat({line, zeros({count - self.numel()}, self.dtype(), here)}, 0, here), size, here)};
}

}  // namespace taper::eager::decompositions
