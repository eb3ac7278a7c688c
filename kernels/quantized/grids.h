// The grids of ggml's IQ formats. A cell holds the numbers of its levels, the first one in the
// lowest bits: eight of 2 bits, or four of 3 bits.
#pragma once
#include <cstdint>

namespace taper::quantized::internal {

extern const uint16_t iq2_xxs_grid[256], iq2_xs_grid[512], iq2_s_grid[1024], iq1_grid[2048];
extern const uint16_t iq3_xxs_grid[256], iq3_s_grid[512];

}  // namespace taper::quantized::internal
