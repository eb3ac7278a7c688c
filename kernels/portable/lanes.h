// Sums in a fixed order that vectorises: eight interleaved partial sums, joined by a fixed tree.
// The order depends only on the count, so results do not depend on threads, alignment or strides.
// Eight chains also round less than one.
#pragma once
#include "taper/kernels/portable/elements.h"
#include "taper/runtime/core/span.h"

namespace taper::portable {

inline constexpr int lane_count = 8;

template <class T, int lanes>
T join_lanes(const T (&lane)[lanes]) {
  if constexpr (lanes > lane_count) {
    T half[lanes / 2];
    for (int l = 0; l < lanes / 2; ++l) half[l] = lane[l] + lane[l + lanes / 2];
    return join_lanes(half);
  } else {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) +
           ((lane[1] + lane[5]) + (lane[3] + lane[7]));
  }
}

/// Calls body(0) … body(n - 1), which must be independent. The loop takes sixteen at a time,
/// because compilers vectorise a loop whose count is a constant.
template <class Body>
inline void for_each_element(index_t n, const Body& body) {
  constexpr int chunk = 16, rest = 4;
  index_t i = 0;
  for (; i + chunk <= n; i += chunk) {
    TAPER_INDEPENDENT_ITERATIONS
    for (int l = 0; l < chunk; ++l) body(i + l);
  }
  for (; i + rest <= n; i += rest) {
    TAPER_INDEPENDENT_ITERATIONS
    for (int l = 0; l < rest; ++l) body(i + l);
  }
  for (; i < n; ++i) body(i);
}

/// The sum of term(0) … term(n - 1). Term i goes to lane i % lanes.
template <class T, int lanes = lane_count, class Term>
T sum_of(index_t n, const Term& term) {
  T lane[lanes] = {};
  index_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int l = 0; l < lanes; ++l) lane[l] += term(i + l);
  for (int l = 0; i < n; ++i, ++l) lane[l] += term(i);
  return join_lanes(lane);
}

/// Two sums over the same elements. `add(i, first, second)` adds element i's part to each.
template <class T, class Add>
void two_sums_of(index_t n, T& first, T& second, const Add& add) {
  T a[lane_count] = {}, b[lane_count] = {};
  index_t i = 0;
  for (; i + lane_count <= n; i += lane_count)
    for (int l = 0; l < lane_count; ++l) add(i + l, a[l], b[l]);
  for (int l = 0; i < n; ++i, ++l) add(i, a[l], b[l]);
  first = join_lanes(a), second = join_lanes(b);
}

/// How many pieces of at most `piece` elements cover n.
constexpr index_t pieces(index_t n, index_t piece) { return (n + piece - 1) / piece; }

}  // namespace taper::portable
