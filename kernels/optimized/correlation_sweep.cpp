#include "taper/kernels/optimized/correlation_sweep.h"

#include "taper/kernels/optimized/gemm.h"

namespace taper::optimized::correlation {

namespace {

// With rows of taps that go up, the image is seen upside down.
void run_channel(const ImageTiles& images, const Sweep& s, Direction direction) {
  Channel c{s.depth, s.tap_rows, s.tap_columns, s.row_step, s.weight,     s.offsets, s.base,
            s.pitch, s.height,   s.width,       s.result,   s.result_row, s.bias,    s.activation};
  if (direction == Direction::backward) {
    c.from += (c.height - 1) * c.pitch, c.pitch = -c.pitch;
    c.to += (c.height - 1) * c.to_row, c.to_row = -c.to_row;
  }
  images.channel(c);
}

// Copies `count` columns of a tile to a row of the result.
void write_columns(const Microkernels& kernels, const Sweep& s, index_t rows, const float* tile,
                   index_t width, index_t count, float* to) {
  if (s.result_column == 1)
    return kernels.narrow(rows, tile, width, count, to, s.result_channel, false);
  for (index_t r = 0; r < rows; ++r, tile += width, to += s.result_channel)
    for (index_t i = 0; i < count; ++i) to[i * s.result_column] = tile[i];
}

// The last steps of a panel's channels, from `first` on, which are the rows of `sums`, or its
// columns.
void finish(const Microkernels& kernels, const Sweep& s, index_t first, bool across, index_t rows,
            index_t columns, float* sums, index_t sums_row) {
  Epilogue epilogue;
  epilogue.activation = s.activation;
  if (s.bias != nullptr)
    epilogue.addend = s.bias + first, (across ? epilogue.addend_column : epilogue.addend_row) = 1;
  if (!epilogue.is_identity()) kernels.finish(rows, columns, sums, sums_row, epilogue);
}

// A panel of weights and `columns` columns from j on.
void run_tile(const Microkernels& kernels, const Sweep& s, index_t panel, index_t j,
              index_t columns) {
  alignas(64) float tile[Microkernels::most_rows * most_width + Microkernels::most_lanes];
  const index_t vectors = ceil_div(columns, kernels.lanes), width = vectors * kernels.lanes;
  const index_t first = s.panels->first(panel), rows = s.panels->rows(panel);
  const float* weight = s.weights_of(panel);
  float* const result = s.result + first * s.result_channel;

  const index_t y = j / s.pitch, x = j % s.pitch;
  const bool in_one_row = s.result_column == 1 && x + width <= s.width;
  float* const sums = in_one_row ? result + y * s.result_row + x : tile;
  const index_t sums_row = in_one_row ? s.result_channel : width;
  for (index_t k = 0; k == 0 || k < s.depth; k += gemm_depth_block)
    kernels.tile[rows - 1][vectors - 1](smaller(gemm_depth_block, s.depth - k), weight + k * rows,
                                        s.base + j, s.offsets + k, sums, sums_row, k > 0);
  finish(kernels, s, first, false, rows, width, sums, sums_row);

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
void run_turned_tile(const Microkernels& kernels, const ImageTiles& images, const Sweep& s,
                     index_t panel, index_t y, index_t x, index_t count) {
  alignas(64) float tile[Microkernels::most_rows * most_width];
  const index_t first = s.panels->first(panel), rows = s.panels->rows(panel),
                width = s.panels->width(panel);
  const float* weight = s.weights_of(panel);
  const bool packed = s.packed.data != nullptr, is_panel = kernels.lanes == panel_width;
  const index_t row = packed ? panel_width : width,
                vector = packed && is_panel ? s.packed.panel_floats() : kernels.lanes;
  for (index_t k = 0; k == 0 || k < s.depth; k += gemm_depth_block)
    images.turned_tile[count - 1][width / kernels.lanes - 1](
        smaller(gemm_depth_block, s.depth - k), s.base + y * s.pitch + x, s.offsets + k,
        weight + k * row, row, vector, tile, width, k > 0);
  finish(kernels, s, first, true, count, rows, tile, width);
  kernels.pack(tile, width, 1, count, rows,
               s.result + first * s.result_channel + y * s.result_row + x, s.result_channel);
}

void run_turned(const Microkernels& kernels, const ImageTiles& images, const Sweep& s) {
  const index_t parts = ceil_div(s.width, kernels.rows);
  for (index_t panel = s.first_panel; panel < s.last_panel; ++panel)
    for (index_t i = 0; i < s.height * parts; ++i) {
      const index_t x = part_begin(s.width, parts, i % parts);
      run_turned_tile(kernels, images, s, panel, i / parts, x,
                      part_begin(s.width, parts, i % parts + 1) - x);
    }
}

// How a panel's columns are cut into tiles: row by row of the image; or, where that would leave
// more of the vectors empty, as one row of (height - 1) * pitch + width columns, of which those
// between the image's rows are thrown away.
struct Cut {
  index_t rows, row, pitch, width, tiles_of_row;

  Cut(const Microkernels& kernels, const Sweep& s) : rows(s.height), row(s.width), pitch(s.pitch) {
    const index_t all = (s.height - 1) * s.pitch + s.width;
    if (s.height * round_up(s.width, kernels.lanes) > round_up(all, kernels.lanes))
      rows = 1, row = all;
    width = kernels.columns(), tiles_of_row = ceil_div(row, width);
  }
  index_t count() const { return rows * tiles_of_row; }
  index_t begin(index_t tile) const {
    return tile / tiles_of_row * pitch + tile % tiles_of_row * width;
  }
  index_t columns(index_t tile) const { return smaller(width, row - tile % tiles_of_row * width); }
};

void run_tiles(const Microkernels& kernels, const Sweep& s) {
  const Cut cut(kernels, s);
  const index_t panels = s.last_panel - s.first_panel, tiles = cut.count();
  // What is larger is read once: the weights, or the planes.
  const bool panel_by_panel = s.panels->channels * s.depth > s.planes;
  for (index_t i = 0; i < panels * tiles; ++i) {
    const index_t panel = panel_by_panel ? i / tiles : i % panels,
                  tile = panel_by_panel ? i % tiles : i / panels;
    run_tile(kernels, s, s.first_panel + panel, cut.begin(tile), cut.columns(tile));
  }
}

}  // namespace

void run_sweep(const Microkernels& kernels, const ImageTiles& images, const Sweep& s,
               Direction direction) {
  if (s.height <= 0 || s.width <= 0) return;
  if (s.panels->channels == 1 && s.depth <= gemm_depth_block && s.result_column == 1)
    run_channel(images, s, direction);
  else if (s.panels->turned())
    run_turned(kernels, images, s);
  else
    run_tiles(kernels, s);
}

}  // namespace taper::optimized::correlation
