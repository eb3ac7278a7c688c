// Sums along a row, for loops that are also compiled for wide vectors: sixteen interleaved partial
// sums, joined by a fixed tree. As in lanes.h, the order depends only on the count.
#pragma once
#include "taper/kernels/portable/lanes.h"

namespace taper::portable {

inline constexpr int row_lanes = 16;

/// The sum of term(0) … term(n - 1). Term i goes to lane i % 16.
template <class T, class Term>
T row_sum(index_t n, const Term& term) {
  T lane[row_lanes] = {};
  index_t i = 0;
  for (; i + row_lanes <= n; i += row_lanes) {
    TAPER_LANES
    for (int l = 0; l < row_lanes; ++l) lane[l] += term(i + l);
  }
  if (const int rest = static_cast<int>(n - i); rest > 0) {
    TAPER_LANES
    for (int l = 0; l < row_lanes; ++l) lane[l] += l < rest ? term(i + l) : T(0);
  }
  return join_lanes(lane);
}

/// The sums of two terms over the same elements.
template <class T, class First, class Second>
void row_sums(index_t n, T& first, T& second, const First& a, const Second& b) {
  T lane_a[row_lanes] = {}, lane_b[row_lanes] = {};
  index_t i = 0;
  for (; i + row_lanes <= n; i += row_lanes) {
    TAPER_LANES
    for (int l = 0; l < row_lanes; ++l) lane_a[l] += a(i + l), lane_b[l] += b(i + l);
  }
  if (const int rest = static_cast<int>(n - i); rest > 0) {
    TAPER_LANES
    for (int l = 0; l < row_lanes; ++l) {
      lane_a[l] += l < rest ? a(i + l) : T(0);
      lane_b[l] += l < rest ? b(i + l) : T(0);
    }
  }
  first = join_lanes(lane_a), second = join_lanes(lane_b);
}

}  // namespace taper::portable
