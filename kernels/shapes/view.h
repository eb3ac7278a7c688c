// Layout rules. A view reads its argument's storage with other strides and computes nothing. Each
// rule sets the sizes, the strides and the offset of the first element in the storage.
#pragma once
#include "taper/kernels/shapes/broadcast.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {
namespace internal {

template <class D>
void set_dense_strides(Facts<D>& facts, TensorType<D>& t) {
  D stride(1);
  for (int i = t.rank - 1; i >= 0; --i)
    t.strides[i] = stride, stride = stride * facts.max(t.sizes[i], D(1));
}
template <class D>
bool is_known_dense(Facts<D>& facts, const TensorType<D>& t) {
  D stride(1);
  for (int i = t.rank - 1; i >= 0; --i) {
    if (!facts.is_one(t.sizes[i]) && !facts.proves_equal(t.strides[i], stride)) return false;
    stride = stride * t.sizes[i];
  }
  return true;
}
template <class D>
void copy_dim(const TensorType<D>& from, int i, TensorType<D>& to, int k) {
  to.sizes[k] = from.sizes[i], to.strides[k] = from.strides[i];
}

/// Sizes of `out` from a list. One of them may be -1: it follows from the number of elements.
template <class D>
bool infer_sizes(Facts<D>& facts, const TensorType<D>& self, const DimList<D>& sizes,
                 TensorType<D>& out) {
  if (!has_possible_rank(facts, sizes)) return false;
  out.dtype = self.dtype, out.rank = static_cast<int>(sizes.size());
  int inferred = -1;
  for (int i = 0; i < out.rank; ++i) {
    out.sizes[i] = sizes[i];
    if (!facts.proves_equal(sizes[i], D(-1))) continue;
    if (!facts.require(inferred < 0, TAPER_TEXT("only one size may be -1"))) return false;
    inferred = i;
  }
  for (int i = 0; i < out.rank; ++i)
    if (i != inferred && !facts.at_least(out.sizes[i], D(0), TAPER_TEXT("size {} is negative")))
      return false;
  if (inferred < 0)
    return facts.equal(out.numel(), self.numel(),
                       TAPER_TEXT("the new sizes hold {} elements, the tensor has {}"));
  // Equal extents on both sides cancel, so that symbols need no division.
  bool used[max_rank] = {};
  D known(1), rest(1);
  for (int i = 0; i < out.rank; ++i) {
    if (i == inferred) continue;
    int k = 0;
    while (k < self.rank && (used[k] || !facts.proves_equal(self.sizes[k], out.sizes[i]) ||
                             facts.proves_equal(out.sizes[i], D(0))))
      ++k;
    if (k < self.rank)
      used[k] = true;
    else
      known = known * out.sizes[i];
  }
  for (int k = 0; k < self.rank; ++k)
    if (!used[k]) rest = rest * self.sizes[k];
  if (!facts.at_least(known, D(1), TAPER_TEXT("size -1 cannot be inferred beside a size of {}")))
    return false;
  out.sizes[inferred] = rest / known;
  return facts.equal(out.sizes[inferred] * known, rest,
                     TAPER_TEXT("the new sizes hold {} elements, the tensor has {}"));
}

/// Strides of `out`, whose sizes are set, over the elements of `self` in row-major order; false if
/// there are none. Dimensions that lie one behind the other form a run. A new dimension must lie
/// within one run.
template <class D>
bool view_strides(Facts<D>& facts, const TensorType<D>& self, TensorType<D>& out) {
  out.offset = self.offset;
  if (is_known_dense(facts, self) || facts.proves_equal(self.numel(), D(0))) {
    set_dense_strides(facts, out);
    return true;
  }
  int k = out.rank - 1;
  for (int i = self.rank - 1; i >= 0;) {
    const D base = self.strides[i];
    D run = self.sizes[i--];
    while (i >= 0 &&
           (facts.is_one(self.sizes[i]) || facts.proves_equal(self.strides[i], run * base)))
      run = run * self.sizes[i--];
    D covered(1);
    while (k >= 0 && (facts.is_one(out.sizes[k]) || !facts.proves_equal(covered, run)))
      out.strides[k] = covered * base, covered = covered * out.sizes[k--];
    if (!facts.proves_equal(covered, run)) return false;
  }
  return k < 0;
}

/// A position, brought into [0, size]. A negative position counts from the end.
template <class D>
D clamp_position(Facts<D>& facts, D position, D size) {
  if (facts.proves_less(position, D(0))) position = position + size;
  return facts.max(facts.min(position, size), D(0));
}

/// The part of one dimension that `slice` names: `out` is self with another size, stride and offset
/// there.
template <class D>
bool slice_layout(Facts<D>& facts, const TensorType<D>& self, int64_t dim, const Maybe<D>& start,
                  const Maybe<D>& end, D step, TensorType<D>& out) {
  if (!facts.require(self.rank > 0, TAPER_TEXT("a tensor without dimensions cannot be sliced")))
    return false;
  if (!normalize_dim(facts, dim, self.rank) ||
      !facts.at_least(step, D(1), TAPER_TEXT("step {} is less than {}")))
    return false;
  out = self;
  const D size = self.sizes[dim];
  const D from = start ? clamp_position(facts, *start, size) : D(0);
  const D to = end ? clamp_position(facts, *end, size) : size;
  out.sizes[dim] = (facts.max(to - from, D(0)) + step - D(1)) / step;
  out.strides[dim] = self.strides[dim] * step;
  out.offset = self.offset + from * self.strides[dim];
  return true;
}

/// Slice `index` along one dimension.
template <class D>
bool select_layout(Facts<D>& facts, const TensorType<D>& self, int64_t dim, D index,
                   TensorType<D>& out) {
  if (!facts.require(self.rank > 0, TAPER_TEXT("a tensor without dimensions has no rows")) ||
      !normalize_dim(facts, dim, self.rank))
    return false;
  const D size = self.sizes[dim];
  const D row = facts.proves_less(index, D(0)) ? index + size : index;
  if (!facts.at_least(row, D(0), TAPER_TEXT("the index lies {} before the first row")) ||
      !facts.less(row, size, TAPER_TEXT("index {} is not below the size {}")))
    return false;
  out.dtype = self.dtype, out.rank = 0;
  for (int i = 0; i < self.rank; ++i)
    if (i != dim) copy_dim(self, i, out, out.rank++);
  out.offset = self.offset + row * self.strides[dim];
  return true;
}

template <class D>
bool diagonal_layout(Facts<D>& facts, const TensorType<D>& self, int64_t offset, int64_t dim1,
                     int64_t dim2, TensorType<D>& out) {
  if (!normalize_dim(facts, dim1, self.rank) || !normalize_dim(facts, dim2, self.rank) ||
      !facts.require(dim1 != dim2, TAPER_TEXT("dim1 and dim2 are both {}"), dim1))
    return false;
  out.dtype = self.dtype, out.rank = 0;
  for (int i = 0; i < self.rank; ++i)
    if (i != dim1 && i != dim2) copy_dim(self, i, out, out.rank++);
  const D rows = offset < 0 ? self.sizes[dim1] + D(offset) : self.sizes[dim1];
  const D columns = offset > 0 ? self.sizes[dim2] - D(offset) : self.sizes[dim2];
  out.sizes[out.rank] = facts.max(facts.min(rows, columns), D(0));
  out.strides[out.rank++] = self.strides[dim1] + self.strides[dim2];
  out.offset = self.offset;
  // a diagonal without elements stays where it is: its first element would lie outside
  if (!facts.proves_equal(out.sizes[out.rank - 1], D(0)))
    out.offset = self.offset +
                 (offset < 0 ? self.strides[dim1] * D(-offset) : self.strides[dim2] * D(offset));
  return true;
}

/// A view may have more elements than memory has, but their number must fit into 64 bits.
template <class D>
bool is_countable(Facts<D>& facts, const TensorType<D>& out) {
  return facts.at_least(out.numel(), D(0),
                        TAPER_TEXT("the sizes multiply to more elements than 64 bits count"));
}

}  // namespace internal

