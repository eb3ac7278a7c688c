#include "taper/kernels/optimized/half_panel_tiles.h"

#include <utility>

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/kernels/optimized/half_panel_tiles.cpp"
#include "hwy/foreach_target.h"
#include "taper/kernels/optimized/simd-inl.h"
#include "taper/kernels/optimized/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

constexpr int vectors_of_panel = static_cast<int>(panel_width) / lanes;

// How one place along k, or a pair of them, of a panel of halves becomes vectors of f32. `is_full`:
// sums leave no register for a mask.
template <class E>
struct HalfRow;
template <>
struct HalfRow<Half> {
  static constexpr int places = 1;
  template <bool is_full>
  static HWY_INLINE Vec widened(const uint16_t* from, int) {
    return load_small(reinterpret_cast<const Half*>(from));
  }
};
template <>
struct HalfRow<BFloat16> {
  static constexpr int places = 2;
  template <bool is_full>
  static HWY_INLINE Vec widened(const uint16_t* from, int place) {
    const Vec pairs = load(reinterpret_cast<const float*>(from));
    if (place == 0) return lower_halves(pairs);
    return is_full ? upper_halves_shifted(pairs) : upper_halves(pairs);
  }
};

// `is_long`: for few rows, it prefetches its own panels.
template <class E, int rows, int vectors, bool is_long = false>
void half_panel_tile(index_t depth, const float* HWY_RESTRICT a, index_t a_row, index_t a_column,
                     const uint16_t* HWY_RESTRICT b, index_t b_panel, float* HWY_RESTRICT c,
                     index_t c_row, bool add_to_c, const float* bias,
                     const NextPanels& next_panels) {
  constexpr int panels = vectors / vectors_of_panel, places = HalfRow<E>::places;
  constexpr bool is_full = rows * vectors + smaller(rows, vectors) + 2 >= registers;
  constexpr index_t row = places * panel_width, ahead = Microkernels::rows_ahead * 2 * panel_width;
  const char* next = reinterpret_cast<const char*>(next_panels.from);
  const index_t next_step = next_panels.step,
                next_panel = b_panel * static_cast<index_t>(sizeof(uint16_t));
  const uint16_t* panel[panels];
  for (int p = 0; p < panels; ++p) panel[p] = b + p * b_panel;
  const float* third[(rows + 2) / 3];  // as in panel_tile
  for (int r = 0; r < rows; r += 3) third[r / 3] = a + r * a_row;
  Vec sum[rows][vectors];
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) {
    sum[r][v] = broadcast(0);
    __builtin_prefetch(c + r * c_row + v * lanes, 1);  // it is in the cache at the end
  }

  const auto column = [&](int v, int place) HWY_ATTR {
    return HalfRow<E>::template widened<is_full>(
        panel[v / vectors_of_panel] + v % vectors_of_panel * lanes * places, place);
  };
  // the shorter side waits in registers
  const auto multiply = [&](int place) HWY_ATTR {
    if constexpr (rows < vectors) {
      Vec x[rows];
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) x[r] = broadcast(third[r / 3][r % 3 * a_row]);
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) {
        const Vec y = column(v, place);
        TAPER_UNROLL
        for (int r = 0; r < rows; ++r) sum[r][v] = multiply_add(x[r], y, sum[r][v]);
      }
    } else {
      Vec y[vectors];
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) y[v] = column(v, place);
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) {
        const Vec x = broadcast(third[r / 3][r % 3 * a_row]);
        TAPER_UNROLL
        for (int v = 0; v < vectors; ++v) sum[r][v] = multiply_add(x, y[v], sum[r][v]);
      }
    }
    TAPER_UNROLL
    for (int r = 0; r < rows; r += 3) third[r / 3] += a_column;
  };
  index_t k = 0;
  for (; k + places <= depth; k += places) {
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p)
      if constexpr (is_long)
        __builtin_prefetch(panel[p] + ahead);
      else
        __builtin_prefetch(next + p * next_panel);
    if constexpr (!is_long) next += next_step;
    multiply(0);
    if (places == 2) multiply(1);
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p) panel[p] += row;
  }
  if (k < depth) multiply(0);

  store_tile(sum, c, c_row, add_to_c, bias);
}

// As many vectors as the sums leave room for: more of it for pairs, which are taken apart. Whole
// panels, and only as many as the prefetchers of a processor can follow. One panel is not worth a
// tile of its own.
template <class E, int rows>
constexpr HalfPanelTiles::OfDtype::Long long_tile() {
  constexpr int sums = registers * 3 / 4 - (HalfRow<E>::places == 2 ? 4 : 0),
                most = smaller(8, sums / rows) / vectors_of_panel * vectors_of_panel;
  if constexpr (most > vectors_of_panel)
    return {most, half_panel_tile<E, rows, most, true>};
  else
    return {0, nullptr};
}

template <class E, int vectors, size_t... r>
constexpr HalfPanelTiles::OfDtype of_tiles(std::index_sequence<r...>) {
  return {sizeof...(r),
          vectors,
          {half_panel_tile<E, r + 1, vectors>...},
          {half_panel_tile<E, r + 1, vectors_of_panel>...},
          {long_tile<E, 1>(), long_tile<E, 2>(), long_tile<E, 3>()}};
}

// Whole panels, and room for the vectors in flight.
template <class E>
constexpr HalfPanelTiles::OfDtype of_dtype() {
  constexpr int vectors = registers == 32 ? 3 * vectors_of_panel : vectors_of_panel,
                rows = registers * 3 / 4 / vectors;
  return of_tiles<E, vectors>(std::make_index_sequence<rows>());
}

constexpr HalfPanelTiles table = {of_dtype<Half>(), of_dtype<BFloat16>()};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper::optimized {
TAPER_DEFINE_LEVEL_TABLES(HalfPanelTiles, half_panel_tiles, table)
}  // namespace taper::optimized
#endif
