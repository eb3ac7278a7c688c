// What fuse_quantized keeps in mind: each value is tried once for each way to quantize it.
// Internal.
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "taper/exporter/passes/function_tables.h"
#include "taper/exporter/passes/images.h"
#include "taper/exporter/passes/passes.h"
#include "taper/exporter/passes/quantized_values.h"

namespace taper::passes {

/// Finds integer operators from the quantized values upwards. A method gives the integers of
/// `value`, quantized with `to`, or nullptr.
class IntegerFuser {
 public:
  IntegerFuser(ir::Graph& graph, PassContext& context)
      : graph_(graph), context_(context), constants_(graph), images_(graph) {}
  int run();

 private:
  using Argument = ir::Argument;
  using Node = ir::Node;
  using Value = ir::Value;

  /// Makes integers of what `node` quantizes.
  bool fuse(Node& node);
  /// Every operator that computes in f32 although it reads a de-quantized value is named once.
  void note_if_float(const Node& node);
  Value* decline(const Node& node, std::string why);
  Value* did(const Node& node, Value* integers);
  Value* insert(const Node& like, const Operator& op, std::vector<Argument> arguments);
  template <class T>
  Value* constant(const std::string& path, const char* what, const std::vector<T>& elements,
                  std::vector<int64_t> sizes) {
    return graph_.add_constant(path.empty() ? path : path + what,
                               ir::Payload::from(elements, std::move(sizes)));
  }

  // ---- fuse_quantized.cpp: the recursion
  /// The integers of `value`, quantized with `to`; nullptr: they cannot be computed as such, and
  /// `why_` may say why.
  Value* quantized(Value* value, const Quantization& to);
  Value* computed(Value* value, const Quantization& to);
  bool reads_integers(const Node& node);
  /// A result that an operator in f32 reads, too, would be computed twice.
  bool is_only_here(const Value& value);
  bool is_only_quantized(const Value& value);
  /// Integers that stand for `value` itself: de-quantized ones, perhaps moved or without the
  /// negative ones.
  std::optional<Dequantized> operand(Value* value);
  std::optional<Quantization> quantization_below(const Value* value);

  // ---- fuse_quantized_moves.cpp: clamps become part of the range, and integers move
  Value* clamp(Value& value, const Quantization& to);
  /// A clamp behind the quantization of another operator's result, with the same scale: it becomes
  /// the range of that operator, if nothing else reads the result.
  Value* clamp_producer(Value& value, const Quantization& to);
  /// The same elements at other places: the integers move.
  Value* move(Value& value, const Quantization& to);

  // ---- fuse_quantized_products.cpp
  struct Weights {
    Value *panels, *scales, *offsets;
  };
  std::optional<QuantizedWeight> weight_of(const Node& node, const Value* weight, int axis);
  /// The bias, which is empty where there is none.
  std::optional<std::vector<float>> bias_of(const Node& node, const Value* bias, size_t channels);
  /// The constants of a product over i8. The weight is (channels, taps, inputs), and `parts` parts
  /// of the channels have panels of their own.
  std::optional<Weights> packed(const Node& node, const QuantizedWeight& w,
                                const std::vector<float>& bias, double input_scale, int64_t parts);
  Value* convolution(Value& value, const Quantization& to);
  Value* conv2d(const Node& node, Value* image, const Weights& w, std::vector<Dim> kernel,
                std::vector<Dim> stride, std::vector<Dim> padding, std::vector<Dim> dilation,
                int64_t groups, const Quantization& from, const Quantization& to);
  struct Transposed;
  /// Convolutions give the results of the phases as channels, which then become rows and columns.
  Value* transposed(Value& value, const Dequantized& x, const Quantization& to,
                    const Transposed& how, int64_t groups);
  Value* product(Value& value, const Quantization& to);

  // ---- fuse_quantized_elements.cpp
  Value* binary(Value& value, const Quantization& to);
  Value* average(Value& value, const Quantization& to);
  Value* bilinear(Value& value, const Quantization& to);
  Value* softmax(Value& value, const Quantization& to);
  Value* matrices(Value& value, const Quantization& to);

  ir::Graph& graph_;
  PassContext& context_;
  ConstantValues constants_;
  FunctionTable functions_{constants_};
  Images images_;
  Node* at_ = nullptr;  ///< new nodes stand before this one
  std::string why_;     ///< why the current value stays f32, and whose fault it is
  const Node* source_ = nullptr;
  std::unordered_set<const Node*> declined_;
  std::map<std::pair<Value*, Quantization>, Value*> known_;
};

/// Whether a list of sizes holds numbers only.
inline bool are_numbers(const std::vector<Dim>& list) {
  return std::ranges::all_of(list, [](const Dim& d) { return d.is_constant(); });
}
inline std::vector<Dim> range_of(const Quantization& q) { return {q.low, q.high}; }

}  // namespace taper::passes
