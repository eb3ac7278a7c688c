// What passes read of quantize and dequantize nodes, and the constants that integer operators take.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/passes/constant_values.h"

namespace taper::passes {

/// An i8 q stands for scale * (q - zero_point). A value is clamped to [low, high].
struct Quantization {
  double scale = 1;
  int64_t zero_point = 0, low = -128, high = 127;

  bool has_same_numbers(const Quantization& b) const {
    return scale == b.scale && zero_point == b.zero_point;
  }
  auto operator<=>(const Quantization&) const = default;
  /// The integer of a number, as quantize_per_tensor computes it.
  int64_t integer(double x) const;
};

/// The numbers of a node that quantizes f32 to i8, one scale for all; absent: the node is another
/// one.
std::optional<Quantization> quantization_of(const ir::Node& node, ConstantValues& constants);

/// A value that is an i8 tensor, de-quantized to f32 with one scale.
struct Dequantized {
  ir::Value* integers;
  Quantization numbers;  ///< [low, high] is what the integers may be
};
std::optional<Dequantized> dequantized(const ir::Value* value, ConstantValues& constants);

/// A constant weight: i8 integers with one scale for each output channel, and zero points 0.
struct QuantizedWeight {
  std::vector<int8_t> integers;  ///< row-major, mostly (channels, …)
  std::vector<int64_t> sizes;
  std::vector<float> scales;
  std::string path;  ///< of the constant; may be empty
};
/// `axis` is the dimension of the output channels. `why` says what is wrong with a value that is no
/// such weight.
std::optional<QuantizedWeight> quantized_weight(const ir::Graph& graph, const ir::Value* value,
                                                int axis, ConstantValues& constants,
                                                std::string& why);

/// Where the weight of a channel at place `k` of the depth lies in panels (kernels/operators.def).
/// Each group has `of_group` channels, and begins with a panel of its own.
size_t place_in_byte_panels(int64_t channel, int64_t k, int64_t of_group, int64_t depth);

/// The integers (channels, taps, inputs) as panels: the weights of taper::conv2d_q8 and
/// taper::linear_q8 (kernels/operators.def). `groups` parts of the channels have panels of their
/// own.
std::shared_ptr<const ir::Payload> byte_panels(const std::vector<int8_t>& integers,
                                               int64_t channels, int64_t depth, int64_t groups);

/// Their `offsets`: the rounded bias, and the sums of the channels' weights. Absent: a rounded bias
/// does not fit into 32 bits, or is NaN. `bias` may be empty.
std::optional<std::vector<int32_t>> byte_offsets(const QuantizedWeight& weight,
                                                 const std::vector<float>& bias,
                                                 double input_scale);

}  // namespace taper::passes
