// The tiles of block_tiles.h, in vectors of a class `Lanes` that the including source defines for
// its instruction set:
//
//   lanes                   f32 in a vector: 8 or 16
//   F, I, B                 vectors of f32, of i32, and of bytes, four for each lane
//   sums                    vectors of sums, of integers and of f32, for which there are registers
//   Sum<small>              sums of products of bytes. `small`: the first factors are below 16.
//                           begin(bias) starts one that ends at -bias; add(sum, w, x) multiplies
//                           unsigned bytes with four signed ones, the same for all lanes;
//                           add_signed multiplies signed bytes, to which the instruction set adds
//                           signed_bias; result(sum, bias) is the i32
//
// There is no #pragma once: each source includes this in a namespace of its own.
#include <utility>

constexpr int vectors_of_panel = static_cast<int>(panel_width) / Lanes::lanes;

using F = Lanes::F;
using I = Lanes::I;
using B = Lanes::B;

// Vector v of sixteen f16, of unsigned and of signed bytes, as f32.
TAPER_INLINE F halves_at(const std::byte* from, int v) {
  return Lanes::from_halves(from + v * 2 * Lanes::lanes);
}
TAPER_INLINE F bytes_at(const std::byte* from, int v) {
  return Lanes::from_bytes(from + v * Lanes::lanes);
}
TAPER_INLINE F signed_bytes_at(const std::byte* from, int v) {
  return Lanes::from_signed_bytes(from + v * Lanes::lanes);
}

// The values of a unit: `for_each(body)` calls body(bytes, first element) eight times. In the order
// of the calls, the first four belong to the first half.
template <Layout layout>
struct Values {
  static constexpr bool is_small = layout != Layout::q8_0_panels && layout != Layout::q6_k_panels,
                        is_signed = layout == Layout::q8_0_panels;
  /// What is taken from each integer, which is stored as an unsigned one.
  static constexpr int bias = layout == Layout::q4_0_panels   ? 8
                              : layout == Layout::q6_k_panels ? 32
                                                              : 0;

  // `group`: four neighbours of each row, of elements 4 group to 4 group + 3
  template <int group>
  static TAPER_INLINE B at(const std::byte* unit, int v) {
    constexpr int vector = 64;
    const std::byte* here = unit + v * 4 * Lanes::lanes;
    if constexpr (is_signed) return Lanes::load(here + group * vector);
    constexpr int nibbles = group % 4;
    const B both = Lanes::load(here + nibbles * vector);
    const B low = group < 4 ? Lanes::lower(both) : Lanes::upper(both);
    if constexpr (layout != Layout::q6_k_panels) return low;
    constexpr int shift = nibbles % 2 * 4 + group / 4 * 2;
    return Lanes::with_high_bits<shift>(low, Lanes::load(here + 256 + nibbles / 2 * vector));
  }
};

// The scales and offsets of a unit.
template <Layout layout>
TAPER_INLINE F scale_at(const std::byte* piece, int unit, int half, int v) {
  const F d = halves_at(piece, v);
  constexpr int small = panel_format(layout).small_scales;
  if constexpr (layout == Layout::q4_k_panels)
    return Lanes::multiply(d, bytes_at(piece + small + 32 * unit, v));
  if constexpr (layout == Layout::q6_k_panels)
    return Lanes::multiply(d, signed_bytes_at(piece + small + 16 * (2 * unit + half), v));
  return d;
}
template <Layout layout>
TAPER_INLINE F offset_at(const std::byte* piece, int unit, int v) {
  const F m = halves_at(piece + 32, v);
  constexpr int small = panel_format(layout).small_scales;
  if constexpr (layout == Layout::q4_k_panels)
    return Lanes::negative(Lanes::multiply(m, bytes_at(piece + small + 32 * unit + 16, v)));
  return m;
}

template <Layout layout, int rows, int vectors>
struct Tile {
  using V = Values<layout>;
  using Sum = Lanes::Sum<V::is_small>;
  static constexpr PanelFormat format = panel_format(layout);
  static constexpr bool has_offset = layout == Layout::q4_1_panels || layout == Layout::q4_k_panels,
                        has_halves = layout == Layout::q6_k_panels;

  const int8_t* x[rows];
  const RoundedUnit* of_x[rows];
  typename Sum::Type sum[rows][vectors];
  F y[rows][vectors];

