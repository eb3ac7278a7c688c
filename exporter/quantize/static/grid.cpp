#include "taper/exporter/quantize/static/grid.h"

#include <algorithm>
#include <cmath>

namespace taper::quantize {

Grid affine_grid(float low, float high) {
  low = std::min(low, 0.0f);
  high = std::max(high, 0.0f);
  Grid grid;
  // Each end is divided first if the difference of both overflows.
  const float difference = high - low;
  const float steps = static_cast<float>(grid.highest - grid.lowest);
  const float scale = std::isfinite(difference) ? difference / steps : high / steps - low / steps;
  grid.scale = std::max(scale, least_scale);
  const auto zero =
      grid.lowest - static_cast<int64_t>(std::nearbyint(low / static_cast<float>(grid.scale)));
  grid.zero_point = std::clamp(zero, grid.lowest, grid.highest);
  return grid;
}

Grid symmetric_grid(float most, float least, int highest) {
  return {.scale = std::max(most / static_cast<float>(highest), least),
          .zero_point = 0,
          .lowest = -highest,
          .highest = highest};
}

}  // namespace taper::quantize
