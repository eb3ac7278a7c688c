// The tiles of block_tiles.h, in vectors of a class `Lanes` that the including source defines for
// its instruction set:
//
//   lanes                   f32 in a vector: 4, 8 or 16
//   sums                    vectors of sums, of integers and of f32, for which there are registers
//   most_vectors            of weights that a tile takes at once: 2 or 4
//   most_rows               of x that a tile takes at once
//   overlaps                whether the sums of a unit become floats while the next ones are summed
//   F, I, B                 vectors of f32, of i32, and of bytes, four for each lane
//   signed_byte<i>(b)       byte i of each lane, as f32
//   adds_128                whether add_signed takes w + 128 in place of w
//   round                   round_units of rounded_rows.h
//   Sum<small>              sums of products of bytes in I. `small`: of unsigned ones below 16.
//                           begin(correction) and result(sum, correction) add what it points to
//                           once; add(sum, w, x) multiplies unsigned bytes with signed ones,
//                           add_signed signed ones with signed ones
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

// How a layout's integers become operands, and what is taken from them afterwards.
template <Layout layout>
struct Values {
  static constexpr bool is_small = layout != Layout::q8_0_panels && layout != Layout::q6_k_panels,
                        is_signed = layout == Layout::q8_0_panels,
                        has_halves = layout == Layout::q6_k_panels,
                        has_offset = layout == Layout::q4_1_panels || layout == Layout::q4_k_panels;

  /// The integer at which a sum of products with these integers begins, or that is added at its
  /// end. nullptr: 0.
  static TAPER_INLINE const int32_t* correction(const RoundedUnit& x, int half) {
    if constexpr (layout == Layout::q4_0_panels) return &x.without_8;
    if constexpr (layout == Layout::q6_k_panels) return &x.without_32[half];
    if constexpr (layout == Layout::q8_0_panels && Lanes::adds_128) return &x.without_128;
    return nullptr;
  }

  /// Elements 4 group to 4 group + 3 of each row, in vector v.
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
TAPER_INLINE F scale_at(const std::byte* scales, int unit, int half, int v) {
  const F d = halves_at(scales, v);
  constexpr int small = panel_format(layout).small;
  if constexpr (layout == Layout::q4_k_panels)
    return Lanes::multiply(d, bytes_at(scales + small + 32 * unit, v));
  if constexpr (layout == Layout::q6_k_panels)
    return Lanes::multiply(d, signed_bytes_at(scales + small + 16 * (2 * unit + half), v));
  return d;
}
template <Layout layout>
TAPER_INLINE F offset_at(const std::byte* scales, int unit, int v) {
  const F m = halves_at(scales + 32, v);
  constexpr int small = panel_format(layout).small;
  if constexpr (layout == Layout::q4_k_panels)
    return Lanes::negative(Lanes::multiply(m, bytes_at(scales + small + 32 * unit + 16, v)));
  return m;
}

// Whether one tile reads a panel for a few rows of x, or two do, each for half of the rows.
enum class Pass { only, first, second };

// What is prefetched of a part of each panel: in an only pass the bytes that are read some time
// later, and behind the end of the part those of the next panel. The processor's own prefetch stops
// at the end of each page of 4 KB. Two passes each prefetch half of the next panel.
struct Soon {
  const std::byte *at = nullptr, *end = nullptr;
  index_t jump = 0;   // from the end to the next panel's part
  index_t other = 0;  // from the first half of what is fetched to the other one

  template <int bytes>
  TAPER_INLINE void begin(const std::byte* part, index_t length, index_t ahead, index_t next,
                          Pass pass) {
    jump = next - length;
    if (pass == Pass::only) {
      at = part + ahead, end = part + length, other = bytes / 2;
      if (at >= end) at += jump;
    } else {
      at = part + next, end = at + length;
      if (pass == Pass::second) at += bytes / 2, end += bytes / 2;
    }
  }
  template <int bytes, bool has_passes>
  TAPER_INLINE void fetch() {
    constexpr int line = 64;
    const index_t half = has_passes ? other : bytes / 2;
    TAPER_UNROLL
    for (int i = 0; i < bytes / 2; i += line) __builtin_prefetch(at + i);
    TAPER_UNROLL
    for (int i = 0; i < bytes / 2 && bytes > line; i += line) __builtin_prefetch(at + half + i);
    at += bytes;
    if (at == end) at += jump;
  }
};

// Products of some rows of x with `vectors` vectors of rows of w, which may lie in two panels.
template <Layout layout, int rows, int vectors>
struct Tile {
  using V = Values<layout>;
  using Sum = Lanes::Sum<V::is_small>;
  static constexpr PanelFormat format = panel_format(layout);
  static constexpr int panels = (vectors + vectors_of_panel - 1) / vectors_of_panel;
  static constexpr int results = rows * vectors;

