// Half-quadratic quantization: offsets that make large errors rare, without calibration data.
// H. Badri and A. Shaji, "Half-Quadratic Quantization of Large Machine Learning Models", 2023.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace taper::quantize {

struct Hqq {
  std::vector<float> scale, zero;  ///< of each group: w is about (q - zero) * scale
};

/// Groups of `group` neighbours in `w`, with integers in [0, highest]. The scales follow from the
/// range of each group. The zeros minimise the sum of |error|^0.7 over the matrix: at most 20
/// steps, and no more when the mean error of the whole matrix stops falling.
Hqq half_quadratic(std::span<const float> w, int group, int highest);

}  // namespace taper::quantize
