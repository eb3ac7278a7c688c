// Pooling of images whose channels lie last, over `Loops` (elements.h). The taps of a window are
// joined in row-major order, as they are where channels come first: the same bits.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/average.h"
#include "taper/kernels/portable/taps.h"

namespace taper::portable::channels_last {

/// The windows of (batch, height, width, channels), one for all channels.
inline Windows windows_of(const Shape& self, const Shape& result, Span<const int64_t> kernel_size,
                          Span<const int64_t> stride, Span<const int64_t> padding,
                          Span<const int64_t> dilation) {
  const auto image = [](Shape shape) {
    shape.rank = 3;  // (batch, height, width)
    return shape;
  };
  return portable::windows_of(image(self), image(result), kernel_size, stride, padding, dilation,
                              2);
}

/// Fewer channels than a vector has lanes.
inline constexpr index_t few_channels = 16;

/// Copies n pixels that lie `step` apart, one behind the other. `left`: elements from the first one
/// to the end of the image. Up to few_channels elements behind the last pixel are overwritten.
template <index_t width, class T>
void collect(const T* x, index_t step, index_t channels, index_t n, index_t left, T* to) {
  index_t i = 0;
  for (; i < n && i * step + width <= left; ++i)
    for (index_t c = 0; c < width; ++c) to[i * channels + c] = x[i * step + c];
  for (; i < n; ++i)
    for (index_t c = 0; c < channels; ++c) to[i * channels + c] = x[i * step + c];
}

/// The taps of a row of windows at `height`, joined. x: an image. With few channels, the same tap
/// of several windows is collected first, so that vectors join these windows.
template <class Join, class T>
void pool_row(const Windows& p, index_t channels, const T* x, index_t height, T* y) {
  constexpr index_t most = 96;  // elements of collected taps
  T collected[taps::most_taps + 1][most + few_channels];
  const index_t kernel_w = static_cast<index_t>(p.window[2].kernel);
  const bool is_inside = p.tap(2, 0, 0) >= 0 && p.tap(2, p.out[2] - 1, kernel_w - 1) < p.in[2],
             collects = is_inside && channels > 0 && channels < few_channels;
  const index_t at_once = collects ? most / channels : 1,
                step = static_cast<index_t>(p.window[2].stride) * channels,
                elements = p.in[1] * p.in[2] * channels;
  for (index_t o = 0; o < p.out[2]; o += at_once) {
    const index_t n = p.out[2] - o < at_once ? p.out[2] - o : at_once;
    taps::Taps<Join, T> taps(n * channels, y + o * channels);
    int place = 0;  // taps that are not joined yet keep theirs
    for (index_t kh = 0; kh < p.window[1].kernel; ++kh) {
      const index_t h = p.tap(1, height, kh);
      if (h < 0 || h >= p.in[1]) continue;
      for (index_t kw = 0; kw < kernel_w; ++kw) {
        const index_t w = p.tap(2, o, kw), at = (h * p.in[2] + w) * channels;
        if (w < 0 || w >= p.in[2]) continue;
        T* const to = collected[place];
        if (collects && channels <= few_channels / 2)
          collect<few_channels / 2>(x + at, step, channels, n, elements - at, to);
        else if (collects)
          collect<few_channels>(x + at, step, channels, n, elements - at, to);
        place = place == taps::most_taps ? 0 : place + 1;
        taps.add(collects ? to : x + at);
      }
    }
    taps.finish();
  }
}
/// And what the sums are divided by.
template <class T>
void average_row(const Average& p, index_t channels, const T* x, index_t height, T* y) {
  pool_row<taps::Total>(p.windows, channels, x, height, y);
  const Divisors divisors(p, 0, height);
  for (index_t o = 0; o < p.windows.out[2]; ++o, y += channels) {
    const index_t divisor = divisors[o];
    T* mean = y;
    for_each_element(channels, [=](index_t c) { mean[c] = mean_of(mean[c], divisor); });
  }
}

/// Calls row(image, height, results) for each row of windows, in parallel.
template <class T, class Row>
void for_each_row(const Threads* threads, const Windows& p, index_t channels, const T* x, T* y,
                  const Row& row) {
  constexpr index_t grain = 16384;  // elements that a task joins, at least
  const index_t height = p.out[1], rows = p.planes * height, length = p.out[2] * channels;
  const int64_t taps = p.window[1].kernel * p.window[2].kernel;
  const index_t work = taps < grain ? length * static_cast<index_t>(taps) : grain,
                per_task = work < grain ? grain / work : 1;
  parallel_for(threads, pieces(rows, per_task), [&](index_t task) {
    const index_t begin = task * per_task, end = begin + per_task < rows ? begin + per_task : rows;
    for (index_t r = begin; r < end; ++r)
      row(x + r / height * p.in_plane() * channels, r % height, y + r * length);
  });
}

template <class T>
Error prepare_max(Context&, Windows& plan, View<const T> self, Span<const int64_t> kernel_size,
                  Span<const int64_t> stride, Span<const int64_t> padding,
                  Span<const int64_t> dilation, bool, View<T> out) {
  plan = windows_of(self.shape(), out.shape(), kernel_size, stride, padding, dilation);
  return Error::ok;
}
template <class Loops, class T>
Error max(Context& context, const Windows& plan, View<const T> self, Span<const int64_t>,
          Span<const int64_t>, Span<const int64_t>, Span<const int64_t>, bool, View<T> out) {
  const index_t channels = self.size(3);
  for_each_row(context.threads, plan, channels, self.data(), out.data(),
               [&](const T* x, index_t height, T* y) {
                 Loops::template call<pool_row<taps::Greatest, T>>(plan, channels, x, height, y);
               });
  return Error::ok;
}

template <class T>
Error prepare_average(Context&, Average& plan, View<const T> self, Span<const int64_t> kernel_size,
                      Span<const int64_t> stride, Span<const int64_t> padding, bool,
                      bool count_include_pad, Maybe<int64_t> divisor_override, View<T> out) {
  plan = {windows_of(self.shape(), out.shape(), kernel_size, stride, padding, {}),
          count_include_pad, divisor_override ? *divisor_override : 0};
  return Error::ok;
}
template <class Loops, class T>
Error average(Context& context, const Average& plan, View<const T> self, Span<const int64_t>,
              Span<const int64_t>, Span<const int64_t>, bool, bool, Maybe<int64_t>, View<T> out) {
  const index_t channels = self.size(3);
  for_each_row(context.threads, plan.windows, channels, self.data(), out.data(),
               [&](const T* x, index_t height, T* y) {
                 Loops::template call<average_row<T>>(plan, channels, x, height, y);
               });
  return Error::ok;
}

}  // namespace taper::portable::channels_last
