// sort, topk, median and kthvalue along one dimension: a stable merge sort of the indices of each
// line. NaN counts as the largest value.
#include <limits>

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/shapes/indexing.h"
#include "taper/kernels/shapes/reduction.h"

namespace taper::portable {
namespace {

template <class T>
bool is_less(T a, T b) {
  return a < b || (b != b && a == a);
}

/// Sorts `order` so that x[order[i] * step] goes up (or down), with the help of `other`; returns
/// which of the two holds it.
template <class T>
index_t* merge_sort(const T* x, index_t step, index_t n, bool down, index_t* order,
                    index_t* other) {
  for (index_t i = 0; i < n; ++i) order[i] = i;
  for (index_t width = 1; width < n; width *= 2) {
    for (index_t begin = 0; begin < n; begin += 2 * width) {
      index_t left = begin, right = begin + width < n ? begin + width : n;
      const index_t left_end = right, right_end = begin + 2 * width < n ? begin + 2 * width : n;
      for (index_t i = begin; i < right_end; ++i) {
        bool take_right = left == left_end;
        if (!take_right && right < right_end) {
          const T a = x[order[left] * step], b = x[order[right] * step];
          take_right = down ? is_less(a, b) : is_less(b, a);
        }
        other[i] = take_right ? order[right++] : order[left++];
      }
    }
    index_t* swap = order;
    order = other, other = swap;
  }
  return order;
}

template <class T>
Error sort_lines(Context& context, const Lines& lines, index_t kept, bool down, const T* self,
                 T* values, int64_t* indices) {
  const auto [outer, extent, inner] = lines;
  index_t* scratch = static_cast<index_t*>(context.scratch);
  for (index_t o = 0; o < outer; ++o)
    for (index_t i = 0; i < inner; ++i) {
      const T* x = self + o * extent * inner + i;
      const index_t* order = merge_sort(x, inner, extent, down, scratch, scratch + extent);
      const index_t to = o * kept * inner + i;
      for (index_t k = 0; k < kept; ++k)
        values[to + k * inner] = x[order[k] * inner], indices[to + k * inner] = order[k];
    }
  return Error::ok;
}

void need_two_orders(Context& context, const Lines& lines) {
  context.need_scratch(2 * static_cast<size_t>(lines.extent) * sizeof(index_t));
}

template <class T>
Error prepare(Context& context, Lines& plan, View<const T> self, int64_t dim, bool, View<T>,
              View<int64_t>) {
  plan = lines_along(self.shape(), dim);
  need_two_orders(context, plan);
  return Error::ok;
}
template <class T>
Error run(Context& context, const Lines& plan, View<const T> self, int64_t, bool descending,
          View<T> values, View<int64_t> indices) {
  return sort_lines(context, plan, plan.extent, descending, self.data(), values.data(),
                    indices.data());
}

/// The k first of each line, kept in order in the result while the line goes by: an element that
/// comes before the last one takes its place further up.
constexpr index_t most_inserted = 128;

template <class T>
void insert_first(const T* x, index_t step, index_t n, index_t k, bool down, T* values,
                  int64_t* indices, index_t to) {
  const auto before = [down](T a, T b) { return down ? is_less(b, a) : is_less(a, b); };
  index_t held = 0;
  for (index_t i = 0; i < n; ++i) {
    const T v = x[i * step];
    if (held == k && !before(v, values[(k - 1) * to])) continue;
    index_t at = held < k ? held++ : k - 1;
    for (; at > 0 && before(v, values[(at - 1) * to]); --at)
      values[at * to] = values[(at - 1) * to], indices[at * to] = indices[(at - 1) * to];
    values[at * to] = v, indices[at * to] = i;
  }
}
template <class T>
Error insert_lines(Context& context, const Lines& lines, index_t k, bool down, const T* self,
                   T* values, int64_t* indices) {
  const auto [outer, extent, inner] = lines;
  const index_t per_task = pieces(4096, extent > 0 ? extent : 1);
  const index_t count = k > 0 ? outer * inner : 0;
  parallel_for(
      context.threads, pieces(count, per_task), [=, extent = extent, inner = inner](index_t task) {
        for (index_t line = task * per_task; line < count && line < (task + 1) * per_task; ++line) {
          const index_t o = line / inner, i = line % inner;
          insert_first(self + o * extent * inner + i, inner, extent, k, down,
                       values + o * k * inner + i, indices + o * k * inner + i, inner);
        }
      });
  return Error::ok;
}

template <class T>
Error prepare_topk(Context& context, Lines& plan, View<const T> self, int64_t, int64_t dim, bool,
                   bool, View<T>, View<int64_t>) {
  plan = lines_along(self.shape(), dim);
  need_two_orders(context, plan);
  return Error::ok;
}
template <class T>
Error run_topk(Context& context, const Lines& plan, View<const T> self, int64_t k, int64_t,
               bool largest, bool, View<T> values, View<int64_t> indices) {
  const index_t kept = static_cast<index_t>(self.rank() == 0 ? values.numel() : k);
  if (kept <= most_inserted)
    return insert_lines(context, plan, kept, largest, self.data(), values.data(), indices.data());
  return sort_lines(context, plan, kept, largest, self.data(), values.data(), indices.data());
}

template <class T>
bool is_nan(T x) {
  return x != x;
}

/// The position of the element number k of a sorted line.
template <class T>
index_t position_of(Context& context, const T* x, index_t step, index_t n, index_t k) {
  index_t* scratch = static_cast<index_t*>(context.scratch);
  return merge_sort(x, step, n, false, scratch, scratch + n)[k];
}
/// Of the lower median; of the first NaN if there is one.
template <class T>
index_t median_of(Context& context, const T* x, index_t step, index_t n) {
  for (index_t i = 0; i < n; ++i)
    if (is_nan(x[i * step])) return i;
  return position_of(context, x, step, n, (n - 1) / 2);
}

/// `pick(line)` gives a position in each line.
template <class T, class Pick>
void pick_from_lines(const Lines& lines, const T* self, T* values, int64_t* indices,
                     const Pick& pick) {
  const auto [outer, extent, inner] = lines;
  for (index_t o = 0; o < outer; ++o)
    for (index_t i = 0; i < inner; ++i) {
      const T* x = self + o * extent * inner + i;
      const index_t at = pick(x);
      values[o * inner + i] = x[at * inner], indices[o * inner + i] = at;
    }
}

template <class T>
Error prepare_median(Context& context, Lines& plan, View<const T> self, View<T>) {
  plan = {1, self.numel(), 1};
  need_two_orders(context, plan);
  return Error::ok;
}
template <class T>
Error run_median(Context& context, const Lines& plan, View<const T> self, View<T> out) {
  const T* x = self.data();
  *out.data() = plan.extent == 0 ? std::numeric_limits<T>::quiet_NaN()
                                 : x[median_of(context, x, 1, plan.extent)];
  return Error::ok;
}

template <class T>
Error prepare_median_dim(Context& context, Lines& plan, View<const T> self, int64_t dim, bool,
                         View<T>, View<int64_t>) {
  plan = lines_along(self.shape(), dim);
  need_two_orders(context, plan);
  return Error::ok;
}
template <class T>
Error run_median_dim(Context& context, const Lines& plan, View<const T> self, int64_t, bool,
                     View<T> values, View<int64_t> indices) {
  pick_from_lines(plan, self.data(), values.data(), indices.data(),
                  [&](const T* x) { return median_of(context, x, plan.inner, plan.extent); });
  return Error::ok;
}

template <class T>
Error prepare_kthvalue(Context& context, Lines& plan, View<const T> self, int64_t, int64_t dim,
                       bool, View<T>, View<int64_t>) {
  plan = lines_along(self.shape(), dim);
  need_two_orders(context, plan);
  return Error::ok;
}
template <class T>
Error run_kthvalue(Context& context, const Lines& plan, View<const T> self, int64_t k, int64_t,
                   bool, View<T> values, View<int64_t> indices) {
  pick_from_lines(plan, self.data(), values.data(), indices.data(), [&](const T* x) {
    return position_of(context, x, plan.inner, plan.extent, static_cast<index_t>(k - 1));
  });
  return Error::ok;
}

}  // namespace

TAPER_BY_DTYPE(sort, prepare, run)
TAPER_BY_DTYPE(topk, prepare_topk, run_topk)
TAPER_BY_DTYPE(median, prepare_median, run_median)
TAPER_BY_DTYPE(median_dim, prepare_median_dim, run_median_dim)
TAPER_BY_DTYPE(kthvalue, prepare_kthvalue, run_kthvalue)

}  // namespace taper::portable
