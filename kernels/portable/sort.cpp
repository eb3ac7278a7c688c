// sort and topk along one dimension: a stable merge sort of the indices of each line. NaN counts as
// the largest value.
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/shapes/indexing.h"

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
  return sort_lines(context, plan, static_cast<index_t>(self.rank() == 0 ? values.numel() : k),
                    largest, self.data(), values.data(), indices.data());
}

}  // namespace

TAPER_KERNEL(sort, f32, prepare<float>, run<float>)
TAPER_KERNEL(sort, f64, prepare<double>, run<double>)
TAPER_KERNEL(sort, i64, prepare<int64_t>, run<int64_t>)
TAPER_KERNEL(sort, i32, prepare<int32_t>, run<int32_t>)
TAPER_KERNEL(sort, i8, prepare<int8_t>, run<int8_t>)
TAPER_KERNEL(sort, u8, prepare<uint8_t>, run<uint8_t>)
TAPER_KERNEL(sort, boolean, prepare<bool>, run<bool>)
TAPER_KERNEL(topk, f32, prepare_topk<float>, run_topk<float>)
TAPER_KERNEL(topk, f64, prepare_topk<double>, run_topk<double>)
TAPER_KERNEL(topk, i64, prepare_topk<int64_t>, run_topk<int64_t>)
TAPER_KERNEL(topk, i32, prepare_topk<int32_t>, run_topk<int32_t>)
TAPER_KERNEL(topk, u8, prepare_topk<uint8_t>, run_topk<uint8_t>)

}  // namespace taper::portable
