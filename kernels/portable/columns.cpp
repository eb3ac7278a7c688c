// im2col copies the windows of an image into the columns of a matrix. col2im adds such columns to
// an image. Each is the gradient of the other.
#include "taper/kernels/shapes/columns.h"

#include "taper/kernels/portable/pays.h"
#include "taper/kernels/portable/rows.h"
#include "taper/kernels/portable/windows.h"

namespace taper::portable {
namespace {

/// The windows of an image. Its matrix of columns has kernel_elements() rows for each channel.
Windows windows_in(const Shape& image, Span<const int64_t> kernel_size,
                   Span<const int64_t> dilation, Span<const int64_t> padding,
                   Span<const int64_t> stride) {
  Windows p = windows_of(image, image, kernel_size, stride, padding, dilation, 2);
  for (int d = 1; d < 3; ++d) {
    const Window& w = p.window[d];
    p.out[d] = static_cast<index_t>(
        (p.in[d] + 2 * w.padding - w.dilation * (w.kernel - 1) - 1) / w.stride + 1);
  }
  return p;
}
index_t kernel_elements(const Windows& p) {
  return static_cast<index_t>(p.window[1].kernel * p.window[2].kernel);
}

/// For tap `k` of the kernel, calls f(row, begin, end, offset) for each row of windows. Windows
/// [begin, end) meet the image there, the first of them at `offset`; each further one lies a stride
/// behind.
template <class F>
void for_each_line(const Windows& p, index_t k, const F& f) {
  const index_t width = static_cast<index_t>(p.window[2].kernel);
  index_t begin, end;
  p.inside(2, k % width, begin, end);
  for (index_t h = 0; h < p.out[1]; ++h) {
    const index_t row = p.tap(1, h, k / width);
    const bool meets = row >= 0 && row < p.in[1] && begin < end;
    f(h, meets ? begin : p.out[2], meets ? end : p.out[2],
      meets ? row * p.in[2] + p.tap(2, begin, k % width) : 0);
  }
}

template <class T>
Error prepare_im2col(Context&, Windows& p, View<const T> self, Span<const int64_t> kernel_size,
                     Span<const int64_t> dilation, Span<const int64_t> padding,
                     Span<const int64_t> stride, View<T>) {
  p = windows_in(self.shape(), kernel_size, dilation, padding, stride);
  return Error::ok;
}
template <class T>
Error im2col(Context& context, const Windows& p, View<const T> self, Span<const int64_t>,
             Span<const int64_t>, Span<const int64_t>, Span<const int64_t>, View<T> out) {
  const index_t taps = kernel_elements(p), step = static_cast<index_t>(p.window[2].stride);
  const Threads* threads = if_it_pays(context.threads, p.planes * taps * p.out_plane());
  parallel_for(threads, p.planes * taps, [&](index_t task) {
    const T* x = self.data() + task / taps * p.in_plane();
    for_each_line(p, task % taps, [&](index_t h, index_t begin, index_t end, index_t from) {
      T* y = out.data() + task * p.out_plane() + h * p.out[2];
      for (index_t i = 0; i < begin; ++i) y[i] = T{};
      for (index_t i = begin; i < end; ++i) y[i] = x[from + (i - begin) * step];
      for (index_t i = end; i < p.out[2]; ++i) y[i] = T{};
    });
  });
  return Error::ok;
}

template <class T>
Error prepare_col2im(Context&, Windows& p, View<const T>, Span<const int64_t>,
                     Span<const int64_t> kernel_size, Span<const int64_t> dilation,
                     Span<const int64_t> padding, Span<const int64_t> stride, View<T> out) {
  p = windows_in(out.shape(), kernel_size, dilation, padding, stride);
  return Error::ok;
}
template <class T>
Error col2im(Context& context, const Windows& p, View<const T> self, Span<const int64_t>,
             Span<const int64_t>, Span<const int64_t>, Span<const int64_t>, Span<const int64_t>,
             View<T> out) {
  const index_t taps = kernel_elements(p), step = static_cast<index_t>(p.window[2].stride);
  const Threads* threads = if_it_pays(context.threads, p.planes * taps * p.out_plane());
  parallel_for(threads, p.planes, [&](index_t plane) {
    T* y = out.data() + plane * p.in_plane();
    for (index_t i = 0; i < p.in_plane(); ++i) y[i] = 0;
    for (index_t k = 0; k < taps; ++k)
      for_each_line(p, k, [&](index_t h, index_t begin, index_t end, index_t to) {
        const T* x = self.data() + (plane * taps + k) * p.out_plane() + h * p.out[2];
        for (index_t i = begin; i < end; ++i) y[to + (i - begin) * step] += x[i];
      });
  });
  return Error::ok;
}

}  // namespace

TAPER_BY_SIZE(im2col, prepare_im2col, im2col)
TAPER_KERNEL(col2im, f32, prepare_col2im<float>, col2im<float>)
TAPER_KERNEL(col2im, f64, prepare_col2im<double>, col2im<double>)

}  // namespace taper::portable
