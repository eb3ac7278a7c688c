// Which boxes remain of those that overlap: greedy non-maximum suppression. The overlap of two
// boxes is the area that they share, divided by the area that they cover together.
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/index_check.h"
#include "taper/kernels/shapes/detection.h"

namespace taper::portable {
namespace {

/// std::max and std::min as functions of the first argument: a NaN in `b` has no effect.
template <class T>
T larger(T a, T b) {
  return a < b ? b : a;
}
template <class T>
T smaller(T a, T b) {
  return b < a ? b : a;
}

/// The boxes in their order, a column for each number, so that the loop over them vectorises.
template <class T>
struct Columns {
  T *x1, *y1, *x2, *y2, *area;

  static constexpr int count = 5;
  Columns(void* scratch, index_t n)
      : x1(static_cast<T*>(scratch)), y1(x1 + n), x2(y1 + n), y2(x2 + n), area(y2 + n) {}

  void put(index_t i, const T* box) {
    x1[i] = box[0], y1[i] = box[1], x2[i] = box[2], y2[i] = box[3];
    area[i] = (box[2] - box[0]) * (box[3] - box[1]);
  }
  T overlap(index_t i, index_t j) const {
    const T width = smaller(x2[i], x2[j]) - larger(x1[i], x1[j]);
    const T height = smaller(y2[i], y2[j]) - larger(y1[i], y1[j]);
    const T shared = larger(T(0), width) * larger(T(0), height);
    return shared / (area[i] + area[j] - shared);
  }
};

struct Nothing {};

template <class T>
Error prepare(Context& context, Nothing&, View<const T>, View<const int64_t> order, double,
              View<bool>) {
  context.need_scratch(static_cast<size_t>(order.numel()) * Columns<T>::count * sizeof(T));
  return Error::ok;
}

template <class T>
Error run(Context& context, const Nothing&, View<const T> boxes, View<const int64_t> order,
          double iou_threshold, View<bool> out) {
  const index_t n = order.numel();
  TAPER_TRY(check_indices(context, order, boxes.size(0)));
  Columns<T> columns(context.scratch, n);
  bool* keep = out.data();
  for (index_t i = 0; i < n; ++i)
    columns.put(i, boxes.data() + order.data()[i] * 4), keep[i] = true;
  for (index_t i = 0; i < n; ++i) {
    if (!keep[i]) continue;
    for (index_t j = i + 1; j < n; ++j)
      keep[j] = keep[j] & !(static_cast<double>(columns.overlap(i, j)) > iou_threshold);
  }
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_nms_keep, f32, prepare<float>, run<float>)
TAPER_KERNEL(taper_nms_keep, f64, prepare<double>, run<double>)

}  // namespace taper::portable
