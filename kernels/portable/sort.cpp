// sort, topk, median and kthvalue along one dimension: a stable merge sort of each line's
// positions, by integers that are ordered as its values are. NaN counts as the largest value.
#include <limits>

#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/math.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/shapes/indexing.h"
#include "taper/kernels/shapes/reduction.h"

namespace taper::portable {
namespace {

template <class T>
bool is_less(T a, T b) {
  return a < b || (b != b && a == a);
}

/// An unsigned integer that goes up with the value: both zeros are one, NaN comes last.
template <class T>
auto rising_key(T x) {
  using Key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x) return ~Key{0};
    const Key bits = x == 0 ? Key{0} : math::bits_of(x);
    return bits ^ ((bits & sign) != 0 ? ~Key{0} : sign);
  } else {
    return static_cast<Key>(static_cast<int64_t>(x)) ^ sign;
  }
}

template <class T>
struct Entry {
  decltype(rising_key(T())) key;
  index_t at;
};

/// to[0, n) = from[0, n) in order, by counting the entries before each: nothing is predicted.
template <class E>
void sort_few(const E* from, index_t n, E* to) {
  for (index_t i = 0; i < n; ++i) {
    index_t before = 0;
    for (index_t k = 0; k < i; ++k) before += !(from[i].key < from[k].key);
    for (index_t k = i + 1; k < n; ++k) before += from[k].key < from[i].key;
    to[before] = from[i];
  }
}

/// Joins the runs [left, right) and [right, end). A choice is a number, so that nothing is
/// predicted.
template <class E>
void merge(const E* left, const E* right, const E* end, E* to) {
  const E* const left_end = right;
  while (left < left_end && right < end) {
    const bool takes_right = right->key < left->key;
    const E* const taken[] = {left, right};
    *to++ = *taken[takes_right];
    right += takes_right, left += !takes_right;
  }
  for (; left < left_end; ++left) *to++ = *left;
  for (; right < end; ++right) *to++ = *right;
}

/// The entries of a line so that their values go up (or down), in one of the two halves of scratch,
/// each of n entries.
template <class T>
const Entry<T>* sorted(const T* x, index_t step, index_t n, bool down, void* scratch) {
  using E = Entry<T>;
  constexpr index_t few = 8;
  E* order = static_cast<E*>(scratch);
  E* other = order + n;
  for (index_t i = 0; i < n; ++i) {
    const auto key = rising_key(x[i * step]);
    other[i] = {down ? ~key : key, i};
  }
  index_t begin = 0;
  for (; begin + few <= n; begin += few) sort_few(other + begin, few, order + begin);
  sort_few(other + begin, n - begin, order + begin);
  for (index_t width = few; width < n; width *= 2) {
    for (begin = 0; begin < n; begin += 2 * width) {
      const index_t middle = begin + width < n ? begin + width : n;
      merge(order + begin, order + middle, order + (n - middle < width ? n : middle + width),
            other + begin);
    }
    E* swap = order;
    order = other, other = swap;
  }
  return order;
}

template <class T>
Error sort_lines(Context& context, const Lines& lines, index_t kept, bool down, const T* self,
                 T* values, int64_t* indices) {
  const auto [outer, extent, inner] = lines;
  for (index_t o = 0; o < outer; ++o)
    for (index_t i = 0; i < inner; ++i) {
      const T* x = self + o * extent * inner + i;
      const Entry<T>* order = sorted(x, inner, extent, down, context.scratch);
      const index_t to = o * kept * inner + i;
      for (index_t k = 0; k < kept; ++k)
        values[to + k * inner] = x[order[k].at * inner], indices[to + k * inner] = order[k].at;
    }
  return Error::ok;
}

template <class T>
void need_entries(Context& context, const Lines& lines) {
  context.need_scratch(2 * static_cast<size_t>(lines.extent) * sizeof(Entry<T>));
}

template <class T>
Error prepare(Context& context, Lines& plan, View<const T> self, int64_t dim, bool, View<T>,
              View<int64_t>) {
  plan = lines_along(self.shape(), dim);
  need_entries<T>(context, plan);
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
  need_entries<T>(context, plan);
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
  return sorted(x, step, n, false, context.scratch)[k].at;
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
  need_entries<T>(context, plan);
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
  need_entries<T>(context, plan);
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
  need_entries<T>(context, plan);
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
