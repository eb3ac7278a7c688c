// Products whose input is rounded to 8 bits, row by row, while the program runs. Internal to
// compile.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "taper/delegates/xnnpack/compile/lowering.h"

namespace taper::delegates::xnnpack {

/// A weight (outputs, inputs) of integers: w = scale * q.
struct IntegerWeight {
  std::vector<int8_t> integers;
  std::vector<float> scales;  ///< (outputs, inputs / block)
  int64_t outputs = 0, inputs = 0;
  int64_t block = 0;  ///< elements of a row that share a scale

  bool has_one_scale_a_row() const { return block == inputs; }
  /// Whether all integers lie in [-8, 7], and a row fills whole bytes.
  bool fits_half_bytes() const;
};

/// A group of nodes that is such a product.
struct RoundedProduct {
  partition::Group nodes;
  const ir::Value *input, *bias;  ///< no bias: nullptr
  IntegerWeight weight;
};
/// A `linear` over rounded values, or scaled_product. Absent: the node ends no such group, or the
/// library cannot run it. `constants` are those of the node's graph.
std::optional<RoundedProduct> rounded_product(ir::Node& node, passes::ConstantValues& constants);

/// A product of integers that is scaled afterwards, as torchao writes it. So `node` is a
/// `mul.Tensor`, or an `add.Tensor` with a bias.
std::optional<RoundedProduct> scaled_product(ir::Node& node, passes::ConstantValues& constants);
/// Whether the library takes the weight.
bool is_taken(const IntegerWeight& weight);

/// Adds a product with `x`, which is f32. `bias` may be none.
Ref add_rounded_product(Lowering& out, Ref x, const IntegerWeight& weight, Ref bias);

/// The nearest weight of 8 bits with one scale for each row. `elements` are (outputs, inputs), and
/// finite.
IntegerWeight with_a_scale_a_row(const std::vector<float>& elements, int64_t outputs,
                                 int64_t inputs);

}  // namespace taper::delegates::xnnpack