template <>
struct Rule<ops::view> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> size,
                    TensorType<D>& out) {
    return internal::infer_sizes(facts, self, size, out) &&
           facts.require(
               internal::view_strides(facts, self, out),
               TAPER_TEXT(
                   "the tensor's strides do not allow these sizes without a copy; use reshape"));
  }
};
template <>
struct Rule<ops::permute> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> dims,
                    TensorType<D>& out) {
    if (!facts.require(dims.size() == self.rank, TAPER_TEXT("{} dims for a tensor of rank {}"),
                       dims.size(), self.rank))
      return false;
    out.dtype = self.dtype, out.rank = self.rank, out.offset = self.offset;
    uint32_t seen = 0;
    for (int k = 0; k < self.rank; ++k) {
      int64_t dim = dims[k];
      if (!normalize_dim(facts, dim, self.rank) ||
          !facts.require((seen >> dim & 1) == 0, TAPER_TEXT("dim {} appears twice"), dim))
        return false;
      seen |= 1u << dim;
      internal::copy_dim(self, static_cast<int>(dim), out, k);
    }
    return true;
  }
};
template <>
struct Rule<ops::transpose_int> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim0, int64_t dim1,
                    TensorType<D>& out) {
    if (!normalize_dim(facts, dim0, self.rank) || !normalize_dim(facts, dim1, self.rank))
      return false;
    out = self;
    if (self.rank == 0) return true;
    internal::copy_dim(self, static_cast<int>(dim0), out, static_cast<int>(dim1));
    internal::copy_dim(self, static_cast<int>(dim1), out, static_cast<int>(dim0));
    return true;
  }
};
template <>
struct Rule<ops::expand> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> size, bool,
                    TensorType<D>& out) {
    const int missing = static_cast<int>(size.size()) - self.rank;
    if (!facts.require(missing >= 0, TAPER_TEXT("{} sizes for a tensor of rank {}"), size.size(),
                       self.rank) ||
        !internal::has_possible_rank(facts, size))
      return false;
    out.dtype = self.dtype, out.rank = static_cast<int>(size.size()), out.offset = self.offset;
    for (int i = 0; i < out.rank; ++i) {
      const bool is_new = i < missing;
      const bool keeps = facts.proves_equal(size[i], D(-1));
      if (!facts.require(!keeps || !is_new, TAPER_TEXT("size -1 at new dimension {}"), i))
        return false;
      if (is_new || (!keeps && facts.is_one(self.sizes[i - missing]) && !facts.is_one(size[i]))) {
        out.sizes[i] = size[i], out.strides[i] = D(0);
        if (!facts.at_least(size[i], D(0), TAPER_TEXT("size {} is negative"))) return false;
      } else {
        internal::copy_dim(self, i - missing, out, i);
        if (!keeps &&
            !facts.equal(
                size[i], self.sizes[i - missing],
                TAPER_TEXT("size {} for dimension of size {}: only a size of 1 can be expanded")))
          return false;
      }
    }
    return internal::is_countable(facts, out);
  }
};
template <>
struct Rule<ops::select_int> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, D index,
                    TensorType<D>& out) {
    return internal::select_layout(facts, self, dim, index, out);
  }
};
template <>
struct Rule<ops::slice_Tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, Maybe<D> start,
                    Maybe<D> end, D step, TensorType<D>& out) {
    return internal::slice_layout(facts, self, dim, start, end, step, out);
  }
};
template <>
struct Rule<ops::squeeze_dims> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> dims,
                    TensorType<D>& out) {
    uint32_t set = 0;
    for (int64_t dim : dims) {
      if (!normalize_dim(facts, dim, self.rank) ||
          !facts.require((set >> dim & 1) == 0, TAPER_TEXT("dim {} appears twice"), dim))
        return false;
      set |= 1u << dim;
    }
    out.dtype = self.dtype, out.rank = 0, out.offset = self.offset;
    for (int i = 0; i < self.rank; ++i)
      if ((set >> i & 1) == 0 || !facts.is_one(self.sizes[i]))
        internal::copy_dim(self, i, out, out.rank++);
    return true;
  }
};
template <>
struct Rule<ops::squeeze_dim> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, TensorType<D>& out) {
    return Rule<ops::squeeze_dims>::shape(facts, self, Span<const int64_t>(&dim, 1), out);
  }
};
template <>
struct Rule<ops::unsqueeze> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, TensorType<D>& out) {
    if (!facts.require(self.rank < max_rank, TAPER_TEXT("the tensor has {} dimensions already"),
                       self.rank) ||
        !normalize_dim(facts, dim, self.rank + 1))
      return false;
    out.dtype = self.dtype, out.rank = self.rank + 1, out.offset = self.offset;
    for (int i = 0; i < self.rank; ++i) internal::copy_dim(self, i, out, i + (i >= dim));
    out.sizes[dim] = D(1);
    out.strides[dim] = dim < self.rank ? self.sizes[dim] * self.strides[dim] : D(1);
    return true;
  }
};
template <>
struct Rule<ops::diagonal> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t offset, int64_t dim1,
                    int64_t dim2, TensorType<D>& out) {
    return internal::diagonal_layout(facts, self, offset, dim1, dim2, out);
  }
};
template <>
struct Rule<ops::alias> {
  template <class D>
  static bool shape(Facts<D>&, const TensorType<D>& self, TensorType<D>& out) {
    out = self;
    return true;
  }
};
/// The caller ensures that the elements lie inside the storage, which a rule does not know.
template <>
struct Rule<ops::as_strided> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> size, DimList<D> stride,
                    Maybe<D> storage_offset, TensorType<D>& out) {
    if (!facts.require(size.size() == stride.size(), TAPER_TEXT("{} sizes and {} strides"),
                       size.size(), stride.size()) ||
        !internal::has_possible_rank(facts, size))
      return false;
    out.dtype = self.dtype, out.rank = static_cast<int>(size.size()),
    out.offset = storage_offset ? *storage_offset : self.offset;
    for (int i = 0; i < out.rank; ++i) {
      out.sizes[i] = size[i], out.strides[i] = stride[i];
      if (!facts.at_least(size[i], D(0), TAPER_TEXT("size {} is negative")) ||
          !facts.at_least(stride[i], D(0), TAPER_TEXT("stride {} is negative")))
        return false;
    }
    return facts.at_least(out.offset, D(0), TAPER_TEXT("storage_offset {} is negative")) &&
           internal::is_countable(facts, out);
  }
};
template <>
struct Rule<ops::unfold> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, int64_t size,
                    int64_t step, TensorType<D>& out) {
    if (!normalize_dim(facts, dim, self.rank)) return false;
    const D extent = self.rank == 0 ? D(1) : self.sizes[dim];
    if (!facts.require(size >= 0, TAPER_TEXT("size {} is negative"), size) ||
        !facts.require(step > 0, TAPER_TEXT("step {} is not positive"), step) ||
        !facts.require(self.rank < max_rank, TAPER_TEXT("the tensor has {} dimensions already"),
                       self.rank) ||
        !facts.at_least(extent, D(size),
                        TAPER_TEXT("the dimension's size {} is less than the window's {}")))
      return false;
    out = self;
    out.sizes[self.rank] = D(size),
    out.strides[self.rank] = self.rank == 0 ? D(1) : self.strides[dim];
    out.rank = self.rank + 1;
    if (self.rank > 0)
      out.sizes[dim] = (extent - D(size)) / D(step) + D(1),
      out.strides[dim] = self.strides[dim] * D(step);
    return true;
  }
};

}  // namespace taper
