// Winograd's F(2x2, 3x3): the 2 x 2 results of a 3 x 3 filter in 16 multiplications instead of 36,
// after A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016):
//
//   Y = Aᵀ [ sum over channels of (G g Gᵀ) * (Bᵀ d B) ] A,   * element by element
//
//        | 1    0    0  |        | 1  0 -1  0 |        | 1  1  1  0 |
//   G =  | 1/2  1/2 1/2 |   Bᵀ = | 0  1  1  0 |   Aᵀ = | 0  1 -1 -1 |
//        | 1/2 -1/2 1/2 |        | 0 -1  1  0 |
//        | 0    0    1  |        | 0  1  0 -1 |
//
// g: a filter; d: the 4 x 4 inputs below 2 x 2 results. `line_of_…` are the products with one
// column. Every level adds in their order.
#pragma once
#include "taper/kernels/kernel.h"

namespace taper::portable {

constexpr int winograd_places = 16;  ///< elements of G g Gᵀ, row-major

inline void line_of_filter(float a, float b, float c, float* to, int step) {
  const float outer = a + c;
  to[0] = a;
  to[step] = 0.5f * (outer + b);
  to[2 * step] = 0.5f * (outer - b);
  to[3 * step] = c;
}

/// G g Gᵀ of a 3 x 3 filter.
inline void transform_filter(const float* filter, float (&to)[winograd_places]) {
  float half[4][3];
  for (int x = 0; x < 3; ++x)
    line_of_filter(filter[x], filter[3 + x], filter[6 + x], &half[0][x], 3);
  for (int y = 0; y < 4; ++y) line_of_filter(half[y][0], half[y][1], half[y][2], &to[4 * y], 1);
}

inline void line_of_input(float a, float b, float c, float d, float* to, int step) {
  to[0] = a - c;
  to[step] = b + c;
  to[2 * step] = c - b;
  to[3 * step] = b - d;
}

/// The geometry of the tiles: 2 x 2 results each, of one image.
struct WinogradTiles {
  index_t rows, columns;
  index_t count() const { return rows * columns; }
};
inline WinogradTiles winograd_tiles(index_t height, index_t width) {
  return {(height + 1) / 2, (width + 1) / 2};
}

/// Where weights lie in Layout::winograd_panels: matrix `place` (channels, inputs) in panels.
struct WinogradPanels {
  const float* data;
  index_t channels, inputs;

  index_t panel_floats() const { return panel_width * inputs; }
  index_t matrix_floats() const {
    return (channels + panel_width - 1) / panel_width * panel_floats();
  }
  const float* at(int place, index_t channel, index_t input) const {
    return data + place * matrix_floats() + channel / panel_width * panel_floats() +
           input * panel_width + channel % panel_width;
  }
};

}  // namespace taper::portable
