// Rules of operators that take indices as data: embedding, gather and scatter, advanced indexing.
// Also sorting, which makes indices. Only the kernel can see whether an index lies inside its
// dimension.
#pragma once
#include "taper/kernels/rule.h"
#include "taper/kernels/shapes/broadcast.h"
#include "taper/kernels/shapes/checks.h"

namespace taper {

template <>
struct Rule<ops::embedding> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& weight, const TensorType<D>& indices, D,
                    bool, bool, TensorType<D>& out) {
    if (!facts.require(weight.rank == 2,
                       TAPER_TEXT("weight must have 2 dimensions (words, features), it has {}"),
                       weight.rank) ||
        !facts.require(internal::is_index(indices.dtype),
                       TAPER_TEXT("indices must be i64 or i32")) ||
        !facts.require(indices.rank < max_rank,
                       TAPER_TEXT("indices have {} dimensions, at most {} are possible"),
                       indices.rank, max_rank - 1))
      return false;
    out.like(indices, weight.dtype);
    out.sizes[out.rank++] = weight[1];
    return true;
  }
};

template <>
struct Rule<ops::embedding_dense_backward> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& grad_output, const TensorType<D>& indices,
                    D num_weights, D, bool, TensorType<D>& out) {
    if (!facts.require(is_floating(grad_output.dtype),
                       TAPER_TEXT("grad_output must have a floating dtype")) ||
        !facts.require(internal::is_index(indices.dtype),
                       TAPER_TEXT("indices must be i64 or i32")) ||
        !facts.require(
            grad_output.rank == indices.rank + 1,
            TAPER_TEXT("grad_output has {} dimensions, it must have one more than indices: {}"),
            grad_output.rank, indices.rank + 1) ||
        !facts.at_least(num_weights, D(0), TAPER_TEXT("num_weights must not be negative, got {}")))
      return false;
    for (int i = 0; i < indices.rank; ++i)
      if (!facts.equal(grad_output[i], indices[i],
                       TAPER_TEXT("grad_output has extent {} where indices have {}")))
        return false;
    out.dtype = grad_output.dtype, out.rank = 2;
    out.sizes[0] = num_weights, out.sizes[1] = grad_output[grad_output.rank - 1];
    return true;
  }
};

/// Results: a row for each bag; the bag of each index; the number of indices of each bag; and these
/// numbers again, in place of the positions of maxima. Only the kernel can see whether offsets
/// ascend.
template <>
struct Rule<ops::_embedding_bag> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& weight, const TensorType<D>& indices,
                    const TensorType<D>& offsets, bool, int64_t mode, bool,
                    const TensorType<D>* per_sample_weights, bool include_last_offset, D,
                    TensorType<D>& out, TensorType<D>& bag, TensorType<D>& sizes,
                    TensorType<D>& maxima) {
    if (!facts.require(weight.rank == 2,
                       TAPER_TEXT("weight must have 2 dimensions (words, features), it has {}"),
                       weight.rank) ||
        !facts.require(is_floating(weight.dtype),
                       TAPER_TEXT("weight must have a floating dtype")) ||
        !facts.require(internal::is_index(indices.dtype) && internal::is_index(offsets.dtype),
                       TAPER_TEXT("indices and offsets must be i64 or i32")) ||
        !facts.require(indices.rank == 1 && offsets.rank == 1,
                       TAPER_TEXT("indices and offsets must be vectors, they have {} and {} "
                                  "dimensions"),
                       indices.rank, offsets.rank) ||
        !facts.require(mode >= 0 && mode <= 2,
                       TAPER_TEXT("mode must be 0 (sum), 1 (mean) or 2 (max), not {}"), mode))
      return false;
    if (per_sample_weights != nullptr &&
        (!facts.require(mode == 0, TAPER_TEXT("per_sample_weights need mode 0 (sum)")) ||
         !facts.require(per_sample_weights->dtype == weight.dtype,
                        TAPER_TEXT("per_sample_weights must have the dtype of weight")) ||
         !facts.require(per_sample_weights->rank == 1,
                        TAPER_TEXT("per_sample_weights must be a vector, they have {} dimensions"),
                        per_sample_weights->rank) ||
         !facts.equal((*per_sample_weights)[0], indices[0],
                      TAPER_TEXT("there are {} per_sample_weights and {} indices"))))
      return false;
    if (include_last_offset &&
        !facts.at_least(offsets[0], D(1), TAPER_TEXT("include_last_offset needs an offset")))
      return false;
    out.dtype = weight.dtype, out.rank = 2;
    out.sizes[0] = include_last_offset ? offsets[0] - D(1) : offsets[0], out.sizes[1] = weight[1];
    bag.dtype = sizes.dtype = maxima.dtype = DType::i64;
    bag.rank = sizes.rank = maxima.rank = 1;
    bag.sizes[0] = indices[0], sizes.sizes[0] = maxima.sizes[0] = out.sizes[0];
    return true;
  }
};

