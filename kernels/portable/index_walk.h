// Walks indices along one dimension of a tensor, beside a second tensor with an element for each
// index. gather, scatter and the operators on slices share this.
#pragma once
#include <cstring>

#include "taper/kernels/portable/index_check.h"
#include "taper/kernels/portable/lines.h"

namespace taper::portable {

inline int normalized(int64_t dim, int rank) {
  return static_cast<int>(dim < 0 ? dim + (rank > 0 ? rank : 1) : dim);
}

/// Three offsets, or three strides: of the tensor that is indexed (target), of the tensor beside
/// the indices (source), and of the indices.
struct Offsets {
  index_t target, source, index;
};

/// The plan of a walk. Dimensions other than the indexed one are joined if all three tensors allow
/// it. The last of them, if it lies behind the indexed dimension, becomes `columns`; the others
/// become `groups`.
struct Along {
  index_t extent;   ///< of the target along the dimension: the range of the indices
  index_t length;   ///< indices along the dimension
  Offsets step;     ///< strides along the dimension; `target`: between two places that indices name
  index_t columns;  ///< 1 if nothing lies behind the dimension
  Offsets column;   ///< strides between columns; `index` is 0 if columns share their indices
  index_t groups;
  int32_t rank;  ///< dimensions of the groups
  bool checks;   ///< the walk checks indices as it reads them; false: they are checked already
  index_t sizes[max_rank];
  Offsets steps[max_rank];

