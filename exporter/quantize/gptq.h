// GPTQ: rounds a row element by element. Elements that come later make up for the errors of those
// before them, as far as the inputs of the layer are correlated.
// E. Frantar and others, "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained
// Transformers", arXiv:2210.17323.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace taper::quantize {

/// The sum of x xᵀ over the inputs x of a layer: (depth, depth), row-major.
struct Hessian {
  int64_t depth = 0;
  int64_t inputs = 0;  ///< the number of x
  std::vector<float> sum;

  explicit Hessian(int64_t depth)
      : depth(depth), sum(static_cast<size_t>(depth) * static_cast<size_t>(depth)) {}
  /// Adds the sum of x xᵀ over `count` inputs.
  void add(std::span<const float> products, int64_t count);
  /// How much an error of each element counts: the diagonal.
  std::vector<float> diagonal() const;
};

struct GptqOptions {
  double damping = 0.01;   ///< times the mean of the diagonal
  bool act_order = false;  ///< elements with large inputs first; scales are chosen before that
};

/// The factor that spreads errors: the upper triangle U with (sum + damping)⁻¹ = Uᵀ U, in the order
/// of `order`. Elements whose input is always zero spread nothing.
std::vector<float> error_factor(const Hessian& hessian, std::span<const int> order, double damping);

/// The order in which elements are rounded.
std::vector<int> rounding_order(const Hessian& hessian, bool act_order);

/// What GPTQ asks of a format. Both look at one row.
struct Rounding {
  int block;  ///< elements of a block
  /// Chooses the scales of a block for its present elements.
  std::function<void(int64_t row, int64_t first, std::span<const float> w)> fit;
  /// Rounds element `column`, and returns the value that it gets.
  std::function<float(int64_t row, int64_t column, float w)> round;
};

/// Rounds the matrix `w` (rows, depth). `w` gets the values that the elements stand for.
void gptq(std::span<float> w, int64_t rows, const Hessian& hessian, const GptqOptions& options,
          const Rounding& rounding);

}  // namespace taper::quantize
