// The places of values among sorted ones, by binary search: searchsorted and bucketize.
#include "taper/kernels/portable/elements.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {
namespace {

/// The sorted values of one line. With `order`, value i is at[order[i]].
template <class T>
struct Sorted {
  const T* at;
  const int64_t* order;
  index_t count;
  T operator[](index_t i) const { return order ? at[static_cast<index_t>(order[i])] : at[i]; }
};

/// How many values are less than x, or with `right`, not greater than x. NaN counts as the
/// greatest.
template <class T>
index_t place_of(const Sorted<T>& sorted, T x, bool right) {
  index_t begin = 0, end = sorted.count;
  while (begin < end) {
    const index_t middle = begin + (end - begin) / 2;
    const T y = sorted[middle];
    if (right ? !(y > x) : !(y >= x))
      begin = middle + 1;
    else
      end = middle;
  }
  return begin;
}

/// Searches each line of self in the sorted line of the same number, or in the only one
/// (`one_line`).
template <class T>
void search(Context& context, Sorted<T> sorted, bool one_line, index_t width, View<const T> self,
            bool right, View<AnyElement> out) {
  const T* x = self.data();
  parallel_lines(context.threads, self.numel(), 1, [&](index_t i) {
    const index_t first = one_line ? 0 : i / width * sorted.count;
    const Sorted<T> line{sorted.at + first, sorted.order ? sorted.order + first : nullptr,
                         sorted.count};
    const index_t place = place_of(line, x[i], right);
    if (out.dtype() == DType::i32)
      static_cast<int32_t*>(out.ref->data)[i] = static_cast<int32_t>(place);
    else
      static_cast<int64_t*>(out.ref->data)[i] = place;
  });
}

template <class T>
Error searchsorted(Context& context, View<const T> sorted, View<const T> self, bool, bool right,
                   Maybe<std::string_view> side, Maybe<View<const int64_t>> sorter,
                   View<AnyElement> out) {
  const index_t extent = sorted.size(-1);
  if (sorter) {
    const int64_t* order = sorter->data();
    for (index_t i = 0; i < sorter->numel(); ++i)
      if (order[i] < 0 || order[i] >= extent)
        return context.fail(Error::invalid_argument, TAPER_TEXT("sorter {} is outside [0, {})"),
                            order[i], extent);
  }
  search(context, Sorted<T>{sorted.data(), sorter ? sorter->data() : nullptr, extent},
         sorted.rank() == 1, self.rank() > 0 ? self.size(-1) : 1, self,
         right || (side && *side == "right"), out);
  return Error::ok;
}

template <class T>
Error bucketize(Context& context, View<const T> self, View<const T> boundaries, bool, bool right,
                View<AnyElement> out) {
  search(context, Sorted<T>{boundaries.data(), nullptr, boundaries.numel()}, true, 1, self, right,
         out);
  return Error::ok;
}

}  // namespace

TAPER_BY_NUMBER(searchsorted_Tensor, searchsorted)
TAPER_BY_NUMBER(bucketize_Tensor, bucketize)

}  // namespace taper::portable
