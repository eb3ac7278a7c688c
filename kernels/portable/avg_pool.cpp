// Average pooling over 1, 2 or 3 dimensions, and the gradient of the one over 2.
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/average.h"
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/portable/pays.h"
#include "taper/kernels/shapes/pooling.h"

namespace taper::portable {
namespace {

template <class T>
void forward(const Context& context, const Average& p, const T* self, T* out) {
  const Windows& w = p.windows;
  const Threads* threads = if_it_pays(context.threads, w.planes * w.in_plane());
  parallel_for(threads, w.planes, [&](index_t plane) {
    const T* x = self + plane * w.in_plane();
    T* y = out + plane * w.out_plane();
    for (index_t d = 0; d < w.out[0]; ++d)
      for (index_t h = 0; h < w.out[1]; ++h, y += w.out[2]) {
        for (index_t o = 0; o < w.out[2]; ++o) y[o] = 0;
        for_each_tap(w, d, h, [&](index_t from, index_t step, index_t begin, index_t end) {
          T* to = y + begin;
          for_each_element(end - begin,
                           [=](index_t o) { to[o] = wrapping_add(to[o], x[from + o * step]); });
        });
        const Divisors divisors(p, d, h);
        for (index_t o = 0; o < w.out[2]; ++o) y[o] = mean_of(y[o], divisors[o]);
      }
  });
}

/// Windows whose shares are computed before they are added.
constexpr index_t share_block = 256;

/// Adds what windows [first, last) of the row at (depth, height) give to each element they cover.
template <class T>
void spread(const Average& p, index_t depth, index_t height, index_t first, index_t last,
            const T* dy, T* dx) {
  T share[share_block];
  const Divisors divisors(p, depth, height);
  for (index_t o = first; o < last; ++o) share[o - first] = dy[o] / static_cast<T>(divisors[o]);
  for_each_tap(p.windows, depth, height,
               [&](index_t from, index_t step, index_t begin, index_t end) {
                 const index_t low = begin > first ? begin : first, high = end < last ? end : last;
                 T* to = dx + from + (low - begin) * step;
                 for (index_t o = low; o < high; ++o, to += step) *to += share[o - first];
               });
}

template <class T>
void backward(const Context& context, const Average& p, const T* grad_output, T* out) {
  const Windows& w = p.windows;
  const Threads* threads = if_it_pays(context.threads, w.planes * w.in_plane());
  parallel_for(threads, w.planes, [&](index_t plane) {
    const T* dy = grad_output + plane * w.out_plane();
    T* dx = out + plane * w.in_plane();
    for (index_t i = 0; i < w.in_plane(); ++i) dx[i] = 0;
    for (index_t d = 0; d < w.out[0]; ++d)
      for (index_t h = 0; h < w.out[1]; ++h, dy += w.out[2])
        for (index_t o = 0; o < w.out[2]; o += share_block)
          spread(p, d, h, o, o + share_block < w.out[2] ? o + share_block : w.out[2], dy, dx);
  });
}

template <class T>
Error prepare1d(Context&, Average& p, View<const T> self, Span<const int64_t> kernel_size,
                Span<const int64_t> stride, Span<const int64_t> padding, bool,
                bool count_include_pad, View<T> out) {
  p = {windows_of(self.shape(), out.shape(), kernel_size, stride, padding, {}, 1),
       count_include_pad, 0};
  return Error::ok;
}
template <class T>
Error run1d(Context& context, const Average& p, View<const T> self, Span<const int64_t>,
            Span<const int64_t>, Span<const int64_t>, bool, bool, View<T> out) {
  forward(context, p, self.data(), out.data());
  return Error::ok;
}

template <int n, class T>
Error prepare(Context&, Average& p, View<const T> self, Span<const int64_t> kernel_size,
              Span<const int64_t> stride, Span<const int64_t> padding, bool, bool count_include_pad,
              Maybe<int64_t> divisor_override, View<T> out) {
  p = {windows_of(self.shape(), out.shape(), kernel_size, stride, padding, {}, n),
       count_include_pad, divisor_override ? *divisor_override : 0};
  return Error::ok;
}
template <class T>
Error run(Context& context, const Average& p, View<const T> self, Span<const int64_t>,
          Span<const int64_t>, Span<const int64_t>, bool, bool, Maybe<int64_t>, View<T> out) {
  forward(context, p, self.data(), out.data());
  return Error::ok;
}

template <class T>
Error prepare_backward(Context&, Average& p, View<const T> grad_output, View<const T> self,
                       Span<const int64_t> kernel_size, Span<const int64_t> stride,
                       Span<const int64_t> padding, bool, bool count_include_pad,
                       Maybe<int64_t> divisor_override, View<T>) {
  p = {windows_of(self.shape(), grad_output.shape(), kernel_size, stride, padding, {}, 2),
       count_include_pad, divisor_override ? *divisor_override : 0};
  return Error::ok;
}
template <class T>
Error run_backward(Context& context, const Average& p, View<const T> grad_output, View<const T>,
                   Span<const int64_t>, Span<const int64_t>, Span<const int64_t>, bool, bool,
                   Maybe<int64_t>, View<T> out) {
  backward(context, p, grad_output.data(), out.data());
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(avg_pool1d, f32, prepare1d<float>, run1d<float>)
TAPER_KERNEL(avg_pool1d, f64, prepare1d<double>, run1d<double>)
TAPER_KERNEL(avg_pool1d, i64, prepare1d<int64_t>, run1d<int64_t>)
TAPER_KERNEL(avg_pool2d, f32, prepare<2, float>, run<float>)
TAPER_KERNEL(avg_pool2d, f64, prepare<2, double>, run<double>)
TAPER_KERNEL(avg_pool2d, i64, prepare<2, int64_t>, run<int64_t>)
TAPER_KERNEL(avg_pool3d, f32, prepare<3, float>, run<float>)
TAPER_KERNEL(avg_pool3d, f64, prepare<3, double>, run<double>)
TAPER_KERNEL(avg_pool3d, i64, prepare<3, int64_t>, run<int64_t>)
TAPER_KERNEL(avg_pool2d_backward, f32, prepare_backward<float>, run_backward<float>)
TAPER_KERNEL(avg_pool2d_backward, f64, prepare_backward<double>, run_backward<double>)

}  // namespace taper::portable
