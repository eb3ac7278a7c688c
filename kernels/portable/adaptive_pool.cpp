// Adaptive average and maximum pooling. Along a dimension of extent `in`, window i of n covers
// [floor(i in / n), ceil((i + 1) in / n)).
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/lines.h"
#include "taper/kernels/portable/maximum.h"
#include "taper/kernels/portable/pays.h"
#include "taper/kernels/portable/windows.h"
#include "taper/kernels/shapes/pooling.h"

namespace taper::portable {
namespace {

/// Windows that divide a dimension into as many parts as the result has elements.
struct Adaptive : Pooled {
  index_t begin(int d, index_t i) const { return i * in[d] / out[d]; }
  index_t end(int d, index_t i) const { return pieces((i + 1) * in[d], out[d]); }
};

/// Calls body(number of the window, elements in it, visit) in row-major order. visit(f) calls
/// f(first element, count) for each row of the window.
template <class Body>
void for_each_window(const Adaptive& p, const Body& body) {
  index_t window = 0;
  for (index_t a = 0; a < p.out[0]; ++a)
    for (index_t b = 0; b < p.out[1]; ++b)
      for (index_t c = 0; c < p.out[2]; ++c, ++window) {
        const index_t d0 = p.begin(0, a), d1 = p.end(0, a), h0 = p.begin(1, b), h1 = p.end(1, b),
                      w0 = p.begin(2, c), w1 = p.end(2, c);
        body(window, (d1 - d0) * (h1 - h0) * (w1 - w0), [&](const auto& row) {
          for (index_t d = d0; d < d1; ++d)
            for (index_t h = h0; h < h1; ++h) row((d * p.in[1] + h) * p.in[2] + w0, w1 - w0);
        });
      }
}

/// The averages of the windows at depth a and height b, which lie side by side. The function takes
/// as many of them at a time as fit into one line. It adds their rows to the line, then sums the
/// part of the line that belongs to each window.
template <class T>
void row_of_windows(const Adaptive& p, const T* x, index_t a, index_t b, T* y) {
  constexpr index_t longest = 256;
  const index_t d0 = p.begin(0, a), d1 = p.end(0, a), h0 = p.begin(1, b), h1 = p.end(1, b),
                rows = (d1 - d0) * (h1 - h0);
  for (index_t c = 0, next; c < p.out[2]; c = next) {
    const index_t first = p.begin(2, c);
    index_t last = p.end(2, c);
    T sum = 0;  // a window that is too long for the line is summed piece by piece
    T line[longest];
    const auto add_rows = [&](index_t from, index_t n) {
      for (index_t i = 0; i < n; ++i) line[i] = 0;
      for (index_t d = d0; d < d1; ++d)
        for (index_t h = h0; h < h1; ++h) {
          const T* row = x + (d * p.in[1] + h) * p.in[2] + from;
          TAPER_INDEPENDENT_ITERATIONS
          for (index_t i = 0; i < n; ++i) line[i] += row[i];
        }
    };
    next = c + 1;
    if (last - first > longest) {
      for (index_t at = first; at < last; at += longest) {
        const index_t n = last - at < longest ? last - at : longest;
        add_rows(at, n);
        sum += sum_of<T>(n, [&](index_t i) { return line[i]; });
      }
      y[c] = sum / static_cast<T>(rows * (last - first));
      continue;
    }
    for (; next < p.out[2] && p.end(2, next) - first <= longest; ++next) last = p.end(2, next);
    add_rows(first, last - first);
    for (index_t k = c; k < next; ++k) {
      const index_t begin = p.begin(2, k), n = p.end(2, k) - begin;
      const T* part = line + (begin - first);
      sum = 0;
      if (n < lane_count)
        for (index_t i = 0; i < n; ++i) sum += part[i];
      else
        sum = sum_of<T>(n, [=](index_t i) { return part[i]; });
      y[k] = sum / static_cast<T>(rows * n);
    }
  }
}

template <class T>
void forward(const Context& context, const Adaptive& p, const T* self, T* out) {
  if (p.out_plane() == 1) {  // one window
    const index_t n = p.in_plane();
    parallel_lines(context.threads, p.planes, n, [=](index_t i) {
      const T* x = self + i * n;
      out[i] = sum_of<T>(n, [=](index_t k) { return x[k]; }) / static_cast<T>(n);
    });
    return;
  }
  const Threads* threads = if_it_pays(context.threads, p.planes * p.in_plane());
  parallel_for(threads, p.planes, [&](index_t plane) {
    const T* x = self + plane * p.in_plane();
    T* y = out + plane * p.out_plane();
    for (index_t a = 0; a < p.out[0]; ++a)
      for (index_t b = 0; b < p.out[1]; ++b, y += p.out[2]) row_of_windows(p, x, a, b, y);
  });
}

template <class T>
void backward(const Context& context, const Adaptive& p, const T* grad_output, T* out) {
  const Threads* threads = if_it_pays(context.threads, p.planes * p.in_plane());
  parallel_for(threads, p.planes, [&](index_t plane) {
    const T* dy = grad_output + plane * p.out_plane();
    T* dx = out + plane * p.in_plane();
    for (index_t i = 0; i < p.in_plane(); ++i) dx[i] = 0;
    for_each_window(p, [&](index_t window, index_t count, const auto& visit) {
      const T share = dy[window] / static_cast<T>(count);
      visit([&](index_t from, index_t n) {
        for (index_t i = 0; i < n; ++i) dx[from + i] += share;
      });
    });
  });
}

template <int n, class T>
Error prepare(Context&, Adaptive& p, View<const T> self, Span<const int64_t>, View<T> out) {
  p = {pooled_of(self.shape(), out.shape(), n)};
  return Error::ok;
}
template <class T>
Error run(Context& context, const Adaptive& p, View<const T> self, Span<const int64_t>,
          View<T> out) {
  forward(context, p, self.data(), out.data());
  return Error::ok;
}
template <class T>
Error prepare_backward(Context&, Adaptive& p, View<const T> grad_output, View<const T> self,
                       View<T>) {
  p = {pooled_of(self.shape(), grad_output.shape(), 2)};
  return Error::ok;
}
template <class T>
Error run_backward(Context& context, const Adaptive& p, View<const T> grad_output, View<const T>,
                   View<T> out) {
  backward(context, p, grad_output.data(), out.data());
  return Error::ok;
}

template <int n, class T>
Error prepare_max(Context&, Adaptive& p, View<const T> self, Span<const int64_t>, View<T> out,
                  View<int64_t>) {
  p = {pooled_of(self.shape(), out.shape(), n)};
  return Error::ok;
}
template <class T>
Error run_max(Context& context, const Adaptive& p, View<const T> self, Span<const int64_t>,
              View<T> out, View<int64_t> indices) {
  const Threads* threads = if_it_pays(context.threads, p.planes * p.in_plane());
  parallel_for(threads, p.planes, [&](index_t plane) {
    const T* x = self.data() + plane * p.in_plane();
    for_each_window(p, [&](index_t window, index_t, const auto& visit) {
      Peak<T> best{-1};
      visit([&](index_t from, index_t n) {
        if (best.at < 0) best.at = from;
        for (index_t i = 0; i < n; ++i) best.see(x[from + i], from + i);
      });
      out.data()[plane * p.out_plane() + window] = best.value;
      indices.data()[plane * p.out_plane() + window] = best.at;
    });
  });
  return Error::ok;
}

}  // namespace

#define TAPER_ADAPTIVE_MAX_POOL(n)                                                  \
  TAPER_KERNEL(adaptive_max_pool##n##d, f32, prepare_max<n, float>, run_max<float>) \
  TAPER_KERNEL(adaptive_max_pool##n##d, f64, prepare_max<n, double>, run_max<double>)
TAPER_ADAPTIVE_MAX_POOL(1)
TAPER_ADAPTIVE_MAX_POOL(2)
TAPER_ADAPTIVE_MAX_POOL(3)
TAPER_KERNEL(adaptive_avg_pool1d, f32, prepare<1, float>, run<float>)
TAPER_KERNEL(adaptive_avg_pool1d, f64, prepare<1, double>, run<double>)
TAPER_KERNEL(_adaptive_avg_pool2d, f32, prepare<2, float>, run<float>)
TAPER_KERNEL(_adaptive_avg_pool2d, f64, prepare<2, double>, run<double>)
TAPER_KERNEL(_adaptive_avg_pool3d, f32, prepare<3, float>, run<float>)
TAPER_KERNEL(_adaptive_avg_pool3d, f64, prepare<3, double>, run<double>)
TAPER_KERNEL(_adaptive_avg_pool2d_backward, f32, prepare_backward<float>, run_backward<float>)
TAPER_KERNEL(_adaptive_avg_pool2d_backward, f64, prepare_backward<double>, run_backward<double>)

}  // namespace taper::portable
