// Reduces the elements that an index sends to the same place, by sum, product, mean, maximum or
// minimum: scatter_reduce and index_reduce. They are taken in the row-major order of the index, so
// results are the same each time.
#include <algorithm>
#include <limits>

#include "taper/kernels/portable/division.h"
#include "taper/kernels/portable/index_walk.h"
#include "taper/kernels/portable/maximum.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

template <class T>
T highest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::max();
}

/// Integers round towards minus infinity.
template <class T>
T mean_of(T sum, index_t count) {
  if constexpr (std::is_floating_point_v<T>) return sum / static_cast<T>(count);
  return static_cast<T>(floor_divide(static_cast<int64_t>(sum), static_cast<int64_t>(count)));
}

template <class T>
void need_counts(Context& context, std::string_view reduce, View<const T> self) {
  if (reduce == "mean") context.need_scratch(static_cast<size_t>(self.numel()) * sizeof(index_t));
}

template <class T>
Error prepare_scatter(Context& context, AlongInPlace& plan, View<const T> self, int64_t dim,
                      View<const int64_t> index, View<const T> src, std::string_view reduce, bool,
                      View<T>) {
  plan = {along(self.shape(), dim, index.shape(), src.shape())};
  need_counts(context, reduce, self);
  return Error::ok;
}
template <class T>
Error prepare_index(Context& context, AlongInPlace& plan, View<const T> self, int64_t dim,
                    View<const int64_t>, View<const T> source, std::string_view reduce, bool,
                    View<T>) {
  plan = {along_slices(self.shape(), dim, source.shape())};
  need_counts(context, reduce, self);
  return Error::ok;
}

/// Copies self to `out`, and reduces into it the elements of `src`. For "mean", the scratch holds a
/// count for each element of out.
template <class T>
Error run(Context& context, const AlongInPlace& plan, View<const T> self, int64_t,
          View<const int64_t> index, View<const T> src, std::string_view reduce, bool include_self,
          View<T> out) {
  // checked first: in place, an index outside then leaves self unchanged
  TAPER_TRY(check_indices(context, index, plan.extent));
  Along a = plan;
  a.checks = false;
  copy_unless_in_place(context.threads, self, out);
  T* const y = out.data();
  const T* const x = src.data();
  const auto visit = [&](const auto& each) {
    for_each_index(context.threads, a, index.data(), Each(each));
  };
  if (!include_self) {
    const T start = reduce == "prod"   ? T(1)
                    : reduce == "amax" ? lowest<T>()
                    : reduce == "amin" ? highest<T>()
                                       : T(0);
    visit([=](index_t to, index_t) { y[to] = start; });
  }
  if (reduce == "amax")
    visit([=](index_t to, index_t from) { y[to] = greater_of(y[to], x[from]); });
  else if (reduce == "amin")
    visit([=](index_t to, index_t from) { y[to] = lesser_of(y[to], x[from]); });
  else if (reduce == "prod")
    visit([=](index_t to, index_t from) { y[to] = wrapping_mul(y[to], x[from]); });
  else
    visit([=](index_t to, index_t from) { y[to] = wrapping_add(y[to], x[from]); });
  if (reduce != "mean") return Error::ok;
  index_t* const counts = static_cast<index_t*>(context.scratch);
  const index_t itself = include_self;
  parallel_ranges(context.threads, out.numel(), 1, [=](index_t first, index_t end) {
    std::fill(counts + first, counts + end, itself);
  });
  visit([=](index_t to, index_t) { ++counts[to]; });
  parallel_lines(context.threads, out.numel(), 1, [=](index_t i) {
    if (counts[i] > 1) y[i] = mean_of(y[i], counts[i]);
  });
  return Error::ok;
}

}  // namespace

TAPER_BY_DTYPE(scatter_reduce_two, prepare_scatter, run)
TAPER_BY_DTYPE(index_reduce, prepare_index, run)

}  // namespace taper::portable
