#include "taper/kernels/optimized/microkernel.h"

#include <cstring>
#include <utility>

#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "taper/kernels/optimized/microkernel.cpp"
#include "hwy/foreach_target.h"
#include "taper/kernels/optimized/panel_tile-inl.h"
#include "taper/kernels/optimized/row_tile-inl.h"
#include "taper/kernels/optimized/simd-inl.h"
#include "taper/kernels/optimized/tasks.h"

HWY_BEFORE_NAMESPACE();
namespace taper::optimized {
namespace HWY_NAMESPACE {
namespace {

// The sums and one row of b stay in registers. The elements of a are broadcast from memory.
constexpr int most_rows = registers == 32 ? 12 : 6, most_vectors = 2;

// If a is packed, a(r, k) lies at a[k * rows + r], otherwise at a[r * a_row + k].
template <int rows, int vectors, bool packed>
HWY_INLINE void tile_of(index_t depth, const float* HWY_RESTRICT a, index_t a_row,
                        const float* HWY_RESTRICT b, const index_t* HWY_RESTRICT b_rows,
                        float* HWY_RESTRICT c, index_t c_row, bool add_to_c) {
  // pointers to every third row: the addressing modes of a processor reach the two rows behind for
  // free
  const float* third[(rows + 2) / 3];
  for (int r = 0; r < rows; r += 3) third[r / 3] = a + r * a_row;
  Vec sum[rows][vectors];
  TAPER_UNROLL
  for (int r = 0; r < rows; ++r) TAPER_UNROLL
  for (int v = 0; v < vectors; ++v) sum[r][v] = broadcast(0);

  // One line of c after the other is prefetched while the sums are computed, so that all are in the
  // cache at the end.
  index_t k = 0;
  for (int part = 0; part < rows; ++part) {
    TAPER_UNROLL
    for (int v = 0; v < vectors; ++v) __builtin_prefetch(c + part * c_row + v * lanes, 1);
    for (const index_t stop = depth * (part + 1) / rows; k < stop; ++k) {
      const float* b_row = b + b_rows[k];
      const float* b_ahead = b + b_rows[k + Microkernels::rows_ahead];
      Vec column[vectors];
      TAPER_UNROLL
      for (int v = 0; v < vectors; ++v) {
        column[v] = load(b_row + v * lanes);
        __builtin_prefetch(b_ahead + v * lanes);
      }
      TAPER_UNROLL
      for (int r = 0; r < rows; ++r) {
        const Vec row = broadcast(packed ? a[r] : third[r / 3][r % 3 * a_row]);
        TAPER_UNROLL
        for (int v = 0; v < vectors; ++v) sum[r][v] = multiply_add(row, column[v], sum[r][v]);
      }
      if (packed) a += rows;
      TAPER_UNROLL
      for (int r = 0; !packed && r < rows; r += 3) ++third[r / 3];
    }
  }

  store_tile(sum, c, c_row, add_to_c);
}

template <int rows, int vectors>
void tile(index_t depth, const float* a, const float* b, const index_t* b_rows, float* c,
          index_t c_row, bool add_to_c) {
  tile_of<rows, vectors, true>(depth, a, 0, b, b_rows, c, c_row, add_to_c);
}
template <int rows, int vectors>
void tile_in_place(index_t depth, const float* a, index_t a_row, const float* b,
                   const index_t* b_rows, float* c, index_t c_row, bool add_to_c) {
  tile_of<rows, vectors, false>(depth, a, a_row, b, b_rows, c, c_row, add_to_c);
}

// ---- packing ----

constexpr int line = 16;  // floats of a cache line

// Computes to[k][i] = from[i][k] for the columns of some groups, `width` columns each. Sixteen
// places along k are read together: a whole cache line. At a stride that is a power of two, the
// line would not stay in the cache for a second read. The groups go along k together, so that each
// line of `to` is complete while it lies in the nearest cache.
template <int width, int groups>
void turn_groups(const float* from, index_t across_stride, index_t depth, float* to,
                 index_t to_row) {
  const index_t group = width * across_stride;
  index_t k = 0;
  for (; k + line <= depth; k += line)
    for (int g = 0; g < groups; ++g)
      transpose<width, line / 4>(from + g * group + k, across_stride, to + k * to_row + g * width,
                                 to_row);
  for (; k + 4 <= depth; k += 4)
    for (int g = 0; g < groups; ++g)
      transpose<width, 1>(from + g * group + k, across_stride, to + k * to_row + g * width, to_row);
  for (; k < depth; ++k)
    for (index_t c = 0; c < groups * width; ++c) to[k * to_row + c] = from[c * across_stride + k];
}

// The same for columns [0, across), which are fewer than `line` if vectors could be wider. The last
// columns may be written twice.
template <int width>
void pack_transposed(const float* from, index_t across_stride, index_t across, index_t depth,
                     float* to, index_t to_row) {
  index_t i = 0;
  if constexpr (width == smaller(lanes, line))
    for (; i + line <= across; i += line)
      turn_groups<width, line / width>(from + i * across_stride, across_stride, depth, to + i,
                                       to_row);
  for (; i < across; i += width) {
    const index_t begin = i + width <= across ? i : across - width;
    turn_groups<width, 1>(from + begin * across_stride, across_stride, depth, to + begin, to_row);
  }
}

void pack(const float* from, index_t across_stride, index_t depth_stride, index_t across,
          index_t depth, float* to, index_t to_row) {
  index_t done = 0;  // columns of `to` that are complete
  if (across_stride == 1) {
    done = across / 4 * 4;
    for (index_t k = 0; k < depth; ++k) {
      const float* source = from + k * depth_stride;
      float* target = to + k * to_row;
      index_t i = 0;
      for (; i + lanes <= across; i += lanes) store(load(source + i), target + i);
      for (; i < done; i += 4) std::memcpy(target + i, source + i, 4 * sizeof(float));
    }
  } else if (depth_stride == 1 && across >= 4) {
    done = across;
    if (lanes >= 16 && across >= 16)
      pack_transposed<smaller(lanes, line)>(from, across_stride, across, depth, to, to_row);
    else if (lanes >= 8 && across >= 8)
      pack_transposed<smaller(lanes, 8)>(from, across_stride, across, depth, to, to_row);
    else
      pack_transposed<4>(from, across_stride, across, depth, to, to_row);
  }
  for (index_t k = 0; done < across && k < depth; ++k)
    for (index_t i = done; i < across; ++i)
      to[k * to_row + i] = from[i * across_stride + k * depth_stride];
}

// `pack` for the panels of weights. Only whole panels take vectors, which is half as much code.
void pack_panel(const float* from, index_t across_stride, index_t depth_stride, index_t across,
                index_t depth, float* to, index_t to_row) {
  constexpr int width = smaller(lanes, line);
  static_assert(line == panel_width);
  if (across == line && depth_stride == 1)
    return turn_groups<width, line / width>(from, across_stride, depth, to, to_row);
  if (across == line && across_stride == 1) {
    for (index_t k = 0; k < depth; ++k)
      std::memcpy(to + k * to_row, from + k * depth_stride, line * sizeof(float));
    return;
  }
  for (index_t k = 0; k < depth; ++k)
    for (index_t i = 0; i < across; ++i)
      to[k * to_row + i] = from[i * across_stride + k * depth_stride];
}

// ---- epilogue, and other work on results ----

void narrow(index_t rows, const float* from, index_t width, index_t columns, float* c,
            index_t c_row, bool add_to_c) {
  const index_t whole = columns / lanes * lanes, rest = columns - whole;
  for (index_t r = 0; r < rows; ++r, from += width, c += c_row) {
    for (index_t j = 0; j < whole; j += lanes)
      store(add_to_c ? add(load(c + j), load(from + j)) : load(from + j), c + j);
    if (rest == 0) continue;
    const Vec v = load(from + whole);
    store_first(add_to_c ? add(load_first(c + whole, rest), v) : v, c + whole, rest);
  }
}

void finish(index_t rows, index_t columns, float* c, index_t c_row, const Epilogue& epilogue) {
  const bool has_addend = epilogue.addend != nullptr,
             clamps = epilogue.activation == Activation::relu;
  const Vec alpha = broadcast(epilogue.alpha), beta = broadcast(epilogue.beta);
  for (index_t r = 0; r < rows; ++r) {
    float* y = c + r * c_row;
    const float* addend = has_addend ? epilogue.addend + r * epilogue.addend_row : nullptr;
    index_t j = 0;
    if (!has_addend || epilogue.addend_column <= 1) {
      const index_t step = epilogue.addend_column;
      for (; j + lanes <= columns; j += lanes) {
        Vec v = multiply(load(y + j), alpha);
        if (has_addend)
          v = add(v, multiply(step == 1 ? load(addend + j) : broadcast(*addend), beta));
        store(clamps ? relu(v) : v, y + j);
      }
    }
    for (; j < columns; ++j) {
      float v = y[j] * epilogue.alpha;
      if (has_addend) v += addend[j * epilogue.addend_column] * epilogue.beta;
      y[j] = clamps && v < 0 ? 0 : v;
    }
  }
}

float sum(const float* from, index_t count) {
  Vec partial[4] = {broadcast(0), broadcast(0), broadcast(0), broadcast(0)};
  index_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) TAPER_UNROLL
  for (int v = 0; v < 4; ++v) partial[v] = add(partial[v], load(from + i + v * lanes));
  float lane[lanes], total = 0;
  store(add(add(partial[0], partial[1]), add(partial[2], partial[3])), lane);
  for (int l = 0; l < lanes; ++l) total += lane[l];
  for (; i < count; ++i) total += from[i];
  return total;
}

// ---- the table ----

// So many vectors that registers remain for a row of b and an element of a.
constexpr int long_vectors(int rows) { return smaller(16, registers * 3 / 4 / rows); }

// For vectors of a whole panel, three of them beside each other need fewer loads a multiply-add.
constexpr int panel_rows = vectors_of_panel == 1 ? 8 : most_rows,
              panel_vectors = vectors_of_panel == 1 ? 3 : most_vectors;
static_assert(panel_rows * panel_vectors * lanes <= Microkernels::most_floats);

// For few rows of a and a packed b: whole panels, and only as many as the prefetchers of a
// processor can follow. One that is no wider than the others is not worth a tile of its own.
template <int rows>
constexpr Microkernels::LongPanel long_panel() {
  constexpr int most = smaller(8, registers * 3 / 4 / rows) / vectors_of_panel * vectors_of_panel;
  if constexpr (most > panel_vectors)
    return {most, panel_tile<rows, most, true>};
  else
    return {0, nullptr};
}

template <int rows, int vectors>
constexpr PanelTile panel_tile_or_none() {
  if constexpr (rows <= panel_rows && vectors <= panel_vectors)
    return panel_tile<rows, vectors>;
  else
    return nullptr;
}

template <size_t... r>
constexpr Microkernels make_table(std::index_sequence<r...>) {
  return {lanes,
          most_rows,
          most_vectors,
          {{tile<r + 1, 1>, tile<r + 1, 2>}...},
          {{tile_in_place<r + 1, 1>, tile_in_place<r + 1, 2>}...},
          panel_rows,
          panel_vectors,
          {{panel_tile_or_none<r + 1, 1>(), panel_tile_or_none<r + 1, 2>(),
            panel_tile_or_none<r + 1, 3>()}...},
          {{long_vectors(1), tile<1, long_vectors(1)>},
           {long_vectors(2), tile<2, long_vectors(2)>},
           {long_vectors(3), tile<3, long_vectors(3)>},
           {long_vectors(4), tile<4, long_vectors(4)>}},
          {long_panel<1>(), long_panel<2>(), long_panel<3>(), long_panel<4>()},
          {row_tile<1>, row_tile<2>, row_tile<3>, row_tile<4>},
          pack,
          narrow,
          finish,
          sum};
}
constexpr Microkernels table = make_table(std::make_index_sequence<most_rows>());

constexpr Microkernels without_dense_tiles(Microkernels m) {
  for (int r = 0; r < most_rows; ++r)
    for (int v = 0; v < most_vectors; ++v) m.tile[r][v] = nullptr, m.tile_in_place[r][v] = nullptr;
  for (int r = 0; r < Microkernels::most_rows_of_long; ++r)
    m.long_tile[r].tile = nullptr, m.row_tile[r] = nullptr;
  return m;
}
constexpr Microkernels without_panel_tiles(Microkernels m) {
  for (int r = 0; r < Microkernels::most_rows; ++r)
    for (int v = 0; v < Microkernels::most_panel_vectors; ++v) m.panel_tile[r][v] = nullptr;
  for (int r = 0; r < Microkernels::most_rows_of_long; ++r) m.long_panel_tile[r].tile = nullptr;
  m.pack = pack_panel, m.narrow = nullptr, m.finish = nullptr, m.sum = nullptr;
  return m;
}
// For a packed b and one row of a, which is never packed.
constexpr Microkernels of_one_row(Microkernels m) {
  for (int r = 1; r < Microkernels::most_rows; ++r)
    for (int v = 0; v < Microkernels::most_panel_vectors; ++v) m.panel_tile[r][v] = nullptr;
  for (int r = 1; r < Microkernels::most_rows_of_long; ++r) m.long_panel_tile[r].tile = nullptr;
  m.panel_rows = 1, m.pack = nullptr, m.sum = nullptr;
  return m;
}
constexpr Microkernels panel_table = without_dense_tiles(table),
                       row_table = of_one_row(panel_table),
                       packing_table = without_panel_tiles(panel_table);

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace taper::optimized
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taper::optimized {
TAPER_DEFINE_LEVEL_TABLES(Microkernels, microkernels, table)
TAPER_DEFINE_LEVEL_TABLES(Microkernels, panel_microkernels, panel_table)
TAPER_DEFINE_LEVEL_TABLES(Microkernels, row_microkernels, row_table)
TAPER_DEFINE_LEVEL_TABLES(Microkernels, packing_microkernels, packing_table)
}  // namespace taper::optimized
#endif