  // A processor sums bytes with the units that also multiply floats. They are busy all the time if
  // the sums of a unit become floats one by one, between those of the next unit.
  // A single row waits for memory.
  static constexpr bool overlaps = Lanes::overlaps && rows > 1 && 2 * results <= Lanes::sums;
  // The sums of integers fill the registers. The results wait in memory for the end of each unit.
  static constexpr bool results_in_memory = (overlaps ? 3 : 2) * results > Lanes::sums;

  const std::byte *values[panels] = {}, *scales[panels] = {};
  Soon soon_values[panels], soon_scales[panels];
  int v0;  // the first vector in its panel
  const int8_t* x[rows];
  const RoundedUnit* of_x[rows];
  index_t now = 0;  // the unit that is summed
  I sum[rows][vectors];
  F y[results_in_memory ? 1 : rows][vectors];
  float* to;
  index_t panel_step;  // from the results of a panel to those of the next one

  // Where units overlap: the sums that become floats, what they are multiplied with, and their
  // unit. Before the first unit, all are zero.
  I done[overlaps ? rows : 1][vectors];
  F scale[vectors], offset[vectors];
  index_t before = 0;

  static constexpr int panel_of(int vector) { return vector / vectors_of_panel; }
  TAPER_INLINE int in_panel(int vector) const { return v0 + vector % vectors_of_panel; }
  TAPER_INLINE float* place(int r, int v) const {
    return to + panel_of(v) * panel_step + r * panel_width + in_panel(v) * Lanes::lanes;
  }
  TAPER_INLINE F result(int r, int v) const {
    if constexpr (results_in_memory)
      return Lanes::floats(place(r, v));
    else
      return y[r][v];
  }
  TAPER_INLINE void set_result(int r, int v, F value) {
    if constexpr (results_in_memory)
      Lanes::store(value, place(r, v));
    else
      y[r][v] = value;
  }

