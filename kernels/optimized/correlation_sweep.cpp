#include "taper/kernels/optimized/correlation_sweep.h"

#include "taper/kernels/optimized/gemm.h"

namespace taper::optimized::correlation {

namespace {

// With rows of taps that go up, the image is seen upside down.
void run_channel(const Microkernels& kernels, const Sweep& s, Direction direction) {
  Channel c{s.depth, s.tap_rows, s.tap_columns, s.row_step, s.weight,     s.offsets, s.base,
            s.pitch, s.height,   s.width,       s.result,   s.result_row, s.bias,    s.activation};
  if (direction == Direction::backward) {
    c.from += (c.height - 1) * c.pitch, c.pitch = -c.pitch;
    c.to += (c.height - 1) * c.to_row, c.to_row = -c.to_row;
  }
  kernels.channel(c);
}

// Copies `count` columns of a tile to a row of the result.
void write_columns(const Microkernels& kernels, const Sweep& s, index_t rows, const float* tile,
                   index_t width, index_t count, float* to) {
  if (s.result_column == 1)
    return kernels.narrow(rows, tile, width, count, to, s.result_channel, false);
  for (index_t r = 0; r < rows; ++r, tile += width, to += s.result_channel)
    for (index_t i = 0; i < count; ++i) to[i * s.result_column] = tile[i];
}

// The last steps of a panel's channels, from `first` on.
void finish(const Microkernels& kernels, const Sweep& s, index_t first, index_t rows,
            index_t columns, float* sums, index_t sums_row) {
  Epilogue epilogue;
  epilogue.activation = s.activation;
  if (s.bias != nullptr) epilogue.addend = s.bias + first, epilogue.addend_row = 1;
  if (!epilogue.is_identity()) kernels.finish(rows, columns, sums, sums_row, epilogue);
}

// A panel of weights and the columns from j on.
void run_tile(const Microkernels& kernels, const Sweep& s, index_t panel, index_t j,
              index_t total) {
  alignas(64) float tile[Microkernels::most_rows * most_width + Microkernels::most_lanes];
  const index_t columns = smaller(kernels.columns(), total - j),
                vectors = ceil_div(columns, kernels.lanes), width = vectors * kernels.lanes;
  const index_t first = s.panels->first(panel), rows = s.panels->rows(panel);
  const float* weight = s.weight + first * s.depth;
  float* const result = s.result + first * s.result_channel;

  const index_t y = j / s.pitch, x = j % s.pitch;
  const bool in_one_row = s.result_column == 1 && x + width <= s.width;
  float* const sums = in_one_row ? result + y * s.result_row + x : tile;
  const index_t sums_row = in_one_row ? s.result_channel : width;
  for (index_t k = 0; k == 0 || k < s.depth; k += gemm_depth_block)
    kernels.tile[rows - 1][vectors - 1](smaller(gemm_depth_block, s.depth - k), weight + k * rows,
                                        s.base + j, s.offsets + k, sums, sums_row, k > 0);
  finish(kernels, s, first, rows, width, sums, sums_row);

  for (index_t i = 0; !in_one_row && i < columns;) {  // each stretch that lies in one row
    const index_t row = (j + i) / s.pitch, column = (j + i) % s.pitch;
    if (column < s.width)
      write_columns(kernels, s, rows, tile + i, width, smaller(columns - i, s.width - column),
                    result + row * s.result_row + column * s.result_column);
    i += s.pitch - column;
  }
}

// A panel of weights and neighbours in a row of the image, from (y, x) on. The sums of a place lie
// side by side, and are turned at the end.
void run_turned_tile(const Microkernels& kernels, const Sweep& s, index_t panel, index_t y,
                     index_t x, index_t count) {
  alignas(64) float tile[Microkernels::most_rows * most_width];
  const index_t first = s.panels->first(panel), rows = s.panels->rows(panel),
                width = s.panels->width(panel);
  const float* weight = s.weight + first * s.depth;
  for (index_t k = 0; k == 0 || k < s.depth; k += gemm_depth_block)
    kernels.turned_tile[count - 1][width / kernels.lanes - 1](
        smaller(gemm_depth_block, s.depth - k), s.base + y * s.pitch + x, s.offsets + k,
        weight + k * width, tile, width, k > 0);
  float* to = s.result + first * s.result_channel + y * s.result_row + x;
  kernels.pack(tile, width, 1, count, rows, to, s.result_channel);
  finish(kernels, s, first, rows, count, to, s.result_channel);
}

void run_turned(const Microkernels& kernels, const Sweep& s) {
  const index_t parts = ceil_div(s.width, kernels.rows);
  for (index_t panel = s.first_panel; panel < s.last_panel; ++panel)
    for (index_t i = 0; i < s.height * parts; ++i) {
      const index_t x = part_begin(s.width, parts, i % parts);
      run_turned_tile(kernels, s, panel, i / parts, x,
                      part_begin(s.width, parts, i % parts + 1) - x);
    }
}

// Runs over y and x as one row of (height - 1) * pitch + width elements; those between the image's
// rows are thrown away.
void run_tiles(const Microkernels& kernels, const Sweep& s) {
  const index_t total = (s.height - 1) * s.pitch + s.width, panels = s.last_panel - s.first_panel,
                tiles = ceil_div(total, kernels.columns());
  // What is larger is read once: the weights, or the planes.
  if (s.panels->channels * s.depth > s.planes)
    for (index_t i = 0; i < panels * tiles; ++i)
      run_tile(kernels, s, s.first_panel + i / tiles, i % tiles * kernels.columns(), total);
  else
    for (index_t i = 0; i < panels * tiles; ++i)
      run_tile(kernels, s, s.first_panel + i % panels, i / panels * kernels.columns(), total);
}

}  // namespace

void run_sweep(const Microkernels& kernels, const Sweep& s, Direction direction) {
  if (s.height <= 0 || s.width <= 0) return;
  if (s.panels->channels == 1 && s.depth <= gemm_depth_block && s.result_column == 1)
    run_channel(kernels, s, direction);
  else if (s.panels->turned())
    run_turned(kernels, s);
  else
    run_tiles(kernels, s);
}

}  // namespace taper::optimized::correlation
