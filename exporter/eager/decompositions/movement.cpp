// Composite copies and casts.
#include "taper/exporter/eager/ops/movement.h"

#include "taper/exporter/eager/decompositions/decomposition.h"
#include "taper/exporter/eager/ops/all.h"
#include "taper/kernels/shapes/broadcast.h"

namespace taper::eager::decompositions {
namespace {

Tensor converted(const Tensor& self, DType dtype, bool copy) {
  return copy || self.dtype() != dtype ? call<ops::_to_copy>(self, std::optional(dtype)) : self;
}

Tensor joined(std::vector<Tensor> tensors, int rank, int64_t dim, const char* name) {
  if (tensors.empty()) throw EagerError(std::string(name) + ": needs at least one tensor");
  for (Tensor& t : tensors) t = with_rank(rank, t);
  return cat(tensors, tensors[0].rank() == 1 ? 0 : dim);
}

}  // namespace

TAPER_DECOMPOSITION(hstack) { return {joined(a.tensors<"tensors">(), 1, 1, "hstack")}; }
TAPER_DECOMPOSITION(vstack) { return {joined(a.tensors<"tensors">(), 2, 0, "vstack")}; }
TAPER_DECOMPOSITION(dstack) { return {joined(a.tensors<"tensors">(), 3, 2, "dstack")}; }

TAPER_DECOMPOSITION(rot90) {
  const Tensor self = a.tensor<"self">();
  const Ints dims = a.integers<"dims">();
  const int64_t rank = self.rank(), turns = (a.integer<"k">() % 4 + 4) % 4;
  const auto inside = [&](int64_t dim) { return dim >= -rank && dim < rank; };
  if (dims.size() != 2 || !inside(dims[0]) || !inside(dims[1]) || (dims[0] - dims[1]) % rank == 0)
    throw EagerError("rot90: dims must be two different dimensions of " + to_string(self.sizes()));
  if (turns == 0) return {clone(self)};
  if (turns == 2) return {flip(self, dims)};
  return {transpose(flip(self, {dims[turns == 1 ? 1 : 0]}), dims[0], dims[1])};
}

// Repeats each element at its place.
TAPER_DECOMPOSITION(repeat_interleave_self_int) {
  const Dim repeats = a.dim<"repeats">();
  const bool whole = !a.has<"dim">();
  const Tensor self = whole ? flatten(a.tensor<"self">()) : a.tensor<"self">();
  if (proves_less(repeats, Dim(0)))
    throw EagerError("repeat_interleave: repeats must be 0 or more, got " + repeats.to_string());
  if (self.rank() == 0)
    throw EagerError("repeat_interleave: a tensor without dimensions has no dim");
  const int64_t dim =
      checked_dim(whole ? 0 : a.integer<"dim">(), self.rank(), "repeat_interleave", self);
  Dims sizes = self.sizes(), repeated = sizes;
  const Dim most = INT64_MAX / max(sizes[static_cast<size_t>(dim)], Dim(1));
  if (proves_less(most, repeats))
    throw EagerError("repeat_interleave: repeats must be at most " + most.to_string() +
                     " for a size of " + sizes[static_cast<size_t>(dim)].to_string() + ", got " +
                     repeats.to_string());
  sizes[static_cast<size_t>(dim)] *= repeats;
  repeated.insert(repeated.begin() + dim + 1, repeats);
  if (a.has<"output_size">() && !same(a.dim<"output_size">(), sizes[static_cast<size_t>(dim)]))
    throw EagerError("repeat_interleave: output_size is " + a.dim<"output_size">().to_string() +
                     ", the result has " + to_string(sizes));
  return {view(clone(expand(unsqueeze(self, dim + 1), repeated)), sizes)};
}

// Zeros, with the last dimension on a diagonal.
TAPER_DECOMPOSITION(diag_embed) {
  const Tensor self = a.tensor<"self">();
  const int64_t rank = self.rank() + 1, offset = a.integer<"offset">();
  int64_t dim1 = a.integer<"dim1">(), dim2 = a.integer<"dim2">();
  const auto inside = [&](int64_t dim) { return dim >= -rank && dim < rank; };
  if (self.rank() == 0 || !inside(dim1) || !inside(dim2) || (dim1 - dim2) % rank == 0)
    throw EagerError("diag_embed: dim1 " + std::to_string(dim1) + " and dim2 " +
                     std::to_string(dim2) + " must be different and in [" + std::to_string(-rank) +
                     ", " + std::to_string(rank) + ") for self " + to_string(self.sizes()));
  dim1 = (dim1 + rank) % rank, dim2 = (dim2 + rank) % rank;
  Dims sizes = self.sizes();
  const Dim side = sizes.back() + Dim(offset < 0 ? -offset : offset);
  sizes.pop_back();
  for (const int64_t dim : {std::min(dim1, dim2), std::max(dim1, dim2)})
    sizes.insert(sizes.begin() + dim, side);
  return {diagonal_scatter(zeros(sizes, self.dtype()), self, offset, dim1, dim2)};
}

TAPER_DECOMPOSITION(fill_Tensor) {
  const Tensor self = a.tensor<"self">(), value = a.tensor<"value">();
  if (value.rank() != 0)
    throw EagerError("fill: value must be a number or a tensor without dimensions, not " +
                     to_string(value.sizes()));
  return {clone(expand(to(value, self.dtype()), self.sizes()))};
}
// Each element minus the one before it, n times. For bool: whether the two differ.
TAPER_DECOMPOSITION(diff) {
  Tensor x = a.tensor<"self">();
  const int64_t n = a.integer<"n">();
  if (x.rank() == 0 || n < 0)
    throw EagerError("diff: needs a dimension and n of at least 0, got " + to_string(x.sizes()) +
                     " and " + std::to_string(n));
  const int64_t dim = checked_dim(a.integer<"dim">(), x.rank(), "diff", x);
  if (n == 0) return {x};
  std::vector<Tensor> parts;
  if (a.has<"prepend">()) parts.push_back(a.tensor<"prepend">());
  parts.push_back(x);
  if (a.has<"append">()) parts.push_back(a.tensor<"append">());
  if (parts.size() > 1) x = cat(parts, dim);
  for (int64_t i = 0; i < n && !proves_equal(x.size(dim), Dim(0)); ++i) {
    const Dim extent = x.size(dim);
    const Tensor after = slice(x, dim, Dim(1), extent),
                 before = slice(x, dim, Dim(0), extent - Dim(1));
    x = x.dtype() == DType::boolean ? ne(after, before) : sub(after, before);
  }
  return {x};
}

TAPER_DECOMPOSITION(to_dtype) {
  return {converted(a.tensor<"self">(), a.dtype<"dtype">(), a.boolean<"copy">())};
}
TAPER_DECOMPOSITION(to_dtype_layout) {
  const Tensor self = a.tensor<"self">();
  return {
      converted(self, a.has<"dtype">() ? a.dtype<"dtype">() : self.dtype(), a.boolean<"copy">())};
}
TAPER_DECOMPOSITION(to_device) {
  return {converted(a.tensor<"self">(), a.dtype<"dtype">(), a.boolean<"copy">())};
}
TAPER_DECOMPOSITION(to_other) {
  return {converted(a.tensor<"self">(), a.tensor<"other">().dtype(), a.boolean<"copy">())};
}
TAPER_DECOMPOSITION(type_as) {
  return {converted(a.tensor<"self">(), a.tensor<"other">().dtype(), false)};
}
TAPER_DECOMPOSITION(lift_fresh_copy) { return {clone(a.tensor<"self">())}; }
TAPER_DECOMPOSITION(stack) {
  const std::vector<Tensor> tensors = a.tensors<"tensors">();
  if (tensors.empty()) throw EagerError("stack: needs at least one tensor");
  std::vector<Tensor> rows;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Dims first = tensors[0].sizes(), own = tensors[i].sizes();
    bool equal = first.size() == own.size();
    for (size_t k = 0; equal && k < own.size(); ++k) equal = proves_equal(first[k], own[k]);
    if (!equal)
      throw EagerError("stack: tensor " + std::to_string(i) + " has size " + to_string(own) +
                       ", the first has " + to_string(first));
    rows.push_back(unsqueeze(tensors[i], a.integer<"dim">()));
  }
  int64_t dim = a.integer<"dim">();
  return {cat(rows, dim)};
}
TAPER_DECOMPOSITION(tile) {
  const Tensor self = a.tensor<"self">();
  Dims dims = a.dims<"dims">();
  while (dims.size() < static_cast<size_t>(self.rank())) dims.insert(dims.begin(), Dim(1));
  return {repeat(self, dims)};
}
TAPER_DECOMPOSITION(meshgrid_indexing) {
  const std::vector<Tensor> tensors = a.tensors<"tensors">();
  const bool swaps = a.text<"indexing">() == "xy" && tensors.size() >= 2;
  if (a.text<"indexing">() != "ij" && a.text<"indexing">() != "xy")
    throw EagerError("meshgrid: indexing must be ij or xy");
  Dims sizes;
  for (const Tensor& t : tensors) {
    if (t.rank() > 1)
      throw EagerError("meshgrid: tensors must have at most 1 dimension, not " +
                       to_string(t.sizes()));
    sizes.push_back(t.numel());
  }
  if (swaps) std::swap(sizes[0], sizes[1]);
  Results grids;
  for (size_t i = 0; i < tensors.size(); ++i) {
    Dims line(sizes.size(), Dim(1));
    const size_t at = swaps && i < 2 ? 1 - i : i;
    line[at] = sizes[at];
    grids.push_back(expand(reshape(tensors[i], line), sizes));
  }
  return grids;
}
TAPER_DECOMPOSITION(broadcast_tensors) {
  const std::vector<Tensor> tensors = a.tensors<"tensors">();
  Facts<Dim> facts;
  TensorType<Dim> all;
  for (const Tensor& t : tensors) {
    const TensorType<Dim> before = all;
    if (!taper::internal::broadcast(facts, all, before, t.type()))
      throw EagerError("broadcast_tensors: " + to_string(t.sizes()) +
                       " does not broadcast with the others");
  }
  Results results;
  for (const Tensor& t : tensors)
    results.push_back(expand(t, Dims(all.sizes, all.sizes + all.rank)));
  return results;
}
// Matrices along the diagonal of a matrix of zeros. A vector counts as one row.
TAPER_DECOMPOSITION(block_diag) {
  std::vector<Tensor> blocks;
  Dim columns = 0, before = 0;
  for (const Tensor& t : a.tensors<"tensors">()) {
    if (t.rank() > 2)
      throw EagerError("block_diag: tensors must have at most 2 dimensions, not " +
                       to_string(t.sizes()));
    blocks.push_back(t.rank() == 2 ? t : reshape(t, {1, t.numel()}));
    columns += blocks.back().size(1);
  }
  for (Tensor& block : blocks) {
    const Dim width = block.size(1);
    block = constant_pad_nd(block, {before, columns - before - width});
    before += width;
  }
  return {blocks.empty() ? zeros({1, 0}) : cat(blocks)};
}
TAPER_DECOMPOSITION(cartesian_prod) {
  const std::vector<Tensor> tensors = a.tensors<"tensors">();
  if (tensors.empty()) throw EagerError("cartesian_prod: needs at least one tensor");
  for (const Tensor& t : tensors)
    if (t.rank() != 1 || t.dtype() != tensors[0].dtype())
      throw EagerError("cartesian_prod: tensors must be vectors of one dtype, got " +
                       to_string(t.sizes()) + " " + taper::name_of(t.dtype()));
  if (tensors.size() == 1) return {tensors[0]};
  std::vector<Tensor> columns;
  for (const Tensor& grid : meshgrid(tensors)) columns.push_back(flatten(grid));
  return {stack(columns, 1)};
}