  template <int group>
  TAPER_INLINE void add_group() {
    B w[vectors];
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      w[v] = V::template at<group>(values[panel_of(v)], in_panel(v));
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      const B four = Lanes::four(x[r] + 4 * group);
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v)
        sum[r][v] =
            V::is_signed ? Sum::add_signed(sum[r][v], w[v], four) : Sum::add(sum[r][v], w[v], four);
    }
  }
  template <int half>
  TAPER_INLINE void begin() {
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      const I first = Sum::begin(V::correction(of_x[r][now], half));
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) {
        if constexpr (overlaps) done[r][v] = sum[r][v];
        sum[r][v] = first;
      }
    }
  }
  template <int half>
  TAPER_INLINE void take_scales(int unit) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const std::byte* const here = scales[panel_of(v)];
      scale[v] = scale_at<layout>(here, unit, half, in_panel(v));
      if constexpr (V::has_offset) offset[v] = offset_at<layout>(here, unit, in_panel(v));
    }
  }
  template <int half>
  TAPER_INLINE void add_result(int r, int v, I sums, const RoundedUnit& unit) {
    constexpr int part = V::has_halves ? half : 2;  // 2: all
    const I products = Sum::result(sums, V::correction(unit, half));
    F sum_of_units = Lanes::multiply_add(Lanes::multiply(scale[v], Lanes::all(unit.scale)),
                                         Lanes::to_float(products), result(r, v));
    if constexpr (V::has_offset)
      sum_of_units = Lanes::multiply_add(offset[v], Lanes::all(unit.weighted[part]), sum_of_units);
    set_result(r, v, sum_of_units);
  }
  // Results [first, end) of the unit before, or of the half.
  template <int half, int first, int end>
  TAPER_INLINE void add_done(index_t unit) {
    TAPER_UNROLL
    for (int i = first; i < end; ++i) {
      const int r = i / vectors, v = i % vectors;
      add_result<half>(r, v, done[r][v], of_x[r][unit]);
    }
  }
  template <int half>
  TAPER_INLINE void add_all(int unit) {
    take_scales<half>(unit);
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) TAPER_UNROLL
    for (int r = 0; r < rows; ++r) add_result<half>(r, v, sum[r][v], of_x[r][now]);
  }
  TAPER_INLINE void prefetch_values() {
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p) soon_values[p].template fetch<format.value_bytes, overlaps>();
  }
  TAPER_INLINE void prefetch_scales() {
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p) soon_scales[p].template fetch<format.scale_bytes, overlaps>();
  }

  // Groups of a unit, or of a half. `done_half`: the half that becomes floats meanwhile.
  template <int done_half, int first, int... i>
  TAPER_INLINE void add_groups(index_t done_unit, std::integer_sequence<int, i...>) {
    constexpr int groups = sizeof...(i);
    if constexpr (overlaps)
      ((add_group<first + i>(),
        add_done<done_half, i * results / groups, (i + 1) * results / groups>(done_unit)),
       ...);
    else
      (add_group<first + i>(), ...);
  }
  TAPER_INLINE void unit(int unit) {
    prefetch_values();
    begin<0>();
    if constexpr (V::has_halves) {
      constexpr auto four_groups = std::make_integer_sequence<int, 4>();
      add_groups<1, 0>(before, four_groups), end<0>(unit);
      begin<1>();
      add_groups<0, 4>(now, four_groups), end<1>(unit);
    } else {
      add_groups<0, 0>(before, std::make_integer_sequence<int, 8>()), end<0>(unit);
    }
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) x[r] += unit_elements;
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p) values[p] += format.value_bytes;
    before = now++;
  }
  template <int half>
  TAPER_INLINE void end(int unit) {
    if constexpr (overlaps)
      take_scales<half>(unit);
    else
      add_all<half>(unit);
  }
  TAPER_INLINE void run(const BlockMatrix& w, index_t panel, const RoundedRows& rounded,
                        index_t row, int first_vector, float* results_of_panel, index_t step,
                        Pass pass) {
    v0 = first_vector, to = results_of_panel, panel_step = step;
    const index_t bytes = panel_bytes(layout, w.depth), blocks = w.units() / format.units,
                  value_bytes = w.units() * format.value_bytes;
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p) {
      values[p] = w.data + (panel + p) * bytes, scales[p] = values[p] + value_bytes;
      constexpr index_t ahead = 3072;  // of values; of scales as long before they are read
      soon_values[p].template begin<format.value_bytes>(values[p], value_bytes, ahead,
                                                        panels * bytes, pass);
      soon_scales[p].template begin<format.scale_bytes>(
          scales[p], blocks * format.scale_bytes,
          ahead / (format.units * format.value_bytes) * format.scale_bytes, panels * bytes, pass);
    }
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      x[r] = rounded.value(row + r, 0), of_x[r] = &rounded.unit(row + r, 0);
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) {
        set_result(r, v, Lanes::all(0));
        if constexpr (overlaps) sum[r][v] = Sum::begin(nullptr);
      }
    }
    if constexpr (overlaps) {
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) scale[v] = offset[v] = Lanes::all(0);
    }
    for (index_t left = blocks; left > 0; --left) {
      prefetch_scales();
      for (int u = 0; u < format.units; ++u) unit(u);
      TAPER_UNROLL
      for (int p = 0; p < panels; ++p) scales[p] += format.scale_bytes;
    }
    if constexpr (overlaps) {
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) done[r][v] = sum[r][v];
      if (blocks > 0) add_done<V::has_halves ? 1 : 0, 0, results>(before);
    }
    if constexpr (!results_in_memory) {
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) Lanes::store(y[r][v], place(r, v));
    }
  }
};

// Whether it pays to keep results in memory, so that vectors share what is read of x.
template <Layout layout>
constexpr bool shares_x = Lanes::most_vectors == 2 && !Values<layout>::has_halves;