namespace internal {

/// The extent of dimension i. A 0-dim tensor counts as one element along one dimension.
template <class D>
D extent_of(const TensorType<D>& t, int i) {
  return t.rank == 0 ? D(1) : t[i];
}
inline int at_least_one(int rank) { return rank > 0 ? rank : 1; }

/// Requires that index has self's rank and, outside `dim`, no larger extent than self. An index
/// without elements fits every self.
template <class D>
bool check_index_along(Facts<D>& facts, const TensorType<D>& self, int64_t& dim,
                       const TensorType<D>& index) {
  if (!normalize_dim(facts, dim, self.rank) ||
      !facts.require(is_index(index.dtype), TAPER_TEXT("index must be i64 or i32")))
    return false;
  if (facts.proves_equal(index.numel(), D(0))) return true;
  if (!facts.require(at_least_one(index.rank) == at_least_one(self.rank),
                     TAPER_TEXT("index has {} dimensions, self {}"), index.rank, self.rank))
    return false;
  for (int i = 0; i < self.rank; ++i)
    if (i != dim && !facts.at_least(extent_of(self, i), extent_of(index, i),
                                    TAPER_TEXT("self has extent {} where index has {}")))
      return false;
  return true;
}

/// Requires of the source of a scatter that it has self's dtype and no smaller extent than index.
template <class D>
bool check_source(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& index,
                  const TensorType<D>& src) {
  if (!facts.require(src.dtype == self.dtype, TAPER_TEXT("src must have the dtype of self")))
    return false;
  if (facts.proves_equal(index.numel(), D(0))) return true;
  if (!facts.require(at_least_one(src.rank) == at_least_one(index.rank),
                     TAPER_TEXT("src has {} dimensions, index {}"), src.rank, index.rank))
    return false;
  for (int i = 0; i < index.rank; ++i)
    if (!facts.at_least(extent_of(src, i), index[i],
                        TAPER_TEXT("src has extent {} where index has {}")))
      return false;
  return true;
}

/// Requires that `index` is a vector of slices along `dim`, or one slice.
template <class D>
bool check_slice_index(Facts<D>& facts, const TensorType<D>& self, int64_t& dim,
                       const TensorType<D>& index) {
  return normalize_dim(facts, dim, self.rank) &&
         facts.require(is_index(index.dtype), TAPER_TEXT("index must be i64 or i32")) &&
         facts.require(index.rank <= 1,
                       TAPER_TEXT("index must have at most 1 dimension, it has {}"), index.rank);
}

struct ScatterSourceRule {
  static constexpr Promotion promotion = Promotion::index;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                    const TensorType<D>& index, const TensorType<D>& src, TensorType<D>& out) {
    out.like(self);
    return check_index_along(facts, self, dim, index) && check_source(facts, self, index, src);
  }
};

}  // namespace internal

template <>
struct Rule<ops::gather> {
  static constexpr Promotion promotion = Promotion::index;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                    const TensorType<D>& index, bool, TensorType<D>& out) {
    out.like(index, self.dtype);
    return internal::check_index_along(facts, self, dim, index);
  }
};

template <>
struct Rule<ops::scatter_src> : internal::ScatterSourceRule {};
template <>
struct Rule<ops::scatter_add> : internal::ScatterSourceRule {};

template <>
struct Rule<ops::scatter_value> {
  static constexpr Promotion promotion = Promotion::index;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                    const TensorType<D>& index, Scalar, TensorType<D>& out) {
    out.like(self);
    return internal::takes_numbers(facts, self.dtype) &&
           internal::check_index_along(facts, self, dim, index);
  }
};

