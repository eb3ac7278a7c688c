// y[i] = b[i] + a[i] * y[i - 1] along one dimension: the gradient of running sums and products.
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/shapes/reduction.h"

namespace taper::portable {
namespace {

template <class T>
Error linear_recurrence(Context& context, View<const T> a, View<const T> b, int64_t dim,
                        View<T> out) {
  const Lines lines = lines_along(b.shape(), dim);
  const index_t inner = lines.inner, size = lines.extent * inner;
  if (out.numel() == 0) return Error::ok;
  parallel_for(context.threads, lines.outer, [&](index_t o) {
    const T *x = a.data() + o * size, *added = b.data() + o * size;
    T* y = out.data() + o * size;
    for_each_element(inner, [=](index_t k) { y[k] = added[k]; });
    for (index_t i = 1; i < lines.extent; ++i) {
      x += inner, added += inner, y += inner;
      for_each_element(inner, [=](index_t k) { y[k] = added[k] + x[k] * y[k - inner]; });
    }
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(taper_linear_recurrence, f32, linear_recurrence<float>)
TAPER_KERNEL(taper_linear_recurrence, f64, linear_recurrence<double>)

}  // namespace taper::portable
