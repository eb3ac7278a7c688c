// sort and topk along one dimension. NaN counts as the largest value. Equal values keep their
// order.
#include "taper/kernels/portable/line_entries.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/portable/screening.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

/// Writes the first `kept` entries of each line of a strip, which are in order. The strip's first
/// line begins at x. Its values and positions go to `values` and `indices`. Elements of a line are
/// `step` apart.
template <class T>
void store_strip(const EntryStrip<EntryOf<T>>& strip, index_t kept, bool down, const T* x,
                 index_t step, T* values, int64_t* indices) {
  const KeyOf<T> turn = down ? ~KeyOf<T>{0} : KeyOf<T>{0};
  const auto store = [=](EntryOf<T> entry, index_t from, index_t to) {
    const KeyOf<T> key = entry.key() ^ turn;
    values[to] = is_shared<T>(key) ? x[entry.at() * step + from] : value_of<T>(key);
    indices[to] = entry.at();
  };
  internal::for_each_chunk(strip.threads, kept, [=, &strip](index_t, index_t first, index_t end) {
    const EntryOf<T>* const line = strip.lines[0];
    if (step == 1)
      for (index_t i = first; i < end; ++i) store(line[i], 0, i);
    else
      for (index_t i = first; i < end; ++i)
        for (index_t l = 0; l < strip.width; ++l) store(strip.lines[l][i], l, i * step + l);
  });
}

template <class E>
void sort_line(EntryStrip<E>& strip, index_t l, index_t n) {
  E* const line = strip.lines[l];
  E* const sorted = sort_entries(strip.threads, line, n, strip.spare, strip.places);
  if (sorted == line) return;
  strip.spare = line, strip.lines[l] = sorted;
}

template <class T>
Error prepare(Context& context, LinePlan& plan, View<const T> self, int64_t dim, bool, View<T>,
              View<int64_t>) {
  return prepare_lines<T>(context, plan, lines_along(self.shape(), dim));
}
template <class T>
Error run(Context& context, const LinePlan& plan, View<const T> self, int64_t, bool down,
          View<T> values, View<int64_t> indices) {
  const auto [outer, extent, inner] = plan.lines;
  const index_t n = extent, step = inner;
  for_each_strip(context, plan, self.data(), down,
                 [=](EntryStrip<EntryOf<T>>& strip, const T* x, index_t line) {
                   for (index_t l = 0; l < strip.width; ++l) sort_line(strip, l, n);
                   const index_t to = line / step * n * step + line % step;
                   store_strip(strip, n, down, x, step, values.data() + to, indices.data() + to);
                 });
  return Error::ok;
}

/// The first elements of a line in their order, kept in the result while the line is read. An
/// element that comes before the last of them is inserted.
template <class T, bool down>
struct First {
  index_t count, step, held;
  T* values;
  int64_t* indices;

  static bool before(T a, T b) {
    const T less = down ? b : a, more = down ? a : b;
    return less < more || (more != more && less == less);
  }
  void insert(T x, index_t position) {
    index_t at = held < count ? held++ : count - 1;
    for (; at > 0 && before(x, values[(at - 1) * step]); --at)
      values[at * step] = values[(at - 1) * step], indices[at * step] = indices[(at - 1) * step];
    values[at * step] = x, indices[at * step] = position;
  }
  /// An element that is inserted later must come before this value.
  T bound() const { return values[(count - 1) * step]; }
};

/// At most so many elements are found by insertion.
constexpr index_t most_inserted = 128;

/// Whether one of x[0, screened) may come before its bound. It does, or one of the two is NaN. This
/// is rare.
template <class T, bool down>
bool any_before(const T* x, const T* bounds) {
  return any_of([=](int l) { return down ? !(x[l] <= bounds[l]) : !(x[l] >= bounds[l]); });
}

