// Elements gathered at the places that an index names by a sum, a product, a mean or an extreme:
// scatter_reduce and index_reduce. Row-major order of the index, so results are the same each time.
#include <cmath>
#include <limits>

#include "taper/kernels/portable/division.h"
#include "taper/kernels/portable/elements.h"
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

/// Integers are rounded towards minus infinity.
template <class T>
T mean_of(T sum, index_t count) {
  if constexpr (std::is_floating_point_v<T>) return sum / static_cast<T>(count);
  return static_cast<T>(floor_divide(static_cast<int64_t>(sum), static_cast<int64_t>(count)));
}

/// `visit(f)` calls f(element of out, element of src) for each index. `out` holds self; `counts`
/// has room for its elements where `reduce` is "mean".
template <class T, class Visit>
void reduce_into(T* out, index_t numel, const T* src, std::string_view reduce, bool include_self,
                 index_t* counts, const Visit& visit) {
  const bool mean = reduce == "mean";
  const T start = reduce == "prod"   ? T(1)
                  : reduce == "amax" ? lowest<T>()
                  : reduce == "amin" ? highest<T>()
                                     : T(0);
  if (!include_self) visit([=](index_t to, index_t) { out[to] = start; });
  // NaN wins
  if (reduce == "amax")
    return visit([=](index_t to, index_t from) {
      const T x = src[from];
      if (x != x || x > out[to]) out[to] = x;
    });
  if (reduce == "amin")
    return visit([=](index_t to, index_t from) {
      const T x = src[from];
      if (x != x || x < out[to]) out[to] = x;
    });
  if (reduce == "prod")
    return visit([=](index_t to, index_t from) { out[to] = wrapping_mul(out[to], src[from]); });
  visit([=](index_t to, index_t from) { out[to] = wrapping_add(out[to], src[from]); });
  if (!mean) return;
  for (index_t i = 0; i < numel; ++i) counts[i] = include_self;
  visit([=](index_t to, index_t) { ++counts[to]; });
  for (index_t i = 0; i < numel; ++i)
    if (counts[i] > 1) out[i] = mean_of(out[i], counts[i]);
}

template <class T>
Error prepare(Context& context, InPlace&, View<const T> self, int64_t, View<const int64_t>,
              View<const T>, std::string_view reduce, bool, View<T>) {
  if (reduce == "mean") context.need_scratch(static_cast<size_t>(self.numel()) * sizeof(index_t));
  return Error::ok;
}

template <class T>
Error scatter_reduce(Context& context, const InPlace&, View<const T> self, int64_t dim,
                     View<const int64_t> index, View<const T> src, std::string_view reduce,
                     bool include_self, View<T> out) {
  const int d = normalized(dim, self.rank());
  if (index.numel() > 0) TAPER_TRY(check_indices(context, index, extent_along(self.shape(), d)));
  copy_unless_in_place(self, out);
  if (index.numel() == 0) return Error::ok;
  const Along a = along(self.shape(), d, index.shape(), src.shape());
  reduce_into(out.data(), out.numel(), src.data(), reduce, include_self,
              static_cast<index_t*>(context.scratch),
              [&](const auto& combine) { for_each_target(a, index.data(), combine); });
  return Error::ok;
}

template <class T>
Error index_reduce(Context& context, const InPlace&, View<const T> self, int64_t dim,
                   View<const int64_t> index, View<const T> source, std::string_view reduce,
                   bool include_self, View<T> out) {
  const Lines lines = lines_along(self.shape(), dim);
  TAPER_TRY(check_indices(context, index, lines.extent));
  copy_unless_in_place(self, out);
  reduce_into(out.data(), out.numel(), source.data(), reduce, include_self,
              static_cast<index_t*>(context.scratch), [&](const auto& combine) {
                for (index_t o = 0; o < lines.outer; ++o)
                  for_each_slice(lines, o, index.data(), index.numel(),
                                 [&](index_t to, index_t from) {
                                   for (index_t i = 0; i < lines.inner; ++i)
                                     combine(to + i, from + i);
                                 });
              });
  return Error::ok;
}

}  // namespace

TAPER_BY_DTYPE(scatter_reduce_two, prepare, scatter_reduce)
TAPER_BY_DTYPE(index_reduce, prepare, index_reduce)

}  // namespace taper::portable
