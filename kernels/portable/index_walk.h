// Walking indices along one dimension of a tensor beside a tensor that has an element for each:
// what gather, scatter and their kin share with the operators on slices.
#pragma once
#include <cstring>

#include "taper/kernels/portable/index_check.h"
#include "taper/kernels/portable/lines.h"

namespace taper::portable {

inline int normalized(int64_t dim, int rank) {
  return static_cast<int>(dim < 0 ? dim + (rank > 0 ? rank : 1) : dim);
}

/// A place in, or a step through, the tensor that is indexed, the one beside the indices, and the
/// indices.
struct Offsets {
  index_t target, source, index;
};

/// How they are walked. Dimensions but the indexed one are joined where all three tensors allow it:
/// they make groups; the last one behind the indexed dimension makes columns.
struct Along {
  index_t extent;   ///< of the target: what the indices may name
  index_t length;   ///< indices along the dimension
  Offsets step;     ///< along it; of the target, from one place that an index names to the next
  index_t columns;  ///< 1 if nothing lies behind the dimension
  Offsets column;   ///< from one to the next; `index` is 0 if columns share their indices
  index_t groups;
  int32_t rank;  ///< dimensions of the groups
  bool checks;   ///< walks check indices as they read them; else it has been done
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
  bool behind = false;  // the last dimension of the groups lies behind `dim`
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

/// A scalar counts as one dimension.
inline index_t extent_along(const Shape& s, int dim) { return s.rank == 0 ? 1 : s.sizes[dim]; }
inline index_t stride_along(const Shape& s, int dim) { return s.rank == 0 ? 1 : s.strides[dim]; }

}  // namespace internal

/// `index` has target's rank; `source` is at least as large.
inline Along along(const Shape& target, int64_t dim, const Shape& index, const Shape& source) {
  const index_t one = 1;
  const int d = normalized(dim, target.rank);
  if (index.numel() == 0) return {};  // and of any rank
  return internal::plan_along(
      index.rank > 0 ? index.rank : 1, d, index.rank > 0 ? index.sizes : &one,
      internal::extent_along(target, d), [&](int i) {
        return Offsets{internal::stride_along(target, i), internal::stride_along(source, i),
                       internal::stride_along(index, i)};
      });
}
/// `source` has a slice of the target for each of a vector of indices, which are few: they are
/// checked before the walk.
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

/// A body of the walks below computes an element, `slice` several in a row; `line` is told where a
/// line of the target begins, of which elements will be asked for in no order.
struct WalkBody {
  void line(index_t) const {}
};
/// Moves elements: from `from` beside the indices to `to`.
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

namespace internal {

/// Places [first, end) along the dimension and columns [left, right) of the group that begins at
/// `at`. `dense`: from one to the next is a step of one in target and source. False if an index is
/// outside: then its row is left out, and what follows.
template <bool dense, class I, class Body>
bool walk_part(const Along& a, const Offsets& at, index_t first, index_t end, index_t left,
               index_t right, const I* index, const Body body) {
  const index_t place = a.step.target;
  if (a.columns == 1) {
    const I* x = index + at.index;
    const index_t to = at.target, from = at.source, source = dense ? 1 : a.step.source;
    body.line(to);
    constexpr index_t near = 1024;  // indices that stay in the first-level cache once checked
    for (index_t begin = first; begin < end; begin += near) {
      const index_t stop = end - begin < near ? end : begin + near;
      if (a.checks && !are_inside(x + begin, stop - begin, a.extent)) return false;
      for (index_t k = begin; k < stop; ++k)
        body(to + static_cast<index_t>(x[k]) * (dense ? 1 : place), from + k * source);
    }
    return true;
  }
  const index_t target = dense ? 1 : a.column.target, source = dense ? 1 : a.column.source;
  for (index_t k = first; k < end; ++k) {
    const I* x = index + at.index + k * a.step.index;
    const index_t to = at.target, from = at.source + k * a.step.source;
    if (a.column.index != 0) {
      if (a.checks && !are_inside(x + left, right - left, a.extent)) return false;
      for (index_t c = left; c < right; ++c)
        body(to + static_cast<index_t>(x[c]) * place + c * target, from + c * source);
      continue;
    }
    if (a.checks && !are_inside(x, 1, a.extent)) return false;
    const index_t slice = to + static_cast<index_t>(*x) * place;
    if constexpr (dense)
      body.slice(slice + left, from + left, right - left);
    else
      for (index_t c = left; c < right; ++c) body(slice + c * target, from + c * source);
  }
  return true;
}
template <class I, class Body>
bool walk_part(const Along& a, index_t group, index_t first, index_t end, index_t left,
               index_t right, const I* index, const Body& body) {
  const Offsets& next = a.columns == 1 ? a.step : a.column;
  return next.target == 1 && next.source == 1
             ? walk_part<true>(a, a.begin(group), first, end, left, right, index, body)
             : walk_part<false>(a, a.begin(group), first, end, left, right, index, body);
}

}  // namespace internal

/// Calls walk(group, left, right) in parallel for all groups and columns of work where a group
/// moves `length` x `columns` elements. Columns are shared out only if groups are few, and in as
/// many parts as there are threads, as each part reads all indices again: for work of which no part
/// touches what another writes, so that results do not depend on the cut.
template <class Walk>
void parallel_columns(const Threads* threads, index_t groups, index_t length, index_t columns,
                      const Walk& walk) {
  constexpr index_t unit = 16;  // columns: mostly a line of the cache
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

/// Calls body(offset in the target, offset in the source) for each index, and body.slice for
/// columns that share theirs; those that meet in an element of the target one after the other, in
/// order, others in parallel. False if an index is outside: then some are left out.
template <class I, class Body>
bool for_each_index(const Threads* threads, const Along& a, const I* index, const Body& body) {
  std::atomic<bool> outside{false};
  const auto walk = [&](index_t group, index_t left, index_t right) {
    if (!internal::walk_part(a, group, 0, a.length, left, right, index, body))
      outside.store(true, std::memory_order_relaxed);
  };
  parallel_columns(threads, a.groups, a.length, a.columns, walk);
  return !outside;
}
/// The same in any order, for bodies that only read the target.
template <class I, class Body>
bool for_each_index_in_any_order(const Threads* threads, const Along& a, const I* index,
                                 const Body& body) {
  std::atomic<bool> outside{false};
  parallel_ranges(threads, a.groups * a.length, a.columns, [&](index_t begin, index_t end) {
    while (begin < end) {
      const index_t group = begin / a.length, first = begin - group * a.length,
                    stop = end - begin < a.length - first ? first + end - begin : a.length;
      if (!internal::walk_part(a, group, first, stop, 0, a.columns, index, body))
        outside.store(true, std::memory_order_relaxed);
      begin += stop - first;
    }
  });
  return !outside;
}

/// The plan of a kernel whose result 0 may lie on self, so that a write into a long tensor costs
/// what it writes.
struct AlongInPlace : Along {
  static constexpr uint32_t overwrites = 1;
};

template <class E>
void copy_unless_in_place(const Threads* threads, View<const E> self, View<E> out) {
  if (out.data() == self.data()) return;
  constexpr index_t per_task = 65536 / static_cast<index_t>(sizeof(E));
  const index_t count = self.numel();
  parallel_for(threads, pieces(count, per_task), [&](index_t task) {
    const index_t first = task * per_task, left = count - first;
    std::memcpy(out.data() + first, self.data() + first,
                static_cast<size_t>(left < per_task ? left : per_task) * sizeof(E));
  });
}

/// `out` becomes self, and body, which changes it, is called for each index. In place, an index
/// outside leaves self as it was.
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