TAPER_DECOMPOSITION(fliplr) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() < 2)
    throw EagerError("fliplr: needs at least 2 dimensions, not " + to_string(self.sizes()));
  return {flip(self, {1})};
}
TAPER_DECOMPOSITION(flipud) {
  const Tensor self = a.tensor<"self">();
  if (self.rank() < 1) throw EagerError("flipud: needs at least 1 dimension");
  return {flip(self, {0})};
}
// Vectors and numbers become columns.
TAPER_DECOMPOSITION(column_stack) {
  std::vector<Tensor> tensors = a.tensors<"tensors">();
  for (Tensor& t : tensors)
    if (t.rank() < 2) t = reshape(t, {t.numel(), 1});
  return {hstack(tensors)};
}
TAPER_DECOMPOSITION(diag) {
  const Tensor self = a.tensor<"self">();
  const int64_t offset = a.integer<"diagonal">();
  if (self.rank() == 1) return {diag_embed(self, offset)};
  if (self.rank() == 2) return {clone(diagonal(self, offset))};
  throw EagerError("diag: needs 1 or 2 dimensions, not " + to_string(self.sizes()));
}
TAPER_DECOMPOSITION(diagflat) {
  const Tensor self = a.tensor<"self">();
  return {diag_embed(reshape(self, {self.numel()}), a.integer<"offset">())};
}
// All combinations of r elements, in the order of their positions. The positions are a constant.
TAPER_DECOMPOSITION(combinations) {
  const Tensor self = a.tensor<"self">();
  const int64_t r = a.integer<"r">();
  const bool again = a.boolean<"with_replacement">();
  constexpr size_t most = size_t{1} << 26;
  if (self.rank() != 1 || r < 0)
    throw EagerError("combinations: needs a vector and r of at least 0, got " +
                     to_string(self.sizes()) + " and " + std::to_string(r));
  if (r == 0) return {zeros({0}, self.dtype())};
  const int64_t n = self.size(0).value();
  std::vector<int64_t> rows, row;
  for (int64_t i = 0; i < r; ++i) row.push_back(again ? 0 : i);
  while (row.back() < n) {
    if (rows.size() + row.size() > most)
      throw EagerError("combinations: there are more than 2^26 elements in the result");
    rows.insert(rows.end(), row.begin(), row.end());
    // increments the last place that can grow, and resets those behind it to their smallest values
    int64_t at = r - 1;
    while (at > 0 && row[static_cast<size_t>(at)] + 1 > n - (again ? 1 : r - at)) --at;
    ++row[static_cast<size_t>(at)];
    for (int64_t i = at + 1; i < r; ++i)
      row[static_cast<size_t>(i)] = row[static_cast<size_t>(i - 1)] + (again ? 0 : 1);
  }
  const Tensor positions = Tensor::from(rows, {static_cast<int64_t>(rows.size()) / r, r});
  return {index(self, {positions})};
}
// The result is (longest, batch, …), or (batch, longest, …).
TAPER_DECOMPOSITION(pad_sequence) {
  const std::vector<Tensor> sequences = a.tensors<"sequences">();
  const bool pads_left = a.text<"padding_side">() == "left";
  if (sequences.empty() || (!pads_left && a.text<"padding_side">() != "right"))
    throw EagerError("pad_sequence: needs at least one tensor, and padding_side left or right");
  Dim longest = 0;
  for (const Tensor& t : sequences) {
    if (t.rank() == 0 || t.rank() != sequences[0].rank())
      throw EagerError(
          "pad_sequence: the tensors must have equal sizes but for the first, "
          "got " +
          to_string(t.sizes()) + " and " + to_string(sequences[0].sizes()));
    longest = max(longest, t.size(0));
  }
  std::vector<Tensor> rows;
  for (const Tensor& t : sequences) {
    Dims pad(2 * static_cast<size_t>(t.rank()), Dim(0));  // begins with the last dimension
    pad[pad.size() - (pads_left ? 2 : 1)] = longest - t.size(0);
    rows.push_back(constant_pad_nd(t, pad, a.real<"padding_value">()));
  }
  return {stack(rows, a.boolean<"batch_first">() ? 0 : 1)};
}
TAPER_DECOMPOSITION(sum_to_size) {
  const Tensor self = a.tensor<"self">();
  const Dims size = a.dims<"size">();
  const auto rank = static_cast<size_t>(self.rank());
  if (size.empty()) return {sum(self, Ints{})};
  if (size.size() > rank)
    throw EagerError("sum_to_size: " + to_string(self.sizes()) + " does not sum to " +
                     to_string(size));
  const size_t lead = rank - size.size();
  Ints dims;
  for (size_t i = 0; i < rank; ++i) {
    const Dim from = self.size(static_cast<int64_t>(i));
    const bool sums = i < lead || (proves_equal(size[i - lead], Dim(1)) && !same(from, Dim(1)));
    if (sums) dims.push_back(static_cast<int64_t>(i));
    if (!sums && proves_different(from, size[i - lead]))
      throw EagerError("sum_to_size: " + to_string(self.sizes()) + " does not sum to " +
                       to_string(size));
  }
  if (dims.empty()) return {self};
  return {view(sum(self, dims, true), size)};
}
TAPER_DECOMPOSITION(meshgrid) { return meshgrid(a.tensors<"tensors">()); }