  template <int group>
  TAPER_INLINE void add_group(const std::byte* unit, int v0) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const B w = V::template at<group>(unit, v0 + v);
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r)
        sum[r][v] = V::is_signed ? Sum::add_signed(sum[r][v], w, x[r] + 4 * group)
                                 : Sum::add(sum[r][v], w, x[r] + 4 * group);
    }
  }
  static constexpr int bias = V::is_signed ? Sum::signed_bias : V::bias;

  template <int part>  // a half, or 2: all
  TAPER_INLINE void begin() {
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) sum[r][v] = Sum::begin(bias * of_x[r]->sum[part]);
  }
  template <int part>
  TAPER_INLINE void end(const std::byte* piece, int unit, int v0) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const F scale = scale_at<layout>(piece, unit, part, v0 + v);
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) {
        const RoundedUnit& u = *of_x[r];
        const I products = Sum::result(sum[r][v], bias * u.sum[part]);
        y[r][v] = Lanes::multiply_add(Lanes::multiply(scale, Lanes::all(u.scale)),
                                      Lanes::to_float(products), y[r][v]);
      }
      if constexpr (has_offset) {
        const F offset = offset_at<layout>(piece, unit, v0 + v);
        TAPER_UNROLL
        for (int r = 0; r < rows; ++r)
          y[r][v] = Lanes::multiply_add(offset, Lanes::all(of_x[r]->weighted[part]), y[r][v]);
      }
    }
  }
  TAPER_INLINE void unit(const std::byte* piece, int unit, int v0) {
    const std::byte* values = piece + format.values + unit * format.unit_bytes;
    constexpr int first = has_halves ? 0 : 2;
    begin<first>();
    add_group<0>(values, v0), add_group<1>(values, v0);
    add_group<2>(values, v0), add_group<3>(values, v0);
    if constexpr (has_halves) end<0>(piece, unit, v0), begin<1>();
    add_group<4>(values, v0), add_group<5>(values, v0);
    add_group<6>(values, v0), add_group<7>(values, v0);
    end<has_halves ? 1 : 2>(piece, unit, v0);
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) x[r] += unit_elements, ++of_x[r];
  }
  TAPER_INLINE void run(const BlockMatrix& w, index_t panel, const RoundedRows& rounded,
                        index_t row, int v0, float* to) {
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      x[r] = rounded.value(row + r, 0), of_x[r] = &rounded.unit(row + r, 0);
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) y[r][v] = Lanes::all(0);
    }
    const index_t pieces = w.units() / format.units;
    const std::byte* piece = w.data + panel * pieces * format.piece_bytes;
    for (index_t p = 0; p < pieces; ++p, piece += format.piece_bytes) {
      Lanes::prefetch(piece + 4 * 320);
      for (int u = 0; u < format.units; ++u) unit(piece, u, v0);
    }
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      Lanes::store(y[r][v], to + r * panel_width + (v0 + v) * Lanes::lanes);
  }
};

// Few rows take the panel at once. With more, the sums of a part of it fill the registers. It is
// in the cache when the others follow.
template <Layout layout, int rows>
void tile(const BlockMatrix& w, index_t panel, const RoundedRows& x, index_t row, float* to) {
  constexpr int vectors = rows * vectors_of_panel * 2 <= Lanes::sums ? vectors_of_panel : 1;
  if constexpr (rows * vectors * 2 > Lanes::sums) {
    tile<layout, rows / 2>(w, panel, x, row, to);
    return tile<layout, rows - rows / 2>(w, panel, x, row + rows / 2, to + rows / 2 * panel_width);
  }
  for (int v = 0; v < vectors_of_panel; v += vectors) {
    Tile<layout, rows, vectors> t;
    t.run(w, panel, x, row, v, to);
  }
}

template <Layout layout, size_t... r>
constexpr BlockTiles::OfFormat of_format(std::index_sequence<r...>) {
  return {{tile<layout, static_cast<int>(r) + 1>...}};
}
constexpr auto all_rows = std::make_index_sequence<BlockTiles::most_rows>();
constexpr BlockTiles table = {
    {of_format<Layout::q4_0_panels>(all_rows), of_format<Layout::q4_1_panels>(all_rows),
     of_format<Layout::q8_0_panels>(all_rows), of_format<Layout::q4_k_panels>(all_rows),
     of_format<Layout::q6_k_panels>(all_rows)},
    round_unit};