  Offsets begin(index_t group) const {
    Offsets at{0, 0, 0};
    for (int d = rank - 1; d >= 0; --d) {
      const index_t here = d > 0 ? group % sizes[d] : group;
      if (d > 0) group /= sizes[d];
      at.target += here * steps[d].target, at.source += here * steps[d].source,
          at.index += here * steps[d].index;
    }
    return at;
  }
};

namespace internal {

/// `step_of(i)`: the strides of dimension i.
template <class StepOf>
Along plan_along(int rank, int dim, const index_t* sizes, index_t extent, const StepOf& step_of) {
  Along a;
  a.extent = extent, a.length = 1, a.step = {1, 1, 1}, a.rank = 0;
  a.columns = 1, a.column = {1, 1, 1}, a.groups = 1, a.checks = true;
  bool behind = false;  // whether the last dimension of the groups lies behind `dim`
  for (int i = 0; i < rank; ++i) {
    if (i == dim) a.length = sizes[i], a.step = step_of(i);
    if (i == dim || sizes[i] == 1) continue;
    const Offsets step = step_of(i);
    const auto joins = [&](index_t Offsets::*of) {
      return a.steps[a.rank - 1].*of == step.*of * sizes[i];
    };
    if (a.rank > 0 && behind == (i > dim) && joins(&Offsets::target) && joins(&Offsets::source) &&
        joins(&Offsets::index)) {
      a.sizes[a.rank - 1] *= sizes[i], a.steps[a.rank - 1] = step;
    } else {
      a.sizes[a.rank] = sizes[i], a.steps[a.rank++] = step;
    }
    behind = i > dim;
  }
  if (behind) --a.rank, a.columns = a.sizes[a.rank], a.column = a.steps[a.rank];
  for (int d = 0; d < a.rank; ++d) a.groups *= a.sizes[d];
  return a;
}

/// A scalar counts as a tensor with one dimension.
inline index_t extent_along(const Shape& s, int dim) { return s.rank == 0 ? 1 : s.sizes[dim]; }
inline index_t stride_along(const Shape& s, int dim) { return s.rank == 0 ? 1 : s.strides[dim]; }

}  // namespace internal

/// `index` has target's rank. `source` is at least as large as `index`.
inline Along along(const Shape& target, int64_t dim, const Shape& index, const Shape& source) {
  const index_t one = 1;
  const int d = normalized(dim, target.rank);
  if (index.numel() == 0) return {};  // it may have any rank then
  return internal::plan_along(
      index.rank > 0 ? index.rank : 1, d, index.rank > 0 ? index.sizes : &one,
      internal::extent_along(target, d), [&](int i) {
        return Offsets{internal::stride_along(target, i), internal::stride_along(source, i),
                       internal::stride_along(index, i)};
      });
}
/// For each index of a vector, `source` has a slice of the target. These indices are few, so they
/// are checked before the walk.
inline Along along_slices(const Shape& target, int64_t dim, const Shape& source) {
  const index_t one = 1;
  const int d = normalized(dim, target.rank);
  Along a = internal::plan_along(source.rank > 0 ? source.rank : 1, d,
                                 source.rank > 0 ? source.sizes : &one,
                                 internal::extent_along(target, d), [&](int i) {
                                   return Offsets{internal::stride_along(target, i),
                                                  internal::stride_along(source, i), i == d};
                                 });
  a.checks = false;
  return a;
}

/// The base of bodies for the walks below. A body computes one element, or several in a row with
/// `slice`. `line` gets the place where a line of the target begins, before elements of the line
/// are visited in any order.
struct WalkBody {
  void line(index_t) const {}
};
/// Copies an element: from[source], beside the indices, to to[target].
template <class E>
struct Move : WalkBody {
  Move(E* to, const E* from) : to(to), from(from) {}
  E* to;
  const E* from;
  void operator()(index_t target, index_t source) const { to[target] = from[source]; }
  void slice(index_t target, index_t source, index_t n) const {
    std::memcpy(to + target, from + source, static_cast<size_t>(n) * sizeof(E));
  }
};
/// Calls each(offset in the target, offset in the source).
template <class F>
struct Each : WalkBody {
  explicit Each(F each) : each(each) {}
  F each;
  void operator()(index_t target, index_t source) const { each(target, source); }
  void slice(index_t target, index_t source, index_t n) const {
    for_each_element(n, [=, f = each](index_t i) { f(target + i, source + i); });
  }
};

/// Dense indices of 64 or 32 bits.
struct Indices {
  const void* data;
  bool wide;
  Indices(const int64_t* data) : data(data), wide(true) {}
  Indices(const int32_t* data) : data(data), wide(false) {}
};

/// The functions of a body, so that the walk is compiled only once for all bodies.
struct WalkCalls {
  const void* body;
  /// Visits n elements with n indices. Element k lies at `at` + k * `next`, and in the target
  /// index[k] * `place` further.
  void (*pick)(const void* body, index_t n, const void* indices, index_t place, const Offsets& at,
               const Offsets& next);
  /// Visits n slices of `length` elements with n indices. Slice k begins at `at`, plus k *
  /// `next_slice` in the source and index[k] * `place` in the target. Elements of a slice are
  /// `next` apart.
  void (*slices)(const void* body, index_t n, const void* indices, index_t place, const Offsets& at,
                 index_t next_slice, index_t length, const Offsets& next);
  void (*line)(const void* body, index_t target);
};

namespace internal {

template <class I, class Body>
void pick(const void* body, index_t n, const void* indices, index_t place, const Offsets& at,
          const Offsets& next) {
  const Body b = *static_cast<const Body*>(body);
  const I* const index = static_cast<const I*>(indices);
  index_t target = at.target, source = at.source;
  const index_t next_target = next.target, next_source = next.source;
  for (index_t k = 0; k < n; ++k, target += next_target, source += next_source)
    b(target + static_cast<index_t>(index[k]) * place, source);
}
template <class I, class Body>
void slices(const void* body, index_t n, const void* indices, index_t place, const Offsets& at,
            index_t next_slice, index_t length, const Offsets& next) {
  const Body b = *static_cast<const Body*>(body);
  const I* const index = static_cast<const I*>(indices);
  const bool dense = next.target == 1 && next.source == 1;
  for (index_t k = 0; k < n; ++k) {
    const index_t target = at.target + static_cast<index_t>(index[k]) * place,
                  source = at.source + k * next_slice;
    if (dense)
      b.slice(target, source, length);
    else
      for (index_t c = 0; c < length; ++c) b(target + c * next.target, source + c * next.source);
  }
}
template <class Body>
void line(const void* body, index_t target) {
  static_cast<const Body*>(body)->line(target);
}
template <class I, class Body>
WalkCalls calls_of(const Body& body) {
  return {&body, pick<I, Body>, slices<I, Body>, line<Body>};
}

bool walk_indices(const Threads* threads, const Along& a, Indices index, const WalkCalls& calls);
bool walk_indices_in_any_order(const Threads* threads, const Along& a, Indices index,
                               const WalkCalls& calls);

}  // namespace internal

/// Calls walk(group, left, right) in parallel for all groups and columns. A group moves `length` x
/// `columns` elements. Columns are shared out only if there are few groups, and into at most as
/// many parts as threads, because each part reads all indices again. No part may touch what another
/// writes, so results do not depend on the cut.
template <class Walk>
void parallel_columns(const Threads* threads, index_t groups, index_t length, index_t columns,
                      const Walk& walk) {
  constexpr index_t unit = 16;  // in columns; mostly a cache line
  const index_t width = length * columns, units = pieces(columns, unit);
  index_t parts = threads == nullptr || groups >= unit ? 1 : threads->count;
  if (parts > units) parts = units;
  if (parts > width / 16384) parts = width / 16384;
  if (parts <= 1)
    return parallel_lines(threads, groups, width, [&](index_t g) { walk(g, 0, columns); });
  parallel_for(threads, groups * parts, [&](index_t task) {
    const index_t part = task % parts, left = units * part / parts * unit,
                  right = units * (part + 1) / parts * unit;
    walk(task / parts, left, right < columns ? right : columns);
  });
}

/// Calls body(offset in the target, offset in the source) for each index, or body.slice if columns
/// share their indices. Calls for the same element of the target come one after the other, in
/// order; others may run in parallel. Returns false if an index is outside; then some indices are
/// left out.
template <class I, class Body>
bool for_each_index(const Threads* threads, const Along& a, const I* index, const Body& body) {
  return internal::walk_indices(threads, a, index, internal::calls_of<I>(body));
}
/// The same in any order, for bodies that only read the target.
template <class I, class Body>
bool for_each_index_in_any_order(const Threads* threads, const Along& a, const I* index,
                                 const Body& body) {
  return internal::walk_indices_in_any_order(threads, a, index, internal::calls_of<I>(body));
}

/// The plan of a kernel whose result 0 may lie on self. Then a write into a long tensor takes only
/// as long as the elements that it writes.
struct AlongInPlace : Along {
  static constexpr uint32_t overwrites = 1;
};

/// out = self. Both have the same size and dtype.
void copy_unless_in_place(const Threads* threads, const TensorRef& self, const TensorRef& out);

template <class E>
void copy_unless_in_place(const Threads* threads, View<const E> self, View<E> out) {
  copy_unless_in_place(threads, *self.ref, *out.ref);
}

/// Copies self to `out` and calls body, which changes `out`, for each index. In place, an index
/// outside leaves self unchanged.
template <class E, class I, class Body>
Error write_along(Context& context, Along a, View<const E> self, View<const I> index, View<E> out,
                  const Body& body) {
  if (!a.checks || out.data() == self.data()) {
    TAPER_TRY(check_indices(context, index, a.extent));
    a.checks = false;
  }
  copy_unless_in_place(context.threads, self, out);
  if (index.numel() == 0 || for_each_index(context.threads, a, index.data(), body))
    return Error::ok;
  return check_indices(context, index, a.extent);
}

}  // namespace taper::portable