// Takes several vectors at once, which share what is read of x, if there are registers for their
// sums and results, or at least for two vectors of sums. Panels that share nothing are taken one
// after the other. The results of a panel begin `step` after those of the panel before.
template <Layout layout, int rows, int panels>
__attribute__((noinline)) void tile_of_rows(const BlockMatrix& w, index_t panel,
                                            const RoundedRows& x, index_t row, float* to,
                                            index_t step, Pass pass) {
  constexpr int all = panels * vectors_of_panel, registers = Lanes::sums / (2 * rows),
                fit = registers >= 4 && Lanes::most_vectors == 4    ? 4
                      : registers >= 2                              ? 2
                      : shares_x<layout> && 2 * rows <= Lanes::sums ? 2
                                                                    : 1,
                vectors = fit < all ? fit : all;
  if constexpr (panels == 2 && vectors <= vectors_of_panel) {
    tile_of_rows<layout, rows, 1>(w, panel, x, row, to, step, pass);
    tile_of_rows<layout, rows, 1>(w, panel + 1, x, row, to + step, step, pass);
  } else {
    for (int v = 0; v < all; v += vectors) {
      Tile<layout, rows, vectors> t;
      t.run(w, panel, x, row, v, to, step, pass);
    }
  }
}
template <Layout layout, int rows, int panels>
void tile(const BlockMatrix& w, index_t panel, const RoundedRows& x, index_t row, float* to) {
  constexpr index_t step = rows * panel_width;
  constexpr int parts = (rows + Lanes::most_rows - 1) / Lanes::most_rows,
                first = (rows + parts - 1) / parts, other = rows - first;
  static_assert(parts <= 2);
  if constexpr (other == 0) {
    tile_of_rows<layout, rows, panels>(w, panel, x, row, to, step, Pass::only);
  } else {
    // Panels come from memory for these rows alone. Where sums take longer, nothing waits for them.
    const bool waits = Lanes::overlaps && x.rows <= rows;
    tile_of_rows<layout, first, panels>(w, panel, x, row, to, step,
                                        waits ? Pass::first : Pass::only);
    tile_of_rows<layout, other, panels>(w, panel, x, row + first, to + first * panel_width, step,
                                        waits ? Pass::second : Pass::only);
  }
}

// Gives the elements of panels as f32 to a Sink: take<k>(v, x) is element k of a unit for the rows
// of vector v, and end_of_unit() follows the last one.
template <Layout layout, int panels>
class Elements {
 public:
  static constexpr int vectors = panels * vectors_of_panel;

  TAPER_INLINE Elements(const BlockMatrix& w, const index_t* panel) : units_(w.units()) {
    TAPER_UNROLL
    for (int p = 0; p < panels; ++p)
      values_[p] = values_of(w, panel[p]), scales_[p] = scales_of(w, panel[p]);
  }
  template <class Sink>
  TAPER_INLINE void give(Sink& sink) {
    for (index_t blocks = units_ / format.units; blocks > 0; --blocks) {
      for (int u = 0; u < format.units; ++u) {
        half<0>(u, sink), half<1>(u, sink);
        TAPER_UNROLL
        for (int p = 0; p < panels; ++p) values_[p] += format.value_bytes;
        sink.end_of_unit();
      }
      TAPER_UNROLL
      for (int p = 0; p < panels; ++p) scales_[p] += format.scale_bytes;
    }
  }

 private:
  using V = Values<layout>;
  static constexpr PanelFormat format = panel_format(layout);

