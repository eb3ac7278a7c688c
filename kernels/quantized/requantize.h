// How static 8-bit operators round their results.
#pragma once
#include <cmath>
#include <cstdint>

#if defined(__GNUC__)
#define TAPER_INLINED inline __attribute__((always_inline))
#else
#define TAPER_INLINED inline
#endif

namespace taper::quantized {

/// y becomes clamp(round(y) + zero_point, low, high), halves to even. NaN becomes `low`.
struct Rounding {
  float low, high;  ///< minus the zero point
  int32_t zero_point;

  Rounding(int64_t zero, int64_t least, int64_t most)
      : low(static_cast<float>(least - zero)),
        high(static_cast<float>(most - zero)),
        zero_point(static_cast<int32_t>(zero)) {}
  TAPER_INLINED int8_t operator()(float y) const {
    const float rounded = std::nearbyint(y);
    const float raised = rounded > low ? rounded : low;
    const float clamped = raised < high ? raised : high;
    return static_cast<int8_t>(static_cast<int32_t>(clamped) + zero_point);
  }
};

/// What a sum of products is multiplied by: all factors and results are f32.
TAPER_INLINED float product_scale(double input_scale, float weight_scale, double output_scale) {
  return static_cast<float>(input_scale) * weight_scale / static_cast<float>(output_scale);
}

/// a + b c modulo 2^32: sums that do not fit into 32 bits are the same everywhere.
TAPER_INLINED int32_t add_product(int32_t a, int32_t b, int32_t c) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) +
                              static_cast<uint32_t>(b) * static_cast<uint32_t>(c));
}

}  // namespace taper::quantized