template <>
struct Rule<ops::index_select> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                    const TensorType<D>& index, TensorType<D>& out) {
    if (!internal::check_slice_index(facts, self, dim, index)) return false;
    out.like(self);
    if (self.rank > 0) out.sizes[dim] = internal::extent_of(index, 0);
    return self.rank > 0 ||
           facts.equal(index.numel(), D(1), TAPER_TEXT("a scalar takes one index, not {}"));
  }
};

namespace internal {

/// Requires that `source` has a slice for each index, with the sizes of a slice of self.
template <class D>
bool slices_shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                  const TensorType<D>& index, const TensorType<D>& source, TensorType<D>& out) {
  if (!check_slice_index(facts, self, dim, index) ||
      !facts.require(source.dtype == self.dtype,
                     TAPER_TEXT("source must have the dtype of self")) ||
      !facts.require(at_least_one(source.rank) == at_least_one(self.rank),
                     TAPER_TEXT("source has {} dimensions, self {}"), source.rank, self.rank) ||
      !facts.equal(extent_of(source, static_cast<int>(dim)), extent_of(index, 0),
                   TAPER_TEXT("source has extent {} along dim, index has {} elements")))
    return false;
  for (int i = 0; i < self.rank; ++i)
    if (i != dim &&
        !facts.equal(source[i], self[i], TAPER_TEXT("source has extent {} where self has {}")))
      return false;
  out.like(self);
  return true;
}

}  // namespace internal

template <>
struct Rule<ops::index_add> {
  static constexpr Promotion promotion = Promotion::index;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                    const TensorType<D>& index, const TensorType<D>& source, Scalar,
                    TensorType<D>& out) {
    return internal::slices_shape(facts, self, dim, index, source, out);
  }
};
template <>
struct Rule<ops::index_copy> {
  static constexpr Promotion promotion = Promotion::index;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                    const TensorType<D>& index, const TensorType<D>& source, TensorType<D>& out) {
    return internal::slices_shape(facts, self, dim, index, source, out);
  }
};
template <>
struct Rule<ops::index_fill_int_Scalar> {
  static constexpr Promotion promotion = Promotion::index;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                    const TensorType<D>& index, Scalar, TensorType<D>& out) {
    out.like(self);
    return internal::takes_numbers(facts, self.dtype) &&
           internal::check_slice_index(facts, self, dim, index);
  }
};
template <>
struct Rule<ops::index_reduce> {
  static constexpr Promotion promotion = Promotion::index;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                    const TensorType<D>& index, const TensorType<D>& source,
                    std::string_view reduce, bool, TensorType<D>& out) {
    return facts.require(
               reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
               TAPER_TEXT("reduce must be prod, mean, amax or amin")) &&
           internal::slices_shape(facts, self, dim, index, source, out);
  }
};
template <>
struct Rule<ops::scatter_reduce_two> {
  static constexpr Promotion promotion = Promotion::index;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim,
                    const TensorType<D>& index, const TensorType<D>& src, std::string_view reduce,
                    bool, TensorType<D>& out) {
    return facts.require(reduce == "sum" || reduce == "prod" || reduce == "mean" ||
                             reduce == "amax" || reduce == "amin",
                         TAPER_TEXT("reduce must be sum, prod, mean, amax or amin")) &&
           internal::ScatterSourceRule::shape(facts, self, dim, index, src, out);
  }
};

/// self and mask are broadcast together. Only the kernel can see how many elements of source that
/// takes.
template <>
struct Rule<ops::masked_scatter> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& mask,
                    const TensorType<D>& source, TensorType<D>& out) {
    out.dtype = self.dtype;
    return facts.require(mask.dtype == DType::boolean, TAPER_TEXT("mask must be a bool tensor")) &&
           facts.require(source.dtype == self.dtype,
                         TAPER_TEXT("source must have the dtype of self")) &&
           internal::broadcast(facts, out, self, mask);
  }
};

