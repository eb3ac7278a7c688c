#include "taper/kernels/portable/pointwise.h"

namespace taper::portable {
namespace {

// Computes elements [first, first + n), block by block through buffers.
void run_blocks(Span<const Source> sources, const TensorRef& out, DType computes, BlockFunction f,
                const void* functor, index_t first, index_t n) {
  constexpr int max_sources = 3;
  alignas(16) char buffers[max_sources + 1][block_bytes];
  Rows in[max_sources] = {};
  bool filled[max_sources] =
      {};  // the buffer of a constant argument is filled once: no later block is longer
  const int out_bytes = size_bytes(out.dtype);
  const bool stores = computes != out.dtype;
  const Store store = storer(computes, out.dtype);
  constexpr index_t block = block_bytes / 8;  // as many elements as fit of the widest type
  for (index_t at = first, end = first + n; at < end; at += block) {
    const index_t count = end - at < block ? end - at : block;
    for (index_t k = 0; k < sources.size(); ++k) {
      if (filled[k]) continue;
      in[k].data = read_block(sources[k], at, count, buffers[k]);
      filled[k] = sources[k].walk->is_constant();
    }
    void* to = static_cast<char*>(out.data) + at * out_bytes;
    f(functor, 1, count, in, stores ? buffers[max_sources] : to);
    if (stores) store(buffers[max_sources], count, to);
  }
}

// For arguments that broadcast. Each row along the innermost dimension is dense, or repeats one
// element. Rows have at least this length.
constexpr index_t least_row = 16;

bool have_rows(Span<const Source> sources, index_t count, index_t& row) {
  row = count;
  for (const Source& source : sources) {
    const Walk& walk = *source.walk;
    const int inner = walk.rank - 1;
    if (source.converts || walk.strides[inner] < 0 || walk.strides[inner] > 1) return false;
    if (walk.strides[inner] == 0 && sources.size() == 1) return false;
    if (walk.sizes[inner] < row && inner > 0) row = walk.sizes[inner];
  }
  if (row < least_row) return false;
  // an argument with fewer dimensions has longer rows
  for (const Source& source : sources)
    if (source.walk->sizes[source.walk->rank - 1] % row != 0) return false;
  return true;
}

void run_rows(Span<const Source> sources, const TensorRef& out, BlockFunction f,
              const void* functor, index_t row, index_t first, index_t n) {
  constexpr int max_sources = 3;
  const int out_bytes = size_bytes(out.dtype);
  Cursor cursors[max_sources];
  for (index_t k = 0; k < sources.size(); ++k) cursors[k] = Cursor(*sources[k].walk, first);
  for (index_t at = first, end = first + n; at < end;) {
    const index_t rest = row - at % row, length = end - at < rest ? end - at : rest;
    // takes as many whole rows as lie at one stride in every argument
    index_t rows = length == row ? (end - at) / row : 1;
    Rows in[max_sources];
    for (index_t k = 0; k < sources.size(); ++k) {
      const Walk& walk = *sources[k].walk;
      const int inner = walk.rank - 1;
      const bool longer = inner == 0 || walk.sizes[inner] > row;
      in[k] = {sources[k].at(cursors[k].offset()), walk.strides[inner] == 0,
               longer ? row * walk.strides[inner] : walk.strides[inner - 1]};
      const index_t left = longer ? cursors[k].left(inner) / row : cursors[k].left(inner - 1);
      if (left < rows && length == row) rows = left;
    }
    f(functor, rows, length, in, static_cast<char*>(out.data) + at * out_bytes);
    at += rows * length;
    for (index_t k = 0; k < sources.size(); ++k) {
      const Walk& walk = *sources[k].walk;
      const int inner = walk.rank - 1;
      if (inner == 0 || walk.sizes[inner] > row || length < row)
        cursors[k].advance(inner, rows * length);
      else
        cursors[k].advance(inner - 1, rows);
    }
  }
}

// For matrices with transposed arguments, whose columns are dense. One cache line of a transposed
// argument holds elements of several rows. So these rows are computed together, a tile at a time.
constexpr index_t line_bytes = 64, tile_columns = 32;

struct Tiles {
  index_t rows, columns;  // of each matrix
  index_t height;         // rows of a tile
};

bool is_transposed(const Source& source) {
  const Walk& walk = *source.walk;
  const int inner = walk.rank - 1;
  return inner > 0 && !source.converts && walk.strides[inner] > 1 && walk.strides[inner - 1] == 1;
}

bool have_tiles(Span<const Source> sources, Tiles& tiles) {
  tiles = {};
  for (const Source& source : sources) {
    if (!is_transposed(source)) continue;
    const Walk& walk = *source.walk;
    const index_t rows = walk.sizes[walk.rank - 2], columns = walk.sizes[walk.rank - 1];
    if (tiles.height != 0 && (rows != tiles.rows || columns != tiles.columns)) return false;
    tiles = {rows, columns, line_bytes / source.element_bytes};
  }
  return tiles.height != 0 && tiles.rows >= tiles.height && tiles.columns >= tile_columns;
}

template <class E>
void turn(const void* from, index_t stride, index_t rows, index_t columns, void* tile) {
  const E* x = static_cast<const E*>(from);
  E* y = static_cast<E*>(tile);
  for (index_t c = 0; c < columns; ++c, x += stride)
    for (index_t r = 0; r < rows; ++r) y[r * tile_columns + c] = x[r];
}
void read_tile(const Source& source, index_t first, index_t rows, index_t columns, void* tile) {
  const void* from = source.at(source.walk->offset_of(first));
  const index_t stride = source.walk->strides[source.walk->rank - 1];
  switch (source.element_bytes) {
    case 1:
      return turn<Bytes<1>>(from, stride, rows, columns, tile);
    case 2:
      return turn<Bytes<2>>(from, stride, rows, columns, tile);
    case 4:
      return turn<Bytes<4>>(from, stride, rows, columns, tile);
    default:
      return turn<Bytes<8>>(from, stride, rows, columns, tile);
  }
}

// Computes rows [row, row + rows) of one matrix, which begins at element `first`.
void run_tiles(Span<const Source> sources, const TensorRef& out, DType computes, BlockFunction f,
               const void* functor, const Tiles& tiles, index_t first, index_t rows) {
  constexpr int max_sources = 3;
  alignas(16) char buffers[max_sources][line_bytes * tile_columns];
  alignas(16) char computed[tile_columns * 8];
  const int out_bytes = size_bytes(out.dtype);
  const bool stores = computes != out.dtype;
  const Store store = storer(computes, out.dtype);
  for (index_t c = 0; c < tiles.columns; c += tile_columns) {
    const index_t n = tiles.columns - c < tile_columns ? tiles.columns - c : tile_columns;
    for (index_t k = 0; k < sources.size(); ++k)
      if (is_transposed(sources[k])) read_tile(sources[k], first + c, rows, n, buffers[k]);
    for (index_t r = 0; r < rows; ++r) {
      const index_t at = first + r * tiles.columns + c;
      Rows in[max_sources] = {};
      for (index_t k = 0; k < sources.size(); ++k)
        in[k].data = is_transposed(sources[k])
                         ? buffers[k] + r * tile_columns * sources[k].element_bytes
                         : read_block(sources[k], at, n, buffers[k]);
      void* to = static_cast<char*>(out.data) + at * out_bytes;
      f(functor, 1, n, in, stores ? computed : to);
      if (stores) store(computed, n, to);
    }
  }
}

bool is_small(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

}  // namespace

void run_small_blocks(const void* small_blocks, index_t rows, index_t n, const Rows* in,
                      void* out) {
  const SmallBlocks& b = *static_cast<const SmallBlocks*>(small_blocks);
  constexpr index_t part = 256;
  alignas(64) float x[3][part], y[part];
  for (index_t r = 0; r < rows; ++r)
    for (index_t at = 0; at < n; at += part) {
      const index_t count = n - at < part ? n - at : part;
      Rows floats[3] = {};
      for (int k = 0; k < b.arguments; ++k) {
        const index_t first = r * in[k].stride + (in[k].repeats ? 0 : at);
        const void* from = static_cast<const char*>(in[k].data) + first * size_bytes(b.in[k]);
        const bool converts = is_small(b.in[k]);
        if (converts) b.floats->widen(b.in[k], in[k].repeats ? 1 : count, from, x[k]);
        floats[k] = {converts ? x[k] : from, in[k].repeats};
      }
      void* to = static_cast<char*>(out) + (r * n + at) * size_bytes(b.result);
      const bool converts = is_small(b.result);
      b.loop(b.functor, 1, count, floats, converts ? y : to);
      if (converts) b.floats->narrow(b.result, count, y, to);
    }
}

void run_pointwise(const Context& context, index_t count, Span<const Source> sources,
                   const TensorRef& out, DType computes, BlockFunction f, const void* functor) {
  bool direct = computes == out.dtype;
  for (const Source& source : sources) direct = direct && source.is_direct();
  index_t row = 0;
  const bool rows = !direct && computes == out.dtype && have_rows(sources, count, row);
  Tiles tiles;
  if (!direct && !rows && have_tiles(sources, tiles)) {
    // a task is a strip of rows of one matrix
    const index_t strips = (tiles.rows + tiles.height - 1) / tiles.height;
    const index_t matrices = count / (tiles.rows * tiles.columns);
    return parallel_for(context.threads, matrices * strips, [&](index_t task) {
      const index_t row = task % strips * tiles.height, left = tiles.rows - row;
      run_tiles(sources, out, computes, f, functor, tiles,
                (task / strips * tiles.rows + row) * tiles.columns,
                left < tiles.height ? left : tiles.height);
    });
  }
  const index_t tasks = (count + pointwise_grain - 1) / pointwise_grain;
  parallel_for(context.threads, tasks, [&](index_t task) {
    const index_t first = task * pointwise_grain;
    const index_t n = count - first < pointwise_grain ? count - first : pointwise_grain;
    if (rows) return run_rows(sources, out, f, functor, row, first, n);
    if (!direct) return run_blocks(sources, out, computes, f, functor, first, n);
    Rows in[3] = {};
    for (index_t k = 0; k < sources.size(); ++k) in[k].data = sources[k].at(first);
    f(functor, 1, n, in, static_cast<char*>(out.data) + first * size_bytes(out.dtype));
  });
}

}  // namespace taper::portable
