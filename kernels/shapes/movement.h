// Rules of copies, casts, joins, padding and writes into a part of a tensor.
#pragma once
#include "taper/kernels/shapes/view.h"

namespace taper {
namespace internal {

/// A write into the part of `self` that `part` describes. `src` has the part's sizes, or is
/// expanded to them.
template <class D>
bool scatter_shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& src,
                   const TensorType<D>& part, TensorType<D>& out) {
  out.like(self);
  if (!facts.require(src.dtype == self.dtype, TAPER_TEXT("src and self have different dtypes")) ||
      !facts.require(src.rank == part.rank,
                     TAPER_TEXT("src has {} dimensions, the part of self has {}"), src.rank,
                     part.rank))
    return false;
  for (int i = 0; i < part.rank; ++i)
    if (!facts.equal(src[i], part[i],
                     TAPER_TEXT("src has size {} where the part of self has {} (dimension {})"),
                     D(i)))
      return false;
  return true;
}
/// The layout of `self` in the result: dense, from element 0.
template <class D>
TensorType<D> dense_type(Facts<D>& facts, const TensorType<D>& self) {
  TensorType<D> dense;
  dense.like(self);
  set_dense_strides(facts, dense);
  return dense;
}

}  // namespace internal

template <>
struct Rule<ops::clone> {
  template <class D>
  static bool shape(Facts<D>&, const TensorType<D>& self, TensorType<D>& out) {
    out.like(self);
    return true;
  }
};
template <>
struct Rule<ops::_to_copy> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Maybe<DType> dtype,
                    TensorType<D>& out) {
    out.like(self, dtype ? *dtype : self.dtype);
    return internal::is_castable(facts, self.dtype, out.dtype);
  }
};
/// `src`, expanded and cast to the sizes and dtype of `self`.
template <>
struct Rule<ops::copy> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& src,
                    TensorType<D>& out) {
    out.like(self);
    return internal::is_castable(facts, src.dtype, self.dtype) &&
           internal::expands_to(facts, src, self);
  }
};
/// Tensors of shape (0,) are skipped, as in PyTorch.
template <>
struct Rule<ops::cat> {
  static constexpr Promotion promotion = Promotion::common;
  template <class D>
  static bool shape(Facts<D>& facts, TypeList<D> tensors, int64_t dim, TensorType<D>& out) {
    if (!facts.require(tensors.count > 0, TAPER_TEXT("needs at least one tensor"))) return false;
    bool first = true;
    for (index_t i = 0; i < tensors.count; ++i) {
      const TensorType<D> t = tensors[i];
      if (!facts.require(t.dtype == tensors[0].dtype,
                         TAPER_TEXT("tensor {} has another dtype than the first"), i))
        return false;
      if (t.rank == 1 && facts.proves_equal(t[0], D(0)) && (tensors.count > 1 || dim != 0))
        continue;
      if (!facts.require(t.rank > 0, TAPER_TEXT("tensor {} has no dimensions; use stack"), i))
        return false;
      if (first) {
        if (!normalize_dim(facts, dim, t.rank)) return false;
        out.like(t);
        first = false;
        continue;
      }
      if (!facts.require(t.rank == out.rank,
                         TAPER_TEXT("tensor {} has {} dimensions, the first has {}"), i, t.rank,
                         out.rank))
        return false;
      for (int k = 0; k < t.rank; ++k)
        if (k != dim &&
            !facts.equal(
                t[k], out[k],
                TAPER_TEXT("size {} of tensor {} differs from that of the first: only dim may"),
                D(i)))
          return false;
      out.sizes[dim] = out.sizes[dim] + t.sizes[dim];
    }
    if (!first) return true;
    out.dtype = tensors[0].dtype, out.rank = 1, out.sizes[0] = D(0);
    return normalize_dim(facts, dim, 1);
  }
};
template <>
struct Rule<ops::repeat> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> repeats,
                    TensorType<D>& out) {
    const int missing = static_cast<int>(repeats.size()) - self.rank;
    if (!facts.require(missing >= 0,
                       TAPER_TEXT("repeats has {} elements, fewer than self's {} dimensions"),
                       repeats.size(), self.rank) ||
        !facts.require(repeats.size() <= max_rank,
                       TAPER_TEXT("{} dimensions are more than the {} that a tensor may have"),
                       repeats.size(), max_rank))
      return false;
    out.dtype = self.dtype, out.rank = static_cast<int>(repeats.size());
    for (int i = 0; i < out.rank; ++i) {
      if (!facts.at_least(repeats[i], D(0), TAPER_TEXT("repeats must be 0 or more, got {}")))
        return false;
      const D once = i < missing ? D(1) : self.sizes[i - missing];
      out.sizes[i] = once * repeats[i];
      if (!facts.require(!facts.proves_less(out.sizes[i], D(0)),
                         TAPER_TEXT("repeats {} of size {} makes a size of more than 2^63"),
                         repeats[i], once))
        return false;
    }
    return true;
  }
};
template <>
struct Rule<ops::flip> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, Span<const int64_t> dims,
                    TensorType<D>& out) {
    out.like(self);
    uint32_t seen = 0;
    for (int64_t dim : dims) {
      if (!normalize_dim(facts, dim, self.rank) ||
          !facts.require((seen >> dim & 1) == 0, TAPER_TEXT("dim {} appears twice"), dim))
        return false;
      seen |= 1u << dim;
    }
    return true;
  }
};
template <>
struct Rule<ops::roll> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> shifts,
                    Span<const int64_t> dims, TensorType<D>& out) {
    out.like(self);
    const index_t wanted = dims.empty() ? 1 : dims.size();
    if (!facts.require(shifts.size() == wanted, TAPER_TEXT("{} shifts for {} dims"), shifts.size(),
                       wanted))
      return false;
    for (int64_t dim : dims)
      if (!normalize_dim(facts, dim, self.rank)) return false;
    return true;
  }
};
/// Pairs (before, after) from the last dimension on; negative ones crop.
template <>
struct Rule<ops::constant_pad_nd> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, DimList<D> pad, Scalar,
                    TensorType<D>& out) {
    out.like(self);
    if (!internal::takes_numbers(facts, self.dtype) ||
        !facts.require(pad.size() % 2 == 0,
                       TAPER_TEXT("pad must have two elements a dimension, it has {}"),
                       pad.size()) ||
        !facts.require(pad.size() / 2 <= self.rank,
                       TAPER_TEXT("pad has {} pairs, self only {} dimensions"), pad.size() / 2,
                       self.rank))
      return false;
    for (index_t k = 0; k < pad.size() / 2; ++k) {
      D& size = out.sizes[self.rank - 1 - k];
      const D before = size;
      size = before + pad[2 * k] + pad[2 * k + 1];
      if (!facts.require(
              !facts.proves_less(size, D(0)),
              TAPER_TEXT("pad ({}, {}) makes of size {} a negative one, or one beyond 2^63"),
              pad[2 * k], pad[2 * k + 1], before) ||
          !facts.at_least(size, D(0), TAPER_TEXT("padding makes a size of {}")))
        return false;
    }
    return true;
  }
};

