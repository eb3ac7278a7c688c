// Composite views, written with the views that programs store as values.
#include "taper/exporter/eager/ops/view.h"

#include <numeric>

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/exporter/eager/recorder.h"
#include "taper/kernels/shapes/view.h"

namespace taper::eager::decompositions {
namespace {

/// Whether `view` can give these sizes. Does not throw and adds no checks.
bool is_viewable(const Tensor& self, const Dims& sizes) {
  const TensorType<Dim> type = self.type();
  TensorType<Dim> out;
  Facts<Dim> facts;
  const DimList<Dim> list{
      sizes.data(), static_cast<index_t>(sizes.size()),
      [](const void* source, index_t i) { return static_cast<const Dim*>(source)[i]; }};
  return !taper::internal::infer_sizes(facts, type, list, out) ||
         // for wrong sizes, `view` reports the error
         taper::internal::view_strides(facts, type, out);
}
Tensor reshape_to(const Tensor& self, const Dims& sizes) {
  return view(is_viewable(self, sizes) ? self : clone(self), sizes);
}

Tensor exchange_last_two(const Tensor& self) { return transpose(self, -2, -1); }

}  // namespace

TAPER_DECOMPOSITION(reshape) { return {reshape_to(a.tensor<"self">(), a.dims<"shape">())}; }
TAPER_DECOMPOSITION(_unsafe_view) { return {reshape_to(a.tensor<"self">(), a.dims<"size">())}; }
TAPER_DECOMPOSITION(view_as) { return {view(a.tensor<"self">(), a.tensor<"other">().sizes())}; }
TAPER_DECOMPOSITION(expand_as) { return {expand(a.tensor<"self">(), a.tensor<"other">().sizes())}; }
TAPER_DECOMPOSITION(flatten_using_ints) {
  const Tensor self = a.tensor<"self">();
  const int64_t first = checked_dim(a.integer<"start_dim">(), self.rank(), "flatten", self);
  const int64_t last = checked_dim(a.integer<"end_dim">(), self.rank(), "flatten", self);
  if (first > last)
    throw EagerError("flatten: start_dim " + std::to_string(first) + " lies behind end_dim " +
                     std::to_string(last));
  if (self.rank() == 0) return {reshape(self, {Dim(1)})};
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
  return {reshape(self, sizes)};
}
TAPER_DECOMPOSITION(unflatten_int) {
  const Tensor self = a.tensor<"self">();
  const int64_t dim = checked_dim(a.integer<"dim">(), self.rank(), "unflatten", self);
  Dims sizes = self.sizes(), parts = a.dims<"sizes">();
  if (self.rank() == 0 || parts.empty())
    throw EagerError("unflatten: needs a dimension and at least one size");
  Dim known = 1;
  Dim* inferred = nullptr;
  for (Dim& p : parts) {
    if (!proves_equal(p, Dim(-1)))
      known = known * p;
    else if (inferred != nullptr)
      throw EagerError("unflatten: only one size may be -1");
    else
      inferred = &p;
  }
  if (inferred != nullptr)
    *inferred = proves_equal(known, Dim(0)) ? Dim(0) : sizes[static_cast<size_t>(dim)] / known;
  Dim product = 1;
  for (const Dim& p : parts) product = product * p;
  // if the symbols leave it open, view checks it
  if (proves_different(product, sizes[static_cast<size_t>(dim)]))
    throw EagerError("unflatten: sizes " + to_string(parts) + " do not multiply to " +
                     sizes[static_cast<size_t>(dim)].to_string());
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, parts.begin(), parts.end());
  return {view(self, sizes)};
}
TAPER_DECOMPOSITION(t) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() > 2)
    throw EagerError("t: takes at most 2 dimensions, not " + to_string(self.sizes()) +
                     "; use transpose()");
  return {self.rank() < 2 ? call<ops::alias>(self) : transpose(self, 0, 1)};
}
TAPER_DECOMPOSITION(numpy_T) {
  const Tensor self = a.tensor<"self">();
  Ints reversed(static_cast<size_t>(self.rank()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return {permute(self, reversed)};
}
TAPER_DECOMPOSITION(mT) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() < 2)
    throw EagerError("mT: needs at least 2 dimensions, not " + to_string(self.sizes()));
  return {exchange_last_two(self)};
}
TAPER_DECOMPOSITION(movedim_int) {
  const Tensor self = a.tensor<"self">();
  const int64_t from = checked_dim(a.integer<"source">(), self.rank(), "movedim", self);
  const int64_t to = checked_dim(a.integer<"destination">(), self.rank(), "movedim", self);
  if (self.rank() == 0) return {call<ops::alias>(self)};
  Ints dims(static_cast<size_t>(self.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  dims.erase(dims.begin() + from);
  dims.insert(dims.begin() + to, from);
  return {permute(self, dims)};
}
TAPER_DECOMPOSITION(contiguous) {
  const Tensor self = a.tensor<"self">();
  return {self.is_dense() ? self : clone(self)};
}
TAPER_DECOMPOSITION(squeeze) {
  const Tensor self = a.tensor<"self">();
  Ints dims(static_cast<size_t>(self.rank()));
  std::iota(dims.begin(), dims.end(), 0);
  return {squeeze(self, dims)};
}
namespace {

Tensor narrowed(const Tensor& self, int64_t dim, Dim start, Dim length) {
  const Dim extent = self.size(dim);
  if (proves_less(start, Dim(0))) start = start + extent;
  if (proves_less(start, Dim(0)) || proves_less(length, Dim(0)) ||
      proves_less(extent, start + length))
    throw EagerError("narrow: " + length.to_string() + " elements from " + start.to_string() +
                     " on do not lie in a size of " + extent.to_string());
  return slice(self, dim, start, start + length);
}
int64_t narrowed_dim(int64_t dim, const Tensor& self) {
  if (self.rank() == 0) throw EagerError("narrow: a tensor without dimensions cannot be narrowed");
  return checked_dim(dim, self.rank(), "narrow", self);
}

}  // namespace

TAPER_DECOMPOSITION(narrow) {
  const Tensor self = a.tensor<"self">();
  const int64_t dim = narrowed_dim(a.integer<"dim">(), self);
  return {narrowed(self, dim, a.dim<"start">(), a.dim<"length">())};
}
// In a trace the start is a symbol, counted from the front. It leaves room for `length` elements.
TAPER_DECOMPOSITION(narrow_Tensor) {
  const Tensor self = a.tensor<"self">(), given = a.tensor<"start">();
  const int64_t dim = narrowed_dim(a.integer<"dim">(), self);
  const Dim extent = self.size(dim), length = a.dim<"length">();
  if (given.rank() != 0 || is_floating(given.dtype()) || given.dtype() == DType::boolean)
    throw EagerError("narrow: start must be an integer tensor without dimensions, it is " +
                     to_string(given.sizes()) + " " + taper::name_of(given.dtype()));
  const Tensor start = to(given.detach(), DType::i64);
  if (!start.is_traced()) return {narrowed(self, dim, start.item<int64_t>(), length)};
  if (proves_less(length, Dim(0)) || proves_less(extent, length))
    throw EagerError("narrow: " + length.to_string() + " elements do not lie in a size of " +
                     extent.to_string());
  const Dim last = extent - length;
  const Tensor from_front =
      where(lt(start, 0), add(start, dim_as_tensor(extent, DType::i64)), start);
  const Dim first = element_as_dim(from_front, 0, last.upper());
  if (recorder() != nullptr && !last.is_constant())
    recorder()->assume({Comparison::less_equal, first, last, "narrow"});
  return {slice(self, dim, first, first + length)};
}
TAPER_DECOMPOSITION(squeeze_copy) { return {clone(squeeze(a.tensor<"self">()))}; }
TAPER_DECOMPOSITION(swapaxes) {
  return {transpose(a.tensor<"self">(), a.integer<"axis0">(), a.integer<"axis1">())};
}
TAPER_DECOMPOSITION(ravel) {
  const Tensor self = a.tensor<"self">();
  return {reshape(self, {self.numel()})};
}
TAPER_DECOMPOSITION(detach) { return {a.tensor<"self">().detach()}; }
// These two return the handle that `self` becomes.
TAPER_DECOMPOSITION(detach_) { return {a.tensor<"self">().detach()}; }
TAPER_DECOMPOSITION(resize_) {
  const Tensor self = a.tensor<"self">();
  const Dims size = a.dims<"size">();
  if (self.requires_grad())
    throw EagerError("resize_: a tensor that requires a gradient cannot be resized");
  Dim count = 1;
  for (const Dim& d : size) {
    if (d.is_constant() && d.value() < 0)
      throw EagerError("resize_: sizes must not be negative, got " + to_string(size));
    count *= d;
  }
  const Tensor line = flatten(self);
  if (!proves_less(self.numel(), count)) return {view(slice(line, 0, Dim(0), count), size)};
  return {view(cat({line, zeros({count - self.numel()}, self.dtype())}), size)};
}

namespace {

template <const Operator& op>
Tensor self_with_rank(int rank, const Arguments<op>& a) {
  return with_rank(rank, a.template tensor<"self">());
}
template <const Operator& op>
Results all_with_rank(int rank, const Arguments<op>& a) {
  Results results = a.template tensors<"tensors">();
  for (Tensor& t : results) t = with_rank(rank, t);
  return results;
}

}  // namespace

Tensor with_rank(int rank, Tensor t) {
  if (rank >= 1 && t.rank() == 0) t = unsqueeze(t, 0);
  if (rank >= 2 && t.rank() == 1) t = unsqueeze(t, 0);
  if (rank >= 3 && t.rank() == 2) t = unsqueeze(t, 2);
  return t;
}
TAPER_DECOMPOSITION(atleast_1d) { return {self_with_rank(1, a)}; }
TAPER_DECOMPOSITION(atleast_2d) { return {self_with_rank(2, a)}; }
TAPER_DECOMPOSITION(atleast_3d) { return {self_with_rank(3, a)}; }
TAPER_DECOMPOSITION(atleast_1d_Sequence) { return all_with_rank(1, a); }
TAPER_DECOMPOSITION(atleast_2d_Sequence) { return all_with_rank(2, a); }
TAPER_DECOMPOSITION(atleast_3d_Sequence) { return all_with_rank(3, a); }

TAPER_DECOMPOSITION(movedim_intlist) {
  const Tensor self = a.tensor<"self">();
  const Ints source = a.integers<"source">(), destination = a.integers<"destination">();
  const auto rank = static_cast<size_t>(self.rank());
  Ints from(rank, -1);  // indexed by destination
  std::vector<bool> moves(rank);
  bool usable = source.size() == destination.size();
  for (size_t i = 0; usable && i < source.size(); ++i) {
    const auto s = static_cast<size_t>(checked_dim(source[i], self.rank(), "movedim", self)),
               d = static_cast<size_t>(checked_dim(destination[i], self.rank(), "movedim", self));
    if (rank == 0) return {call<ops::alias>(self)};
    usable = !moves[s] && from[d] < 0;
    moves[s] = true, from[d] = static_cast<int64_t>(s);
  }
  if (!usable)
    throw EagerError("movedim: source and destination must name as many dimensions of " +
                     to_string(self.sizes()) + ", each once");
  size_t next = 0;
  for (int64_t& f : from) {
    if (f >= 0) continue;
    while (moves[next]) ++next;
    f = static_cast<int64_t>(next++);
  }
  return {permute(self, from)};
}
TAPER_DECOMPOSITION(linalg_diagonal) {
  return {
      diagonal(a.tensor<"A">(), a.integer<"offset">(), a.integer<"dim1">(), a.integer<"dim2">())};
}
TAPER_DECOMPOSITION(squeeze_copy_dim) {
  return {clone(squeeze(a.tensor<"self">(), a.integer<"dim">()))};
}
TAPER_DECOMPOSITION(squeeze_copy_dims) {
  return {clone(squeeze(a.tensor<"self">(), a.integers<"dim">()))};
}

}  // namespace taper::eager::decompositions