template <>
struct Rule<ops::taper_nonzero> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, D count, TensorType<D>& out) {
    out.dtype = DType::i64, out.rank = 2;
    out.sizes[0] = count, out.sizes[1] = D(self.rank);
    return facts.require(self.dtype == DType::boolean, TAPER_TEXT("self must be a bool tensor")) &&
           facts.at_least(count, D(0), TAPER_TEXT("count {} is less than {}")) &&
           facts.at_least(self.numel(), count,
                          TAPER_TEXT("self has {} elements, of which {} cannot be true"));
  }
};
/// The first `size` positions. Kernels take bool; other dtypes are compared with 0 first.
template <>
struct Rule<ops::nonzero_static> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, D size, int64_t,
                    TensorType<D>& out) {
    out.dtype = DType::i64, out.rank = 2;
    out.sizes[0] = size, out.sizes[1] = D(self.rank);
    return facts.at_least(size, D(0), TAPER_TEXT("size {} is less than {}"));
  }
};

namespace internal {

/// The positions of `self` in lines of `sorted`: one line for all, or one for each line of self.
template <class D>
bool search_shape(Facts<D>& facts, const TensorType<D>& sorted, const TensorType<D>& self,
                  bool out_int32, TensorType<D>& out) {
  if (!facts.require(sorted.dtype == self.dtype,
                     TAPER_TEXT("the sorted values must have the dtype of self")))
    return false;
  if (sorted.rank != 1) {
    if (!facts.require(sorted.rank == self.rank && sorted.rank > 0,
                       TAPER_TEXT("the sorted values have {} dimensions: 1, or those of self, {}, "
                                  "are possible"),
                       sorted.rank, self.rank))
      return false;
    for (int i = 0; i + 1 < self.rank; ++i)
      if (!facts.equal(sorted[i], self[i],
                       TAPER_TEXT("the sorted values have extent {} where self has {}")))
        return false;
  }
  out.like(self, out_int32 ? DType::i32 : DType::i64);
  return true;
}

}  // namespace internal

template <>
struct Rule<ops::searchsorted_Tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& sorted, const TensorType<D>& self,
                    bool out_int32, bool right, Maybe<std::string_view> side,
                    const TensorType<D>* sorter, TensorType<D>& out) {
    if (!facts.require(!side || *side == "left" || *side == "right",
                       TAPER_TEXT("side must be left or right")) ||
        !facts.require(!side || !right || *side == "right",
                       TAPER_TEXT("side is left, and right is true")))
      return false;
    if (sorter != nullptr &&
        (!facts.require(sorter->dtype == DType::i64, TAPER_TEXT("sorter must be i64")) ||
         !internal::same_sizes(facts, *sorter, sorted,
                               TAPER_TEXT("sorter has {} dimensions, the sorted values {}"),
                               TAPER_TEXT("sorter has extent {} where the sorted values have {}"))))
      return false;
    return internal::search_shape(facts, sorted, self, out_int32, out);
  }
};
template <>
struct Rule<ops::bucketize_Tensor> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, const TensorType<D>& boundaries,
                    bool out_int32, bool, TensorType<D>& out) {
    return facts.require(boundaries.rank == 1,
                         TAPER_TEXT("boundaries must have 1 dimension, they have {}"),
                         boundaries.rank) &&
           internal::search_shape(facts, boundaries, self, out_int32, out);
  }
};

/// Where the dimensions of `self[indices]` come from. `self` splits into (before, indexed, after)
/// when the indexed dimensions are neighbours; otherwise PyTorch moves the dimensions of the
/// indices to the front.
template <class D>
struct Indexed {
  TensorType<D> shape;  ///< of the indices together, broadcast
  bool indexed[max_rank] = {};
  int first = 0;  ///< where the indices' dimensions stand in the result
};

