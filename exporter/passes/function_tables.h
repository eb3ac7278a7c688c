// Functions of one i8 value, as tables.
#pragma once
#include <unordered_map>

#include "taper/exporter/passes/quantized_values.h"

namespace taper::passes {

/// Recognizes an expression of pointwise operators over one de-quantized value and numbers, such as
/// x * sigmoid(x), and computes it for all 256 integers with eager's kernels.
class FunctionTable {
 public:
  explicit FunctionTable(ConstantValues& constants) : constants_(constants) {}

  /// The value of which `value` is a function, element by element. Absent: it is none.
  std::optional<Dequantized> argument_of(const ir::Value* value);
  /// The table of taper::lookup_q8: entry i is the result for integer i - 128, quantized.
  std::vector<int8_t> table(const ir::Value* value, const Dequantized& argument,
                            const Quantization& result);

 private:
  bool is_number(const ir::Value* value);
  bool collect(const ir::Value* value, std::optional<Dequantized>& argument);
  eager::Tensor evaluate(const ir::Value* value, const Dequantized& argument);

  ConstantValues& constants_;
  std::unordered_map<const ir::Value*, bool> collected_;
  std::unordered_map<const ir::Value*, eager::Tensor> evaluated_;
};

}  // namespace taper::passes
