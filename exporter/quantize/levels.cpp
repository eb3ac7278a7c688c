#include "taper/exporter/quantize/levels.h"

#include <algorithm>

#include "taper/kernels/quantized/float_levels.h"

namespace taper::quantize {
namespace {

int nearest_nf4(float x) {
  const float* levels = quantized::nf4_levels;
  int code = 0;
  for (int i = 0; i < 15; ++i) code += x > (levels[i] + levels[i + 1]) / 2;
  return code;
}
float level_of_nf4(int code) { return quantized::nf4_levels[code & 15]; }

// Floats of a few bits, times 1 / parts: the largest one is `largest` parts.
template <class Float, int largest, int parts = 1>
struct Floats {
  static constexpr float most = static_cast<float>(largest) / parts;
  static int nearest(float x) {
    return Float(std::clamp(x, -most, most)).bits;  // f8_e5m2 has infinities
  }
  static float level(int code) {
    Float x;
    x.bits = static_cast<uint8_t>(code);
    return x;
  }
  static constexpr FloatLevels levels = {most, nearest, level};
};

using E2M1 = Floats<quantized::Float4E2M1, 6>;
int nearest_doubled(float x) { return E2M1::nearest(x / 2); }
float doubled_level(int code) { return 2 * E2M1::level(code); }

}  // namespace

const FloatLevels nf4_levels = {1, nearest_nf4, level_of_nf4};
const FloatLevels doubled_e2m1_levels = {2 * E2M1::most, nearest_doubled, doubled_level};
const FloatLevels e2m3_levels = Floats<quantized::Float6E2M3, 15, 2>::levels;
const FloatLevels e3m2_levels = Floats<quantized::Float6E3M2, 28>::levels;
const FloatLevels e4m3_levels = Floats<Float8E4M3, 448>::levels;
const FloatLevels e5m2_levels = Floats<Float8E5M2, 57344>::levels;

}  // namespace taper::quantize
