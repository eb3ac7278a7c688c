// One weight: from f32 to blocks.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/gptq.h"
#include "taper/exporter/quantize/recipe.h"

namespace taper::quantize {

/// (rows, depth), row-major.
struct Matrix {
  int64_t rows = 0, depth = 0;
  std::vector<float> elements;
  int64_t padding = 0;  ///< zeros at the end of each row that are no elements

  std::span<const float> row(int64_t r) const {
    return std::span(elements).subspan(static_cast<size_t>(r * depth), static_cast<size_t>(depth));
  }
};

/// How far a weight in blocks is from the weight before.
struct Measure {
  double signal = 0;   ///< the sum of squares of the weight
  double noise = 0;    ///< of the differences
  double product = 0;  ///< the sum of products of both
  double decoded = 0;  ///< the sum of squares of the weight in blocks
  float most = 0;      ///< the largest difference
  int64_t zeros = 0;   ///< elements of the weight that are zero, without padding
  int64_t lost = 0;    ///< of these: those that are not zero in blocks
  /// The same of the layer's results, if there is calibration data.
  double output_signal = 0, output_noise = 0;
  /// Counts of differences, from -`most` to `most`.
  static constexpr int bins = 41;
  std::array<int64_t, bins> histogram{};

  double sqnr_db() const;
  double output_sqnr_db() const;
  bool has_output() const { return output_signal > 0; }
  /// Of the results if they are known, else of the weight.
  double harm_db() const { return has_output() ? output_sqnr_db() : sqnr_db(); }
  double cosine() const;
};

/// `values` are those that stand for the elements of `w`. `hessian` may be nullptr.
Measure measure(const Matrix& w, const std::vector<float>& values, const Hessian* hessian);

struct Quantized {
  std::shared_ptr<const ir::Payload> payload;  ///< f32 in blocks
  Measure measure;
  Method method = Method::best;  ///< the one that was taken for `best`
  int64_t zero_rows = 0;         ///< rows without anything but zeros
  int64_t unreached = 0;         ///< matrices of a stack that no calibration data reach
};

/// `w.depth` must be a multiple of the block's elements. `hessian` may be nullptr; `gptq` needs
/// one.
Quantized quantize_matrix(const Matrix& w, Layout layout, Method method, const Hessian* hessian);

/// The same of matrices (rows / matrices, depth) below each other. There is a Hessian for each of
/// them, nullptr if no data reach it: `mse` takes the place of `gptq` there. Or there are none.
Quantized quantize_stack(const Matrix& w, int64_t matrices, Layout layout, Method method,
                         std::span<const std::shared_ptr<const Hessian>> hessians);

/// Whether a method learns from calibration data.
bool learns(Method method);
/// "gptq"
std::string name_of(Method method);

}  // namespace taper::quantize
