// The functions of pthreadpool that XNNPACK calls, on the caller's Threads. So there is one pool,
// and pthreadpool is not linked. Tiles of all dimensions are counted as one row of tasks.
#include "taper/delegates/xnnpack/runtime/threads.h"

#include <cstddef>
#include <utility>

namespace {

using taper::index_t;

// A grid of tasks: `rank` ranges, of which the last `tiled` ones are cut into tiles.
template <size_t rank, size_t tiled>
struct Grid {
  size_t ranges[rank];
  size_t tiles[tiled == 0 ? 1 : tiled];

  size_t step(size_t d) const { return d + tiled < rank ? 1 : tiles[d + tiled - rank]; }
};

// The tasks of a grid in a row.
template <size_t rank, size_t tiled>
class Row {
 public:
  explicit Row(const Grid<rank, tiled>& grid) : grid_(grid) {
    for (size_t d = 0; d < rank; ++d)
      counts_[d] = (grid.ranges[d] + grid.step(d) - 1) / grid.step(d);
  }
  index_t tasks() const {
    size_t n = 1;
    for (const size_t count : counts_) n *= count;
    return static_cast<index_t>(n);
  }
  // Where task `i` begins, and how far its tiles go.
  void locate(index_t i, size_t* starts, size_t* extents) const {
    size_t rest = static_cast<size_t>(i);
    for (size_t d = rank; d-- > 0;) {
      const size_t step = grid_.step(d);
      starts[d] = rest % counts_[d] * step;
      rest /= counts_[d];
      const size_t left = grid_.ranges[d] - starts[d];
      if (d + tiled >= rank) extents[d + tiled - rank] = left < step ? left : step;
    }
  }

 private:
  Grid<rank, tiled> grid_;
  size_t counts_[rank];  // of tiles along each range
};

// What the threads of a call read, in one or two lines of memory.
template <bool with_thread, size_t rank, size_t tiled, class Function>
struct alignas(64) Body {
  Function function;
  void* context;
  Row<rank, tiled> row;

  void operator()(index_t i, int thread) const {
    run(i, thread, std::make_index_sequence<rank>(), std::make_index_sequence<tiled>());
  }
  template <size_t... s, size_t... e>
  void run(index_t i, [[maybe_unused]] int thread, std::index_sequence<s...>,
           std::index_sequence<e...>) const {
    size_t starts[rank], extents[tiled + 1];
    row.locate(i, starts, extents);
    if constexpr (with_thread)
      function(context, static_cast<size_t>(thread), starts[s]..., extents[e]...);
    else
      function(context, starts[s]..., extents[e]...);
  }
};

template <bool with_thread = false, size_t rank, size_t tiled, class Function>
void parallelize(pthreadpool_t pool, Function function, void* context,
                 const Grid<rank, tiled>& grid) {
  const Body<with_thread, rank, tiled, Function> body{function, context, Row<rank, tiled>(grid)};
  taper::parallel_for_threads(pool == nullptr ? nullptr : pool->threads, body.row.tasks(), body);
}

// Rows of so many tiles at most read weights that are large, as a rule.
constexpr size_t few_rows = 512;
// Weights of fewer columns are small, as a rule: then each thread keeps the rows that it has made.
constexpr size_t many_columns = 512;
// Tiles of products have at most so many rows.
constexpr size_t most_rows = 16;
// Kernels compute 2 to 64 columns at a time: tiles begin at a multiple of that.
constexpr size_t columns_at_a_time = 64;

// Products, whose rows i meet the weights of columns j. Weights of many columns are read from
// memory far away. So all rows use those of a tile before the next tile begins, and the tiles of
// few rows are narrow: their weights stay in the second-level cache. Other functions may run in
// this order, too.
size_t narrow_tile(size_t rows, size_t row_tile, size_t column_tile) {
  const bool reads_large_weights =
      row_tile > 1 && row_tile <= most_rows && row_tile < rows && rows <= few_rows;
  return reads_large_weights && column_tile > columns_at_a_time ? columns_at_a_time : column_tile;
}
template <class Function>
void parallelize_by_columns(pthreadpool_t pool, Function function, void* context,
                            const Grid<2, 2>& grid) {
  const auto [rows, columns] = grid.ranges;
  const auto [row_tile, column_tile] = grid.tiles;
  if (columns < many_columns) return parallelize(pool, function, context, grid);
  parallelize(
      pool,
      [function](void* c, size_t j, size_t i, size_t tj, size_t ti) { function(c, i, j, ti, tj); },
      context, Grid<2, 2>{{columns, rows}, {narrow_tile(rows, row_tile, column_tile), row_tile}});
}
template <class Function>
void parallelize_by_columns(pthreadpool_t pool, Function function, void* context,
                            const Grid<3, 2>& grid) {
  const auto [batches, rows, columns] = grid.ranges;
  const auto [row_tile, column_tile] = grid.tiles;
  if (columns < many_columns) return parallelize(pool, function, context, grid);
  parallelize(
      pool,
      [function](void* c, size_t b, size_t j, size_t i, size_t tj, size_t ti) {
        function(c, b, i, j, ti, tj);
      },
      context,
      Grid<3, 2>{{batches, columns, rows}, {narrow_tile(rows, row_tile, column_tile), row_tile}});
}

// On Arm, functions take the kind of core that they run on. All cores compute with the kernels of
// the default one: they are tuned for it, and run on any.
template <class Function>
auto on_default_core(Function function, uint32_t kind) {
  return [function, kind](void* context, auto... at) { function(context, kind, at...); };
}

}  // namespace

