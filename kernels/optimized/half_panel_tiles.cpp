#include "taper/kernels/optimized/half_panel_tiles.h"

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

// How one place along k, or a pair of them, of a panel of halves becomes vectors of f32.
template <class E>
struct HalfRow;
template <>
struct HalfRow<Half> {
  static constexpr int places = 1;
  static HWY_INLINE Vec widened(const uint16_t* from, int) {
    return load_small(reinterpret_cast<const Half*>(from));
  }
};
template <>
struct HalfRow<BFloat16> {
  static constexpr int places = 2;
  static HWY_INLINE Vec widened(const uint16_t* from, int place) {
    const Vec pairs = load(reinterpret_cast<const float*>(from));
    return place == 0 ? lower_halves(pairs) : upper_halves(pairs);
  }
};

// `is_large`: many rows share the panels at hand, so the next ones are prefetched.
template <class E, int rows, int vectors, bool is_large = false>
void half_panel_tile(index_t depth, const float* HWY_RESTRICT a, index_t a_row, index_t a_column,
                     const uint16_t* HWY_RESTRICT b, index_t b_panel, float* HWY_RESTRICT c,
                     index_t c_row, bool add_to_c, const NextPanels& next_panels) {
  constexpr int panels = vectors / vectors_of_panel, places = HalfRow<E>::places;
  constexpr index_t row = places * panel_width, ahead = Microkernels::rows_ahead * 2 * panel_width;
  const char* next = reinterpret_cast<const char*>(next_panels.from);
  const index_t next_step = next_panels.step,
                next_panel = b_panel * static_cast<index_t>(sizeof(uint16_t));
  const uint16_t* panel[panels];
  for (int p = 0; p < panels; ++p) panel[p] = b + p * b_panel;
  Vec sum[rows][vectors];
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) sum[r][v] = broadcast(0);

  const auto column = [&](int v, int place) HWY_ATTR {
    return HalfRow<E>::widened(panel[v / vectors_of_panel] + v % vectors_of_panel * lanes * places,
                               place);
  };
  // the shorter side waits in registers
  const auto multiply = [&](int place) HWY_ATTR {
    if constexpr (rows < vectors) {
      Vec x[rows];
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) x[r] = broadcast(a[r * a_row]);
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
        const Vec x = broadcast(a[r * a_row]);
        TAPER_UNROLL
        for (int v = 0; v < vectors; ++v) sum[r][v] = multiply_add(x, y[v], sum[r][v]);
      }
    }
    a += a_column;
  };
  index_t k = 0;
  for (; k + places <= depth; k += places) {
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p)
      if constexpr (is_large)
        __builtin_prefetch(next + p * next_panel);
      else
        __builtin_prefetch(panel[p] + ahead);
    if constexpr (is_large) next += next_step;
    multiply(0);
    if (places == 2) multiply(1);
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p) panel[p] += row;
  }
  if (k < depth) multiply(0);

  store_tile(sum, c, c_row, add_to_c);
}

// As many vectors as the sums leave room for; whole panels, at least one, and only as many as the
// prefetchers of a processor can follow.
template <class E, int rows>
constexpr HalfPanelTiles::OfDtype::OfRows of_rows() {
  constexpr int most = smaller(8, registers / 2 / rows) / vectors_of_panel * vectors_of_panel,
                wide = larger(most, vectors_of_panel);
  return {wide, half_panel_tile<E, rows, wide>, half_panel_tile<E, rows, vectors_of_panel>};
}

// Whole panels, and room for the vectors in flight and, for pairs, a mask.
template <class E>
constexpr HalfPanelTiles::OfDtype of_dtype() {
  constexpr bool many = registers == 32, pairs = std::is_same_v<E, BFloat16>;
  constexpr int vectors = many ? 3 * vectors_of_panel : vectors_of_panel,
                rows = many    ? 8 / vectors_of_panel
                       : pairs ? 5
                               : 6;
  return {rows,
          vectors,
          half_panel_tile<E, rows, vectors, true>,
          {of_rows<E, 1>(), of_rows<E, 2>(), of_rows<E, 3>(), of_rows<E, 4>()}};
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
