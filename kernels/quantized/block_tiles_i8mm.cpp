#include "taper/kernels/quantized/block_tiles.h"
#include "taper/kernels/quantized/instruction_set.h"

#if TAPER_TILES_ARM64
TAPER_BEGIN_TARGET(TAPER_I8MM)
namespace taper::quantized {
namespace {

TAPER_INLINE void add_products(int32x4_t& sum, int8x16_t w, int8x16_t x) {
  TAPER_ADD_DOT_PRODUCTS(sum, w, x);
}

#include "taper/kernels/quantized/neon_lanes-inl.h"
#include "taper/kernels/quantized/neon_pairs-inl.h"

using Lanes = NeonLanes;

#include "taper/kernels/quantized/block_tiles-inl.h"

// As Tile, for pairs of rows of x. The last one of an odd number is a pair with itself.
template <Layout layout, int rows, int vectors>
struct TileOfPairs {
  using V = Values<layout>;
  static constexpr PanelFormat format = panel_format(layout);
  static constexpr int pairs = (rows + 1) / 2;

  const std::byte *values, *scales;
  int v0;  // the first vector in the panel
  const int8_t* x[2 * pairs];
  const RoundedUnit* of_x[2 * pairs];
  PairSums sum[pairs][vectors];
  F y[rows][vectors];

  template <int group>  // and the one behind it
  TAPER_INLINE void add_groups() {
    B eight[pairs];
    TAPER_UNROLL
    for (int r = 0; r < pairs; ++r)
      eight[r] = eight_of(x[2 * r] + 4 * group, x[2 * r + 1] + 4 * group);
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const RowPairs w(V::template at<group>(values, v0 + v),
                       V::template at<group + 1>(values, v0 + v));
      TAPER_UNROLL
      for (int r = 0; r < pairs; ++r) sum[r][v].add(w, eight[r]);
    }
  }
  template <int half>
  TAPER_INLINE int32x4_t first(int row) const {
    const int32_t* correction = V::correction(*of_x[row], half);
    return vdupq_n_s32(correction == nullptr ? 0 : *correction);
  }
  template <int half>
  TAPER_INLINE void begin() {
    TAPER_UNROLL
    for (int r = 0; r < pairs; ++r) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) sum[r][v].begin(first<half>(2 * r), first<half>(2 * r + 1));
  }
  template <int half, int part>  // part: the half, or 2: all
  TAPER_INLINE void end(int unit) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const F scale = scale_at<layout>(scales, unit, half, v0 + v);
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) {
        const PairSums& both = sum[r / 2][v];
        const I products = r % 2 == 0 ? both.of_first() : both.of_other();
        y[r][v] = Lanes::multiply_add(Lanes::multiply(scale, Lanes::all(of_x[r]->scale)),
                                      Lanes::to_float(products), y[r][v]);
      }
      if constexpr (V::has_offset) {
        const F offset = offset_at<layout>(scales, unit, v0 + v);
        TAPER_UNROLL
        for (int r = 0; r < rows; ++r)
          y[r][v] = Lanes::multiply_add(offset, Lanes::all(of_x[r]->weighted[part]), y[r][v]);
      }
    }
  }
  TAPER_INLINE void unit(int unit) {
    begin<0>();
    add_groups<0>(), add_groups<2>();
    if constexpr (V::has_halves) end<0, 0>(unit), begin<1>();
    add_groups<4>(), add_groups<6>();
    if constexpr (V::has_halves)
      end<1, 1>(unit);
    else
      end<0, 2>(unit);
    TAPER_UNROLL
    for (int r = 0; r < 2 * pairs; ++r) x[r] += unit_elements, ++of_x[r];
    values += format.value_bytes;
  }
  TAPER_INLINE void run(const BlockMatrix& w, index_t panel, const RoundedRows& rounded,
                        index_t row, int first_vector, float* to) {
    v0 = first_vector, values = values_of(w, panel), scales = scales_of(w, panel);
    TAPER_UNROLL
    for (int r = 0; r < 2 * pairs; ++r) {
      const index_t here = row + (r < rows ? r : rows - 1);
      x[r] = rounded.value(here, 0), of_x[r] = &rounded.unit(here, 0);
    }
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) y[r][v] = Lanes::all(0);
    for (index_t left = w.units() / format.units; left > 0; --left) {
      for (int u = 0; u < format.units; ++u) unit(u);
      scales += format.scale_bytes;
    }
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      Lanes::store(y[r][v], to + r * panel_width + (v0 + v) * Lanes::lanes);
  }
};

// One row takes the dot products of `tile`.
template <Layout layout, int rows, int panels>
void tile_of_pairs(const BlockMatrix& w, index_t panel, const RoundedRows& x, index_t row,
                   float* to) {
  constexpr int vectors = rows <= 4 ? vectors_of_panel : vectors_of_panel / 2;
  for (int p = 0; p < panels; ++p, to += rows * panel_width)
    for (int v = 0; v < vectors_of_panel; v += vectors) {
      TileOfPairs<layout, rows, vectors> t;
      t.run(w, panel + p, x, row, v, to);
    }
}

template <Layout layout, size_t... r>
constexpr void take_pairs(BlockTiles::OfFormat& format, std::index_sequence<r...>) {
  ((format.one_panel[r + 1] = tile_of_pairs<layout, static_cast<int>(r) + 2, 1>), ...);
  ((format.two_panels[r + 1] = tile_of_pairs<layout, static_cast<int>(r) + 2, 2>), ...);
}
constexpr BlockTiles with_pairs() {
  BlockTiles tiles = table;
  constexpr auto more_rows = std::make_index_sequence<BlockTiles::most_rows - 1>();
  take_pairs<Layout::q4_0_panels>(tiles.of_format[0], more_rows);
  take_pairs<Layout::q4_1_panels>(tiles.of_format[1], more_rows);
  take_pairs<Layout::q8_0_panels>(tiles.of_format[2], more_rows);
  take_pairs<Layout::q4_k_panels>(tiles.of_format[3], more_rows);
  take_pairs<Layout::q6_k_panels>(tiles.of_format[4], more_rows);
  return tiles;
}

}  // namespace

constexpr BlockTiles block_tiles_i8mm = with_pairs();

}  // namespace taper::quantized
TAPER_END_TARGET
#endif