extern "C" {

size_t pthreadpool_get_threads_count(pthreadpool_t pool) {
  return pool == nullptr || pool->threads == nullptr ? 1
                                                     : static_cast<size_t>(pool->threads->count);
}

void pthreadpool_parallelize_1d(pthreadpool_t p, pthreadpool_task_1d_t f, void* c, size_t i,
                                uint32_t) {
  parallelize(p, f, c, Grid<1, 0>{{i}, {}});
}
void pthreadpool_parallelize_1d_with_thread(pthreadpool_t p, pthreadpool_task_1d_with_thread_t f,
                                            void* c, size_t i, uint32_t) {
  parallelize<true>(p, f, c, Grid<1, 0>{{i}, {}});
}
void pthreadpool_parallelize_1d_tile_1d(pthreadpool_t p, pthreadpool_task_1d_tile_1d_t f, void* c,
                                        size_t i, size_t ti, uint32_t) {
  parallelize(p, f, c, Grid<1, 1>{{i}, {ti}});
}
void pthreadpool_parallelize_2d(pthreadpool_t p, pthreadpool_task_2d_t f, void* c, size_t i,
                                size_t j, uint32_t) {
  parallelize(p, f, c, Grid<2, 0>{{i, j}, {}});
}
void pthreadpool_parallelize_2d_with_thread(pthreadpool_t p, pthreadpool_task_2d_with_thread_t f,
                                            void* c, size_t i, size_t j, uint32_t) {
  parallelize<true>(p, f, c, Grid<2, 0>{{i, j}, {}});
}
void pthreadpool_parallelize_2d_tile_1d(pthreadpool_t p, pthreadpool_task_2d_tile_1d_t f, void* c,
                                        size_t i, size_t j, size_t tj, uint32_t) {
  parallelize(p, f, c, Grid<2, 1>{{i, j}, {tj}});
}
void pthreadpool_parallelize_2d_tile_2d(pthreadpool_t p, pthreadpool_task_2d_tile_2d_t f, void* c,
                                        size_t i, size_t j, size_t ti, size_t tj, uint32_t) {
  parallelize_by_columns(p, f, c, Grid<2, 2>{{i, j}, {ti, tj}});
}
void pthreadpool_parallelize_3d(pthreadpool_t p, pthreadpool_task_3d_t f, void* c, size_t i,
                                size_t j, size_t k, uint32_t) {
  parallelize(p, f, c, Grid<3, 0>{{i, j, k}, {}});
}
void pthreadpool_parallelize_3d_tile_1d(pthreadpool_t p, pthreadpool_task_3d_tile_1d_t f, void* c,
                                        size_t i, size_t j, size_t k, size_t tk, uint32_t) {
  parallelize(p, f, c, Grid<3, 1>{{i, j, k}, {tk}});
}
void pthreadpool_parallelize_3d_tile_1d_with_thread(pthreadpool_t p,
                                                    pthreadpool_task_3d_tile_1d_with_thread_t f,
                                                    void* c, size_t i, size_t j, size_t k,
                                                    size_t tk, uint32_t) {
  parallelize<true>(p, f, c, Grid<3, 1>{{i, j, k}, {tk}});
}
void pthreadpool_parallelize_3d_tile_2d(pthreadpool_t p, pthreadpool_task_3d_tile_2d_t f, void* c,
                                        size_t i, size_t j, size_t k, size_t tj, size_t tk,
                                        uint32_t) {
  parallelize_by_columns(p, f, c, Grid<3, 2>{{i, j, k}, {tj, tk}});
}
void pthreadpool_parallelize_4d(pthreadpool_t p, pthreadpool_task_4d_t f, void* c, size_t i,
                                size_t j, size_t k, size_t l, uint32_t) {
  parallelize(p, f, c, Grid<4, 0>{{i, j, k, l}, {}});
}
void pthreadpool_parallelize_4d_tile_2d(pthreadpool_t p, pthreadpool_task_4d_tile_2d_t f, void* c,
                                        size_t i, size_t j, size_t k, size_t l, size_t tk,
                                        size_t tl, uint32_t) {
  parallelize(p, f, c, Grid<4, 2>{{i, j, k, l}, {tk, tl}});
}
void pthreadpool_parallelize_5d(pthreadpool_t p, pthreadpool_task_5d_t f, void* c, size_t i,
                                size_t j, size_t k, size_t l, size_t m, uint32_t) {
  parallelize(p, f, c, Grid<5, 0>{{i, j, k, l, m}, {}});
}
void pthreadpool_parallelize_5d_tile_2d(pthreadpool_t p, pthreadpool_task_5d_tile_2d_t f, void* c,
                                        size_t i, size_t j, size_t k, size_t l, size_t m, size_t tl,
                                        size_t tm, uint32_t) {
  parallelize(p, f, c, Grid<5, 2>{{i, j, k, l, m}, {tl, tm}});
}
void pthreadpool_parallelize_6d_tile_2d(pthreadpool_t p, pthreadpool_task_6d_tile_2d_t f, void* c,
                                        size_t i, size_t j, size_t k, size_t l, size_t m, size_t n,
                                        size_t tm, size_t tn, uint32_t) {
  parallelize(p, f, c, Grid<6, 2>{{i, j, k, l, m, n}, {tm, tn}});
}

void pthreadpool_parallelize_2d_tile_1d_with_uarch(pthreadpool_t p,
                                                   pthreadpool_task_2d_tile_1d_with_id_t f, void* c,
                                                   uint32_t kind, uint32_t, size_t i, size_t j,
                                                   size_t tj, uint32_t) {
  parallelize(p, on_default_core(f, kind), c, Grid<2, 1>{{i, j}, {tj}});
}
void pthreadpool_parallelize_2d_tile_2d_with_uarch(pthreadpool_t p,
                                                   pthreadpool_task_2d_tile_2d_with_id_t f, void* c,
                                                   uint32_t kind, uint32_t, size_t i, size_t j,
                                                   size_t ti, size_t tj, uint32_t) {
  parallelize_by_columns(p, on_default_core(f, kind), c, Grid<2, 2>{{i, j}, {ti, tj}});
}
void pthreadpool_parallelize_3d_tile_1d_with_uarch(pthreadpool_t p,
                                                   pthreadpool_task_3d_tile_1d_with_id_t f, void* c,
                                                   uint32_t kind, uint32_t, size_t i, size_t j,
                                                   size_t k, size_t tk, uint32_t) {
  parallelize(p, on_default_core(f, kind), c, Grid<3, 1>{{i, j, k}, {tk}});
}
void pthreadpool_parallelize_3d_tile_1d_with_uarch_with_thread(
    pthreadpool_t p, pthreadpool_task_3d_tile_1d_with_id_with_thread_t f, void* c, uint32_t kind,
    uint32_t, size_t i, size_t j, size_t k, size_t tk, uint32_t) {
  parallelize<true>(p, on_default_core(f, kind), c, Grid<3, 1>{{i, j, k}, {tk}});
}
void pthreadpool_parallelize_3d_tile_2d_with_uarch(pthreadpool_t p,
                                                   pthreadpool_task_3d_tile_2d_with_id_t f, void* c,
                                                   uint32_t kind, uint32_t, size_t i, size_t j,
                                                   size_t k, size_t tj, size_t tk, uint32_t) {
  parallelize_by_columns(p, on_default_core(f, kind), c, Grid<3, 2>{{i, j, k}, {tj, tk}});
}
void pthreadpool_parallelize_4d_tile_2d_with_uarch(pthreadpool_t p,
                                                   pthreadpool_task_4d_tile_2d_with_id_t f, void* c,
                                                   uint32_t kind, uint32_t, size_t i, size_t j,
                                                   size_t k, size_t l, size_t tk, size_t tl,
                                                   uint32_t) {
  parallelize(p, on_default_core(f, kind), c, Grid<4, 2>{{i, j, k, l}, {tk, tl}});
}

}  // extern "C"
