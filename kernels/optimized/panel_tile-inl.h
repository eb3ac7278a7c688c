// Tiles of a product whose b was packed at load (PanelTile). foreach_target.h includes this file
// once for each level, so it has no #pragma once.
#if defined(TAPER_KERNELS_OPTIMIZED_PANEL_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TAPER_KERNELS_OPTIMIZED_PANEL_TILE_INL_H_
#undef TAPER_KERNELS_OPTIMIZED_PANEL_TILE_INL_H_
#else
#define TAPER_KERNELS_OPTIMIZED_PANEL_TILE_INL_H_
#endif

#include "taper/kernels/optimized/microkernel.h"
#include "taper/kernels/optimized/panels.h"
#include "taper/kernels/optimized/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

constexpr int vectors_of_panel = static_cast<int>(panel_width) / lanes;

// `is_long`: for few rows, it prefetches its own panels.
template <int rows, int vectors, bool is_long = false>
void panel_tile(index_t depth, const float* HWY_RESTRICT a, index_t a_row, index_t a_column,
                const float* HWY_RESTRICT b, index_t b_panel, float* HWY_RESTRICT c, index_t c_row,
                bool add_to_c, const float* bias, const NextPanels& next_panels) {
  constexpr int panels = (vectors + vectors_of_panel - 1) / vectors_of_panel;
  constexpr index_t ahead = Microkernels::rows_ahead * panel_width;
  const char* next = reinterpret_cast<const char*>(next_panels.from);
  const index_t next_step = next_panels.step,
                next_panel = b_panel * static_cast<index_t>(sizeof(float));
  // pointers to every third row: the addressing modes of a processor reach the two rows behind for
  // free
  const float* third[(rows + 2) / 3];
  for (int r = 0; r < rows; r += 3) third[r / 3] = a + r * a_row;
  const float* panel[panels];
  for (int p = 0; p < panels; ++p) panel[p] = b + p * b_panel;
  Vec sum[rows][vectors];
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) {
    sum[r][v] = broadcast(0);
    __builtin_prefetch(c + r * c_row + v * lanes, 1);  // it is in the cache at the end
  }

  for (index_t k = 0; k < depth; ++k) {
    Vec column[vectors];
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      column[v] = load(panel[v / vectors_of_panel] + v % vectors_of_panel * lanes);
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p) {
      if constexpr (is_long)
        __builtin_prefetch(panel[p] + ahead);
      else
        __builtin_prefetch(next + p * next_panel);
      panel[p] += panel_width;
    }
    if constexpr (!is_long) next += next_step;
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      const Vec x = broadcast(third[r / 3][r % 3 * a_row]);
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) sum[r][v] = multiply_add(x, column[v], sum[r][v]);
    }
    TAPER_UNROLL
    for (int r = 0; r < rows; r += 3) third[r / 3] += a_column;
  }

  store_tile(sum, c, c_row, add_to_c, bias);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#endif
