#include "taper/kernels/portable/index_walk.h"

namespace taper::portable {

void copy_unless_in_place(const Threads* threads, const TensorRef& self, const TensorRef& out) {
  if (out.data == self.data) return;
  constexpr index_t per_task = 65536;
  const index_t bytes = self.shape->numel() * size_bytes(self.dtype);
  parallel_for(threads, pieces(bytes, per_task), [&](index_t task) {
    const index_t first = task * per_task, left = bytes - first;
    std::memcpy(static_cast<char*>(out.data) + first, static_cast<const char*>(self.data) + first,
                static_cast<size_t>(left < per_task ? left : per_task));
  });
}

namespace internal {
namespace {

const void* from(Indices index, index_t i) {
  return static_cast<const char*>(index.data) + i * (index.wide ? 8 : 4);
}
bool are_inside(Indices index, index_t first, index_t count, index_t extent) {
  const void* at = from(index, first);
  return index.wide ? portable::are_inside(static_cast<const int64_t*>(at), count, extent)
                    : portable::are_inside(static_cast<const int32_t*>(at), count, extent);
}
// Walks places [first, end) along the dimension and columns [left, right) of a group. Returns false
// if an index is outside; then the indices checked with it and all that follow are left out.
bool walk_part(const Along& a, index_t group, index_t first, index_t end, index_t left,
               index_t right, Indices index, const WalkCalls& calls) {
  const Offsets begin = a.begin(group);
  const index_t place = a.step.target;
  if (a.columns == 1) {
    calls.line(calls.body, begin.target);
    // so many indices stay in the first-level cache after their check
    constexpr index_t near = 1024;
    for (index_t k = first; k < end; k += near) {
      const index_t n = end - k < near ? end - k : near;
      if (a.checks && !are_inside(index, begin.index + k, n, a.extent)) return false;
      calls.pick(calls.body, n, from(index, begin.index + k), place,
                 {begin.target, begin.source + k * a.step.source, 0}, {0, a.step.source, 0});
    }
    return true;
  }
  const Offsets at{begin.target + left * a.column.target,
                   begin.source + first * a.step.source + left * a.column.source, 0};
  if (a.column.index == 0) {  // columns share their indices
    if (a.checks && !are_inside(index, begin.index + first, end - first, a.extent)) return false;
    calls.slices(calls.body, end - first, from(index, begin.index + first), place, at,
                 a.step.source, right - left, a.column);
    return true;
  }
  for (index_t k = first; k < end; ++k) {
    const index_t i = begin.index + k * a.step.index + left;
    if (a.checks && !are_inside(index, i, right - left, a.extent)) return false;
    calls.pick(calls.body, right - left, from(index, i), place,
               {at.target, at.source + (k - first) * a.step.source, 0}, a.column);
  }
  return true;
}

}  // namespace

bool walk_indices(const Threads* threads, const Along& a, Indices index, const WalkCalls& calls) {
  std::atomic<bool> outside{false};
  parallel_columns(threads, a.groups, a.length, a.columns,
                   [&](index_t group, index_t left, index_t right) {
                     if (!walk_part(a, group, 0, a.length, left, right, index, calls))
                       outside.store(true, std::memory_order_relaxed);
                   });
  return !outside;
}

bool walk_indices_in_any_order(const Threads* threads, const Along& a, Indices index,
                               const WalkCalls& calls) {
  std::atomic<bool> outside{false};
  parallel_ranges(threads, a.groups * a.length, a.columns, [&](index_t begin, index_t end) {
    while (begin < end) {
      const index_t group = begin / a.length, first = begin - group * a.length,
                    stop = end - begin < a.length - first ? first + end - begin : a.length;
      if (!walk_part(a, group, first, stop, 0, a.columns, index, calls))
        outside.store(true, std::memory_order_relaxed);
      begin += stop - first;
    }
  });
  return !outside;
}

}  // namespace internal
}  // namespace taper::portable
