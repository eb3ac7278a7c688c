// median and kthvalue: the element of one rank, found without sorting. NaN counts as the largest
// value. Equal values are ordered by position.
#include <limits>

#include "taper/kernels/portable/line_entries.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/shapes/reduction.h"

namespace taper::portable {
namespace {

/// `rank_in(line, n)` gives the rank of the element to take from a line of n entries.
template <class T, class Rank>
void pick(Context& context, const LinePlan& plan, const T* self, T* values, int64_t* indices,
          const Rank& rank_in) {
  const index_t n = plan.lines.extent, step = plan.lines.inner;
  for_each_strip(
      context, plan, self, false, [=](EntryStrip<EntryOf<T>>& strip, const T* x, index_t line) {
        for (index_t l = 0; l < strip.width; ++l) {
          const EntryOf<T>* const entries = strip.lines[l];
          const index_t at = entry_of_rank(strip.threads, entries, n, rank_in(entries, n),
                                           strip.spare, strip.places)
                                 .at();
          values[line + l] = x[at * step + l];
          if (indices != nullptr) indices[line + l] = at;
        }
      });
}

/// The rank of the lower median, or of the first NaN if there is one.
template <class T>
index_t rank_of_median(const EntryOf<T>* entries, index_t n) {
  index_t nans = 0;
  if constexpr (std::is_floating_point_v<T>)
    for (index_t i = 0; i < n; ++i) nans += entries[i].key() == ~KeyOf<T>{0};
  return nans > 0 ? n - nans : (n - 1) / 2;
}

template <class T>
Error prepare_median(Context& context, LinePlan& plan, View<const T> self, View<T>) {
  return prepare_lines<T>(context, plan, {1, self.numel(), 1});
}
template <class T>
Error run_median(Context& context, const LinePlan& plan, View<const T> self, View<T> out) {
  if (plan.lines.extent == 0)
    *out.data() = std::numeric_limits<T>::quiet_NaN();
  else
    pick<T>(context, plan, self.data(), out.data(), nullptr, rank_of_median<T>);
  return Error::ok;
}

template <class T>
Error prepare_median_dim(Context& context, LinePlan& plan, View<const T> self, int64_t dim, bool,
                         View<T>, View<int64_t>) {
  return prepare_lines<T>(context, plan, lines_along(self.shape(), dim));
}
template <class T>
Error run_median_dim(Context& context, const LinePlan& plan, View<const T> self, int64_t, bool,
                     View<T> values, View<int64_t> indices) {
  pick<T>(context, plan, self.data(), values.data(), indices.data(), rank_of_median<T>);
  return Error::ok;
}

template <class T>
Error prepare_kthvalue(Context& context, LinePlan& plan, View<const T> self, int64_t, int64_t dim,
                       bool, View<T>, View<int64_t>) {
  return prepare_lines<T>(context, plan, lines_along(self.shape(), dim));
}
template <class T>
Error run_kthvalue(Context& context, const LinePlan& plan, View<const T> self, int64_t k, int64_t,
                   bool, View<T> values, View<int64_t> indices) {
  pick<T>(context, plan, self.data(), values.data(), indices.data(),
          [=](const EntryOf<T>*, index_t) { return static_cast<index_t>(k - 1); });
  return Error::ok;
}

}  // namespace

TAPER_BY_DTYPE(median, prepare_median, run_median)
TAPER_BY_DTYPE(median_dim, prepare_median_dim, run_median_dim)
TAPER_BY_DTYPE(kthvalue, prepare_kthvalue, run_kthvalue)

}  // namespace taper::portable