  template <int h, class Sink>
  TAPER_INLINE void half(int unit, Sink& sink) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      const std::byte* const scales = scales_[v / vectors_of_panel];
      scale_[v] = scale_at<layout>(scales, unit, h, v % vectors_of_panel);
      if constexpr (V::has_offset)
        offset_[v] = offset_at<layout>(scales, unit, v % vectors_of_panel);
    }
    group<4 * h>(sink), group<4 * h + 1>(sink), group<4 * h + 2>(sink), group<4 * h + 3>(sink);
  }
  template <int g, class Sink>
  TAPER_INLINE void group(Sink& sink) {
    B four[vectors];
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      four[v] = V::template at<g>(values_[v / vectors_of_panel], v % vectors_of_panel);
    place<4 * g>(four, sink), place<4 * g + 1>(four, sink);
    place<4 * g + 2>(four, sink), place<4 * g + 3>(four, sink);
  }
  template <int k, class Sink>
  TAPER_INLINE void place(const B* four, Sink& sink) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v)
      sink.template take<k>(v, element(Lanes::template signed_byte<k % 4>(four[v]), v));
  }
  TAPER_INLINE F element(F value, int v) const {
    const F one = Lanes::all(1);  // a product with it is a sum that is rounded once
    if constexpr (layout == Layout::q4_0_panels)
      value = Lanes::multiply_add(one, value, Lanes::all(-8));
    if constexpr (layout == Layout::q6_k_panels)
      value = Lanes::multiply_add(one, value, Lanes::all(-32));
    const F x = Lanes::multiply(scale_[v], value);
    if constexpr (V::has_offset) return Lanes::multiply_add(one, x, offset_[v]);
    return x;
  }

  index_t units_;
  const std::byte *values_[panels], *scales_[panels];
  F scale_[vectors], offset_[vectors];
};

struct Unpacking {
  float* to;

  template <int k>
  TAPER_INLINE void take(int v, F x) {
    Lanes::store(x, to + k * panel_width + v * Lanes::lanes);
  }
  TAPER_INLINE void end_of_unit() { to += unit_elements * panel_width; }
};
template <Layout layout>
void unpack(const BlockMatrix& w, index_t panel, float* to) {
  Unpacking sink{to};
  Elements<layout, 1>(w, &panel).give(sink);
}

template <int rows, int vectors>
struct Multiplying {
  static constexpr int units_of_chain = 256 / unit_elements;

  const float* x[rows];
  F chain[rows][vectors], sum[rows][vectors];
  int units = 0;  // in the chain

  TAPER_INLINE Multiplying(const float* first, index_t x_row) {
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) {
      x[r] = first + r * x_row;
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v)
        chain[r][v] = Lanes::all(0), sum[r][v] = Lanes::all(-0.0f);  // to which nothing is added
    }
  }
  template <int k>
  TAPER_INLINE void take(int v, F w) {
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r)
      chain[r][v] = Lanes::multiply_add(Lanes::all(x[r][k]), w, chain[r][v]);
  }
  TAPER_INLINE void end_of_unit() {
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) x[r] += unit_elements;
    if (++units == units_of_chain) end_of_chain();
  }
  TAPER_INLINE void end_of_chain() {
    units = 0;
    TAPER_UNROLL
    for (int r = 0; r < rows; ++r) TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) {
      sum[r][v] = Lanes::multiply_add(Lanes::all(1), sum[r][v], chain[r][v]);
      chain[r][v] = Lanes::all(0);
    }
  }
};
template <Layout layout, int rows>
void multiply(const BlockMatrix& w, index_t panel, index_t other, const float* x, index_t x_row,
              float* to) {
  constexpr int panels = Lanes::lanes == 4 && rows > 2 ? 1 : 2;  // for whose chains are registers
  const index_t both[2] = {panel, other};
  for (int first = 0; first < 2; first += panels, to += panels * rows * panel_width) {
    Multiplying<rows, panels * vectors_of_panel> sink(x, x_row);
    Elements<layout, panels>(w, both + first).give(sink);
    if (sink.units > 0) sink.end_of_chain();
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < panels * vectors_of_panel; ++v)
        Lanes::store(sink.sum[r][v], to + (v / vectors_of_panel * rows + r) * panel_width +
                                         v % vectors_of_panel * Lanes::lanes);
  }
}

template <Layout layout, size_t... r>
constexpr BlockTiles::OfFormat of_format(std::index_sequence<r...>) {
  return {{tile<layout, static_cast<int>(r) + 1, 1>...},
          {tile<layout, static_cast<int>(r) + 1, 2>...},
          unpack<layout>,
          {multiply<layout, 1>, multiply<layout, 2>, multiply<layout, 4>}};
}
constexpr auto all_rows = std::make_index_sequence<BlockTiles::most_rows>();
constexpr BlockTiles table = {
    {of_format<Layout::q4_0_panels>(all_rows), of_format<Layout::q4_1_panels>(all_rows),
     of_format<Layout::q8_0_panels>(all_rows), of_format<Layout::q4_k_panels>(all_rows),
     of_format<Layout::q6_k_panels>(all_rows)},
    Lanes::round};