namespace internal {

template <class D>
bool read_indices(Facts<D>& facts, const TensorType<D>& self, const TypeList<D>& indices,
                  Indexed<D>& result) {
  if (!facts.require(indices.count <= self.rank,
                     TAPER_TEXT("{} indices are too many for {} dimensions"), indices.count,
                     self.rank))
    return false;
  result.shape.rank = 0;
  bool any = false, adjacent = true;
  int last = -1;
  for (int i = 0; i < indices.count; ++i) {
    const TensorType<D> index = indices[i];
    if (!index.present) continue;
    if (!facts.require(
            index.dtype == DType::i64,
            TAPER_TEXT("index {} must be i64 (the number of elements that a bool mask selects is "
                       "known only at run time)"),
            i))
      return false;
    if (!any)
      result.first = i;
    else
      adjacent = adjacent && last == i - 1;
    any = true, last = i, result.indexed[i] = true;
    // Broadcast from the last dimension on.
    TensorType<D> both;
    both.rank = index.rank > result.shape.rank ? index.rank : result.shape.rank;
    for (int k = 1; k <= both.rank; ++k) {
      const D a = k <= result.shape.rank ? result.shape[result.shape.rank - k] : D(1);
      const D b = k <= index.rank ? index[index.rank - k] : D(1);
      const bool a_one = facts.is_one(a);
      both.sizes[both.rank - k] = a_one ? b : a;
      if (!a_one && !facts.is_one(b) &&
          !facts.equal(a, b, TAPER_TEXT("the indices' extents {} and {} do not broadcast")))
        return false;
    }
    result.shape = both;
  }
  if (!adjacent) result.first = 0;
  return facts.require(any, TAPER_TEXT("needs at least one index"));
}

template <class D>
bool indexed_shape(Facts<D>& facts, const TensorType<D>& self, const TypeList<D>& indices,
                   TensorType<D>& out) {
  Indexed<D> where;
  if (!read_indices(facts, self, indices, where)) return false;
  int rank = where.shape.rank;
  for (int i = 0; i < self.rank; ++i) rank += !where.indexed[i];
  if (!facts.require(rank <= max_rank,
                     TAPER_TEXT("the result would have {} dimensions, at most {} are possible"),
                     rank, max_rank))
    return false;
  out.dtype = self.dtype, out.rank = 0;
  const auto put_indices = [&] {
    for (int k = 0; k < where.shape.rank; ++k) out.sizes[out.rank++] = where.shape[k];
  };
  int kept = 0;
  for (int i = 0; i < self.rank; ++i) {
    if (where.indexed[i]) continue;
    if (kept++ == where.first) put_indices();
    out.sizes[out.rank++] = self[i];
  }
  if (kept <= where.first) put_indices();
  return true;
}

}  // namespace internal

template <>
struct Rule<ops::index_Tensor> {
  static constexpr Promotion promotion = Promotion::indices;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TypeList<D> indices,
                    TensorType<D>& out) {
    return internal::indexed_shape(facts, self, indices, out);
  }
};

template <>
struct Rule<ops::index_put> {
  static constexpr Promotion promotion = Promotion::indices;
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, TypeList<D> indices,
                    const TensorType<D>& values, bool, TensorType<D>& out) {
    TensorType<D> target;
    if (!internal::indexed_shape(facts, self, indices, target) ||
        !facts.require(values.dtype == self.dtype,
                       TAPER_TEXT("values must have the dtype of self")))
      return false;
    // values broadcast to self[indices]; leading ones beyond its rank are allowed
    for (int k = 1; k <= values.rank; ++k) {
      const D extent = values[values.rank - k];
      if (facts.is_one(extent)) continue;
      if (!facts.require(k <= target.rank,
                         TAPER_TEXT("values have {} dimensions, self[indices] {}"), values.rank,
                         target.rank) ||
          !facts.equal(extent, target[target.rank - k],
                       TAPER_TEXT("values have extent {} where self[indices] has {}")))
        return false;
    }
    out.like(self);
    return true;
  }
};

template <>
struct Rule<ops::sort> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, int64_t dim, bool,
                    TensorType<D>& values, TensorType<D>& indices) {
    values.like(self);
    indices.like(self, DType::i64);
    return normalize_dim(facts, dim, self.rank);
  }
};

template <>
struct Rule<ops::topk> {
  template <class D>
  static bool shape(Facts<D>& facts, const TensorType<D>& self, D k, int64_t dim, bool, bool,
                    TensorType<D>& values, TensorType<D>& indices) {
    if (!normalize_dim(facts, dim, self.rank) ||
        !facts.at_least(k, D(0), TAPER_TEXT("k must not be negative, got {}")) ||
        !facts.at_least(internal::extent_of(self, static_cast<int>(dim)), k,
                        TAPER_TEXT("the dimension has only {} elements, k is {}")))
      return false;
    values.like(self);
    if (self.rank > 0) values.sizes[dim] = k;
    indices.like(values, DType::i64);
    return true;
  }
};

}  // namespace taper
