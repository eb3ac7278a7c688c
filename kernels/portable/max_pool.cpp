// Max pooling over 2 or 3 dimensions, with the position of each maximum in its plane, and its
// gradient.
#include "taper/kernels/portable/max_pool.h"

#include "taper/kernels/portable/index_check.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/maximum.h"
#include "taper/kernels/portable/pays.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/portable/windows.h"
#include "taper/kernels/shapes/pooling.h"

namespace taper::portable {
namespace {

/// One row of results: y[w] and position[w] for the windows at (depth, height). Taps are compared
/// in row-major order, so that the first of equal maxima wins; a NaN wins over everything. Of a
/// window that meets only padding the position is -1.
template <class T>
void max_row(const Windows& p, const T* x, index_t depth, index_t height, T* y, int64_t* position) {
  const index_t d = p.first_inside(0, depth), h = p.first_inside(1, height);
  for (index_t o = 0; o < p.out[2]; ++o) {
    const index_t w = p.first_inside(2, o);
    y[o] = lowest<T>(),
    position[o] = d < 0 || h < 0 || w < 0 ? -1 : (d * p.in[1] + h) * p.in[2] + w;
  }
  for_each_tap(p, depth, height, [=](index_t from, index_t step, index_t begin, index_t end) {
    T* best = y + begin;
    int64_t* where = position + begin;
    for_each_element(end - begin, [=](index_t o) {
      const T v = x[from + o * step];
      const bool better = v > best[o] || v != v;
      best[o] = better ? v : best[o];
      where[o] = better ? from + o * step : where[o];
    });
  });
}

template <int n, class T>
Error prepare(Context&, Windows& plan, View<const T> self, Span<const int64_t> kernel_size,
              Span<const int64_t> stride, Span<const int64_t> padding, Span<const int64_t> dilation,
              bool, View<T> out, View<int64_t>) {
  plan = windows_of(self.shape(), out.shape(), kernel_size, stride, padding, dilation, n);
  return Error::ok;
}

template <class T>
Error forward(Context& context, const Windows& p, View<const T> self, Span<const int64_t>,
              Span<const int64_t>, Span<const int64_t>, Span<const int64_t>, bool, View<T> out,
              View<int64_t> indices) {
  const Threads* threads = if_it_pays(context.threads, p.planes * p.in_plane());
  parallel_for(threads, p.planes, [&](index_t plane) {
    const T* x = self.data() + plane * p.in_plane();
    index_t at = plane * p.out_plane();
    for (index_t d = 0; d < p.out[0]; ++d)
      for (index_t h = 0; h < p.out[1]; ++h, at += p.out[2])
        max_row(p, x, d, h, out.data() + at, indices.data() + at);
  });
  return Error::ok;
}

/// The gradient of each maximum goes to where it was found, that of padding nowhere; windows that
/// share one add up in row-major order.
template <class T>
Error backward(Context& context, View<const T> grad_output, View<const T> self, Span<const int64_t>,
               Span<const int64_t>, Span<const int64_t>, Span<const int64_t>, bool,
               View<const int64_t> indices, View<T> out) {
  const index_t in_plane = self.size(-1) * self.size(-2),
                out_plane = indices.size(-1) * indices.size(-2);
  const index_t planes = out.numel() / in_plane;
  TAPER_TRY(check_indices(context, indices, in_plane, -1));
  const Threads* threads = if_it_pays(context.threads, planes * in_plane);
  parallel_for(threads, planes, [&](index_t plane) {
    T* dx = out.data() + plane * in_plane;
    const T* dy = grad_output.data() + plane * out_plane;
    const int64_t* at = indices.data() + plane * out_plane;
    for (index_t i = 0; i < in_plane; ++i) dx[i] = 0;
    for (index_t i = 0; i < out_plane; ++i)
      if (at[i] >= 0) dx[at[i]] += dy[i];
  });
  return Error::ok;
}

}  // namespace

#define TAPER_MAX_POOL(variant, T, n) \
  TAPER_KERNEL(max_pool##n##d_with_indices, variant, prepare<n, T>, forward<T>)
TAPER_NUMBERS(TAPER_MAX_POOL, 2)
TAPER_NUMBERS(TAPER_MAX_POOL, 3)
TAPER_KERNEL(max_pool2d, f32, max_pool::prepare<float>, max_pool::forward<PlainLoops, float>)
TAPER_KERNEL(max_pool2d_with_indices_backward, f32, backward<float>)
TAPER_KERNEL(max_pool2d_with_indices_backward, f64, backward<double>)

}  // namespace taper::portable
