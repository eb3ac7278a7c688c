// The loops of one query of attention: its scores of a block of keys become weights, and its sums
// follow when the peak rises.
#pragma once
#include "taper/kernels/optimized/attention.h"

namespace taper::optimized::attention {

/// One number of all lanes, in a fixed tree. Written out, because a loop over ever fewer lanes
/// would go through memory.
template <class Op>
inline float joined(const float (&x)[lanes], const Op& op) {
  static_assert(lanes == 16);
  float y[lanes / 2];
  TAPER_LANES
  for (index_t l = 0; l < lanes / 2; ++l) y[l] = op(x[l], x[l + lanes / 2]);
  return op(op(op(y[0], y[4]), op(y[2], y[6])), op(op(y[1], y[5]), op(y[3], y[7])));
}

/// scores -> exp(scores - peak), after `peak` has risen to the largest score. Returns their sum. A
/// peak of -inf (no key to attend to yet) counts as 0.
template <class M>
float exponentials(float* scores, index_t n, float* peak) {
  float most[lanes], sum[lanes] = {};
  for (index_t l = 0; l < lanes; ++l) most[l] = *peak;
  for (index_t i = 0; i < n; i += lanes) {
    const float* x = scores + i;
    TAPER_LANES
    for (index_t l = 0; l < lanes; ++l) most[l] = x[l] > most[l] ? x[l] : most[l];
  }
  *peak = joined(most, [](float a, float b) { return b > a ? b : a; });
  const float shift = *peak == -HUGE_VALF ? 0 : *peak;
  for (index_t i = 0; i < n; i += lanes) {
    float* x = scores + i;
    TAPER_LANES
    for (index_t l = 0; l < lanes; ++l) {
      const float e = portable::math::exp_of_negative<M>(x[l] - shift);
      x[l] = e, sum[l] += e;
    }
  }
  return joined(sum, [](float a, float b) { return a + b; });
}

inline void scale_and_add(float* y, index_t n, float scale, const float* x) {
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) y[i] = y[i] * scale + x[i];
}
inline void divide(float* y, index_t n, float by) {
  TAPER_INDEPENDENT_ITERATIONS
  for (index_t i = 0; i < n; ++i) y[i] /= by;
}

}  // namespace taper::optimized::attention