namespace {

/// The powers 0 … count - 1 of x, in a new last dimension. Each is the one before times x.
Tensor powers_of(const Tensor& x, const Dim& count) {
  const Tensor column = unsqueeze(x, -1), one = ones_like(column);
  if (proves_equal(count, Dim(0))) return narrow(cumprod(one, -1), -1, 0, 0);
  Dims sizes = column.sizes();
  sizes.back() = count - Dim(1);
  return cat({cumprod(one, -1), cumprod(expand(column, sizes), -1)}, -1);
}

}  // namespace

TAPER_DECOMPOSITION(vander) {
  const Tensor x = a.tensor<"x">();
  if (x.rank() != 1) throw EagerError("vander: needs a vector, not " + to_string(x.sizes()));
  const Tensor powers = powers_of(x, a.has<"N">() ? Dim(a.integer<"N">()) : x.size(0));
  return {a.boolean<"increasing">() ? powers : flip(powers, {1})};
}
TAPER_DECOMPOSITION(linalg_vander) {
  const Tensor x = a.tensor<"x">();
  if (x.rank() == 0 && !a.has<"N">())
    throw EagerError("linalg_vander: N must be given for x without dimensions");
  return {powers_of(with_rank(1, x), a.has<"N">() ? a.dim<"N">() : x.size(-1))};
}

}  // namespace taper::eager::decompositions