namespace internal {
struct TriangleRule {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, D, TensorType<D>& out) {
    out.like(self);
    return facts.require(self.rank >= 2,
                         TAPER_TEXT("needs at least 2 dimensions, the tensor has {}"), self.rank);
  }
};
}  // namespace internal
template <>
struct Rule<ops::tril> : internal::TriangleRule {};
template <>
struct Rule<ops::triu> : internal::TriangleRule {};

template <>
struct Rule<ops::slice_scatter> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& src,
                    int64_t dim, Maybe<D> start, Maybe<D> end, D step, TensorType<D>& out) {
    TensorType<D> part;
    return internal::slice_layout(facts, internal::dense_type(facts, self), dim, start, end, step,
                                  part) &&
           internal::scatter_shape(facts, self, src, part, out);
  }
};
template <>
struct Rule<ops::select_scatter> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& src,
                    int64_t dim, D index, TensorType<D>& out) {
    TensorType<D> part;
    return internal::select_layout(facts, internal::dense_type(facts, self), dim, index, part) &&
           internal::scatter_shape(facts, self, src, part, out);
  }
};
template <>
struct Rule<ops::diagonal_scatter> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& src,
                    int64_t offset, int64_t dim1, int64_t dim2, TensorType<D>& out) {
    TensorType<D> part;
    return internal::diagonal_layout(facts, internal::dense_type(facts, self), offset, dim1, dim2,
                                     part) &&
           internal::scatter_shape(facts, self, src, part, out);
  }
};
/// Sizes, strides and offset refer to the result, which is dense whatever the strides of `self`
/// are.
template <>
struct Rule<ops::as_strided_scatter> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& src,
                    DimList<D> size, DimList<D> stride, Maybe<D> storage_offset,
                    TensorType<D>& out) {
    const Maybe<D> offset{storage_offset ? *storage_offset : D(0), true};
    TensorType<D> part;
    if (!Rule<ops::as_strided>::shape(facts, self, size, stride, offset, part) ||
        !internal::scatter_shape(facts, self, src, part, out))
      return false;
    D end = part.offset + D(1);
    for (int i = 0; i < part.rank; ++i)
      end = end + facts.max(part.sizes[i] - D(1), D(0)) * part.strides[i];
    return facts.at_least(self.numel(), end,
                          TAPER_TEXT("self has {} elements, the part reaches to {}"));
  }
};

}  // namespace taper
