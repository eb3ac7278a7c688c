// The geometry of pooling, for kernels.
#pragma once
#include "taper/kernels/portable/lanes.h"
#include "taper/kernels/shapes/pooling.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::portable {

/// The last dimensions of a tensor with `planes` equal parts, and the sizes to which they are
/// pooled. Always three dimensions: missing ones come first and have extent 1.
struct Pooled {
  index_t planes = 1;
  index_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1};

  index_t in_plane() const { return in[0] * in[1] * in[2]; }
  index_t out_plane() const { return out[0] * out[1] * out[2]; }
};

inline Pooled pooled_of(const Shape& self, const Shape& result, int n) {
  Pooled p;
  for (int i = 0; i < self.rank - n; ++i) p.planes *= self.sizes[i];
  for (int d = 3 - n; d < 3; ++d)
    p.in[d] = self.sizes[self.rank - 3 + d], p.out[d] = result.sizes[self.rank - 3 + d];
  return p;
}

/// Windows of one size, at equal distances.
struct Windows : Pooled {
  Window window[3];

  /// The place of tap k of window `o` along dimension d. It may lie outside the input.
  index_t tap(int d, index_t o, index_t k) const {
    return static_cast<index_t>(o * window[d].stride - window[d].padding + k * window[d].dilation);
  }
  /// The place of the first tap of window `o` that lies inside the input; -1 if all taps lie in the
  /// padding.
  index_t first_inside(int d, index_t o) const {
    const index_t step = static_cast<index_t>(window[d].dilation);
    index_t at = tap(d, o, 0);
    if (at < 0) at += pieces(-at, step) * step;
    return at < in[d] ? at : -1;
  }
  /// The windows [begin, end) whose tap k lies inside along dimension d.
  void inside(int d, index_t k, index_t& begin, index_t& end) const {
    const index_t first = tap(d, 0, k), stride = static_cast<index_t>(window[d].stride);
    begin = first < 0 ? pieces(-first, stride) : 0;
    end = first < in[d] ? pieces(in[d] - first, stride) : 0;
    if (end > out[d]) end = out[d];
    if (begin > end) begin = end;
  }
};

inline Windows windows_of(const Shape& self, const Shape& result, Span<const int64_t> kernel_size,
                          Span<const int64_t> stride, Span<const int64_t> padding,
                          Span<const int64_t> dilation, int n) {
  Windows p{pooled_of(self, result, n), {{1, 1, 0, 1}, {1, 1, 0, 1}, {1, 1, 0, 1}}};
  for (int i = 0; i < n; ++i) {
    Window& w = p.window[3 - n + i];
    w.kernel = each(kernel_size, i);
    w.stride = stride.empty() ? w.kernel : each(stride, i);
    w.padding = each(padding, i);
    w.dilation = dilation.empty() ? 1 : each(dilation, i);
  }
  return p;
}

/// Calls body(row of x, from, step, begin, end) for each tap that lies inside for the row of
/// windows at (depth, height). Windows [begin, end) read it at from, from + step, ….
template <class Body>
void for_each_tap(const Windows& p, index_t depth, index_t height, const Body& body) {
  for (index_t kd = 0; kd < p.window[0].kernel; ++kd) {
    const index_t d = p.tap(0, depth, kd);
    if (d < 0 || d >= p.in[0]) continue;
    for (index_t kh = 0; kh < p.window[1].kernel; ++kh) {
      const index_t h = p.tap(1, height, kh);
      if (h < 0 || h >= p.in[1]) continue;
      for (index_t kw = 0; kw < p.window[2].kernel; ++kw) {
        index_t begin, end;
        p.inside(2, kw, begin, end);
        body((d * p.in[1] + h) * p.in[2] + p.tap(2, begin, kw),
             static_cast<index_t>(p.window[2].stride), begin, end);
      }
    }
  }
}

}  // namespace taper::portable
