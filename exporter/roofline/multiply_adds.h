// How much a call of an operator multiplies.
#pragma once
#include <string_view>
#include <vector>

namespace taper::roofline {

using Sizes = std::vector<double>;

/// An operator, and the sizes of its tensors in their order. Absent tensors are left out.
struct Call {
  std::string_view op;  ///< "addmm"
  std::vector<Sizes> arguments, results;
  bool transposed = false;  ///< of a convolution
};

/// The multiplications, each with an addition, of a matrix product, a convolution or attention; 0
/// for other operators. Attention counts hidden keys, too. Winograd's algorithm counts as the
/// convolution that it computes.
double multiply_adds(const Call& call);

/// Whether an operator reads a few rows of its first argument.
bool looks_up(std::string_view op);

}  // namespace taper::roofline
