// Max pooling over height and width without positions, over `Loops` (elements.h): the values that
// max_pool2d_with_indices gives, bit for bit.
//
// The largest element of a window is the largest of the maxima of its rows, taken from top to
// bottom. A row of the input is reduced to its windows' maxima once, and these serve all windows
// that it meets.
#pragma once
#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/pays.h"
#include "taper/kernels/portable/taps.h"
#include "taper/kernels/portable/windows.h"

namespace taper::portable::max_pool {

/// Windows side by side that are computed together; the rows and columns that a window may span for
/// that, and its largest step.
inline constexpr index_t tile = 128, most_rows = 8, most_columns = 16, most_stride = 4;

struct Plan : Windows {
  bool shares_rows;  ///< the maxima of rows, as above
  index_t strip;     ///< rows of windows that one task computes
  index_t strips() const { return pieces(out[1], strip); }
};

inline Plan plan_of(const Windows& windows) {
  Plan p{windows, false, 0};
  const Window &h = p.window[1], &w = p.window[2];
  p.shares_rows = (h.kernel - 1) * h.dilation < most_rows &&
                  (w.kernel - 1) * w.dilation < most_columns && w.kernel <= taps::most_taps &&
                  w.stride <= most_stride;
  constexpr index_t grain = 16384;  // results of a task, at least
  p.strip = p.out[2] < grain ? pieces(grain, p.out[2]) : 1;
  if (p.strip > p.out[1]) p.strip = p.out[1];
  return p;
}

/// y[k][begin + i] = x[i * stride + k] for every k.
template <class T>
void separate(const T* x, index_t stride, index_t n, index_t begin, T* const* y) {
  T* a = y[0] + begin;
  if (stride == 1) {
    for_each_element(n, [=](index_t i) { a[i] = x[i]; });
    return;
  }
  T* b = y[1] + begin;
  if (stride == 2) {
    TAPER_INDEPENDENT_ITERATIONS
    for (index_t i = 0; i < n; ++i) a[i] = x[2 * i], b[i] = x[2 * i + 1];
    return;
  }
  for (index_t k = 0; k < stride; ++k) {
    a = y[k] + begin;
    for (index_t i = 0; i < n; ++i) a[i] = x[i * stride + k];
  }
}

/// The maxima of a row's windows.
template <class T>
class RowMaxima {
 public:
  explicit RowMaxima(const Windows& p) : p_(p), stride_(static_cast<index_t>(p.window[2].stride)) {
    for (index_t k = 0; k < stride_; ++k) phases_[k] = elements_ + k * phase_length(stride_);
  }
  /// Of windows [first, first + n), at most a tile, in the row x.
  void compute(const T* x, index_t first, index_t n, T* y) {
    const int kernel = static_cast<int>(p_.window[2].kernel);
    const index_t step = static_cast<index_t>(p_.window[2].dilation), begin = p_.tap(2, first, 0),
                  length = (n - 1) * stride_ + (kernel - 1) * step + 1;
    const T* taps[taps::most_taps];
    if (stride_ == 1 && begin >= 0 && begin + length <= p_.in[2]) {
      for (int k = 0; k < kernel; ++k) taps[k] = x + begin + k * step;
    } else {
      copy(x, begin, length);
      for (int k = 0; k < kernel; ++k) taps[k] = phases_[k * step % stride_] + k * step / stride_;
    }
    taps::join_taps<taps::Greatest>(taps, kernel, false, n, y);
  }

 private:
  static constexpr index_t phase_length(index_t stride) { return tile + most_columns / stride + 1; }
  /// Elements [begin, begin + length) of the row: what lies outside is below every value.
  void copy(const T* x, index_t begin, index_t length) {
    const index_t count = pieces(length, stride_);  // of each phase
    const index_t low = begin < 0 ? pieces(-begin, stride_) : 0,
                  inside = (p_.in[2] - begin) / stride_;  // phases are complete until here
    const index_t high = inside < low ? low : inside < count ? inside : count;
    const auto edge = [&](index_t from, index_t to) {
      for (index_t i = from; i < to; ++i)
        for (index_t k = 0; k < stride_; ++k) {
          const index_t at = begin + i * stride_ + k;
          phases_[k][i] = at >= 0 && at < p_.in[2] ? x[at] : lowest<T>();
        }
    };
    edge(0, low < count ? low : count);
    if (low < high) separate(x + begin + low * stride_, stride_, high - low, low, phases_);
    edge(high, count);
  }

  const Windows& p_;
  const index_t stride_;
  T elements_[most_stride * (tile + 1) + most_columns + most_stride];
  T* phases_[most_stride] = {};
};

/// Windows [first, first + n) of `rows` rows from row `height` on.
template <class T>
void pool_tile(const Windows& p, const T* x, index_t height, index_t rows, index_t first, index_t n,
               T* y) {
  T maxima[most_rows][tile];
  index_t row_at[most_rows];  // of the input
  for (index_t& at : row_at) at = -1;
  RowMaxima<T> row(p);
  for (index_t r = height; r < height + rows; ++r, y += p.out[2]) {
    taps::Taps<taps::Greatest, T> taps(n, y);
    for (index_t kh = 0; kh < p.window[1].kernel; ++kh) {
      const index_t h = p.tap(1, r, kh);
      if (h < 0 || h >= p.in[1]) continue;
      const index_t place = h % most_rows;
      if (row_at[place] != h) row.compute(x + h * p.in[2], first, n, maxima[place]);
      row_at[place] = h;
      taps.add(maxima[place]);
    }
    taps.finish();
  }
}

/// Rows [height, height + rows) of the windows of a plane.
template <class T>
void pool_strip(const Plan& p, const T* x, index_t height, index_t rows, T* y) {
  if (p.shares_rows) {
    for (index_t o = 0; o < p.out[2]; o += tile)
      pool_tile(p, x, height, rows, o, p.out[2] - o < tile ? p.out[2] - o : tile, y + o);
    return;
  }
  for (index_t r = height; r < height + rows; ++r, y += p.out[2]) {
    for (index_t o = 0; o < p.out[2]; ++o) y[o] = lowest<T>();
    for_each_tap(p, 0, r, [=](index_t from, index_t step, index_t begin, index_t end) {
      T* best = y + begin;
      for_each_element(end - begin,
                       [=](index_t o) { best[o] = greater_of(best[o], x[from + o * step]); });
    });
  }
}

template <class T>
Error prepare(Context&, Plan& plan, View<const T> self, Span<const int64_t> kernel_size,
              Span<const int64_t> stride, Span<const int64_t> padding, Span<const int64_t> dilation,
              bool, View<T> out) {
  plan = plan_of(windows_of(self.shape(), out.shape(), kernel_size, stride, padding, dilation, 2));
  return Error::ok;
}

template <class Loops, class T>
Error forward(Context& context, const Plan& p, View<const T> self, Span<const int64_t>,
              Span<const int64_t>, Span<const int64_t>, Span<const int64_t>, bool, View<T> out) {
  const index_t strips = p.strips();
  const Threads* threads = if_it_pays(context.threads, p.planes * p.in_plane());
  parallel_for(threads, p.planes * strips, [&](index_t task) {
    const index_t plane = task / strips, height = task % strips * p.strip,
                  rows = p.out[1] - height < p.strip ? p.out[1] - height : p.strip;
    Loops::template call<pool_strip<T>>(p, self.data() + plane * p.in_plane(), height, rows,
                                        out.data() + plane * p.out_plane() + height * p.out[2]);
  });
  return Error::ok;
}

}  // namespace taper::portable::max_pool