/// Inserts the elements of one line of n.
template <class T, bool down>
void insert_line(const T* x, index_t n, First<T, down> first) {
  index_t i = 0;
  for (; i < first.count; ++i) first.insert(x[i], i);
  T bound = first.bound();
  const auto see = [&](index_t end) {
    for (; i < end; ++i)
      if (First<T, down>::before(x[i], bound)) first.insert(x[i], i), bound = first.bound();
  };
  // at the start, most groups hold an element to insert
  see(screened * first.count < n ? screened * first.count : n);
  while (i + screened <= n) {
    T bounds[screened];
    for (T& b : bounds) b = bound;
    while (i + screened <= n && !any_before<T, down>(x + i, bounds)) i += screened;
    see(i + screened < n ? i + screened : n);
  }
  see(n);
}
/// Inserts the elements of `width` lines side by side, at most `screened`. Elements of a line are
/// `step` apart.
template <class T, bool down>
void insert_lines(const T* x, index_t step, index_t n, index_t width, First<T, down>* first) {
  index_t i = 0;
  for (; i < first->count; ++i)
    for (index_t l = 0; l < width; ++l) first[l].insert(x[i * step + l], i);
  T bounds[screened];
  for (index_t l = 0; l < width; ++l) bounds[l] = first[l].bound();
  for (; i < n; ++i) {
    const T* const row = x + i * step;
    if (width == screened && !any_before<T, down>(row, bounds)) continue;
    for (index_t l = 0; l < width; ++l)
      if (First<T, down>::before(row[l], bounds[l]))
        first[l].insert(row[l], i), bounds[l] = first[l].bound();
  }
}

template <class T, bool down>
void insert_all(Context& context, const Lines& lines, index_t k, const T* self, T* values,
                int64_t* indices) {
  const index_t n = lines.extent, step = lines.inner, across = pieces(step, screened);
  parallel_lines(context.threads, lines.outer * across, n * (step < screened ? step : screened),
                 [=](index_t strip) {
                   const index_t o = strip / across, i = strip % across * screened;
                   const T* x = self + o * n * step + i;
                   First<T, down> first[screened];
                   index_t width = 0;
                   for (; width < screened && i + width < step; ++width) {
                     const index_t to = o * k * step + i + width;
                     first[width] = {k, step, 0, values + to, indices + to};
                   }
                   if (step == 1)
                     insert_line(x, n, first[0]);
                   else
                     insert_lines(x, step, n, width, first);
                 });
}

template <class T>
Error prepare_topk(Context& context, LinePlan& plan, View<const T> self, int64_t k, int64_t dim,
                   bool, bool, View<T>, View<int64_t>) {
  plan.lines = lines_along(self.shape(), dim);
  return k <= most_inserted ? Error::ok : prepare_lines<T>(context, plan, plan.lines);
}
template <class T>
Error run_topk(Context& context, const LinePlan& plan, View<const T> self, int64_t, int64_t,
               bool largest, bool, View<T> values, View<int64_t> indices) {
  const auto [outer, extent, inner] = plan.lines;
  const index_t n = extent, step = inner, lines = outer * inner;
  const index_t k = lines > 0 ? values.numel() / lines : 0;
  if (k == 0) return Error::ok;
  if (k <= most_inserted) {
    (largest ? insert_all<T, true> : insert_all<T, false>)(context, plan.lines, k, self.data(),
                                                           values.data(), indices.data());
    return Error::ok;
  }
  for_each_strip(context, plan, self.data(), largest,
                 [=](EntryStrip<EntryOf<T>>& strip, const T* x, index_t line) {
                   using E = EntryOf<T>;
                   for (index_t l = 0; l < strip.width; ++l) {
                     E* const entries = strip.lines[l];
                     const E last =
                         entry_of_rank(strip.threads, entries, n, k - 1, strip.spare, strip.places);
                     keep_entries(
                         strip.threads, entries, n, [=](const E& e) { return !(last < e); },
                         strip.spare, strip.places);
                     strip.lines[l] = strip.spare, strip.spare = entries;
                     sort_line(strip, l, k);
                   }
                   const index_t to = line / step * k * step + line % step;
                   store_strip(strip, k, largest, x, step, values.data() + to, indices.data() + to);
                 });
  return Error::ok;
}

}  // namespace

TAPER_BY_DTYPE(sort, prepare, run)
TAPER_BY_DTYPE(topk, prepare_topk, run_topk)

}  // namespace taper::portable
