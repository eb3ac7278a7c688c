#include "taper/kernels/optimized/winograd.h"

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/kernels/optimized/winograd.cpp"
#include "hwy/foreach_target.h"
#include "taper/kernels/optimized/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

// Bᵀ times a column, in the order of portable::line_of_input.
HWY_INLINE void line_of_input(Vec a, Vec b, Vec c, Vec d, Vec* to, int step) {
  to[0] = subtract(a, c);
  to[step] = add(b, c);
  to[2 * step] = subtract(c, b);
  to[3 * step] = subtract(b, d);
}

template <bool is_edge>
void input_of(const WinogradInput& w) {
  for (index_t c = 0; c < w.channels; c += lanes) {
    const float* from[4];
    TAPER_UNROLL
    for (int i = 0; i < 4; ++i) from[i] = w.rows[i] + (w.row_steps[i] != 0 ? c : 0);
    Vec half[4][4];
    TAPER_UNROLL
    for (int j = 0; j < 4; ++j) {
      Vec in[4];
      TAPER_UNROLL
      for (int i = 0; i < 4; ++i)
        in[i] = !is_edge || (j >= w.left && j < w.right) ? load(from[i] + j * w.row_steps[i])
                                                         : broadcast(0);
      line_of_input(in[0], in[1], in[2], in[3], &half[0][j], 4);
    }
    TAPER_UNROLL
    for (int i = 0; i < 4; ++i) {
      Vec line[4];
      line_of_input(half[i][0], half[i][1], half[i][2], half[i][3], line, 1);
      TAPER_UNROLL
      for (int j = 0; j < 4; ++j) store(line[j], w.to + (4 * i + j) * w.to_place + c);
    }
  }
}

void input(const WinogradInput& w) {
  if (w.left == 0 && w.right == 4)
    input_of<false>(w);
  else
    input_of<true>(w);
}

void output(const WinogradOutput& w) {
  const Vec low = broadcast(w.finish.low), high = broadcast(w.finish.high);
  for (index_t c = 0; c < w.channels; c += lanes) {
    const index_t rest = w.channels - c;
    Vec half[2][4];
    TAPER_UNROLL
    for (int j = 0; j < 4; ++j) {
      Vec m[4];
      TAPER_UNROLL
      for (int i = 0; i < 4; ++i) m[i] = load(w.from + (4 * i + j) * w.from_place + c);
      half[0][j] = add(add(m[0], m[1]), m[2]);
      half[1][j] = subtract(subtract(m[1], m[2]), m[3]);
    }
    const Vec bias = w.finish.bias == nullptr ? broadcast(0)
                     : rest >= lanes          ? load(w.finish.bias + c)
                                              : load_first(w.finish.bias + c, rest);
    const auto write = [&](Vec y, float* to) HWY_ATTR {
      if (w.finish.bias != nullptr) y = add(y, bias);
      if (w.finish.is_bounded) y = between(y, low, high);
      if (rest >= lanes)
        store(y, to);
      else
        store_first(y, to, rest);
    };
    for (int i = 0; i < w.rows; ++i) {
      const Vec* const h = half[i];
      float* const to = w.to + i * w.to_row + c;
      write(add(add(h[0], h[1]), h[2]), to);
      if (w.columns == 2) write(subtract(subtract(h[1], h[2]), h[3]), to + w.to_pixel);
    }
  }
}

constexpr WinogradTransforms transforms{input, output};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper::optimized {
TAPER_DEFINE_LEVEL_TABLES(WinogradTransforms, winograd_transforms, transforms)
}  // namespace taper::optimized
#endif
