// A verified blob, and the sizes of its values.
#pragma once
#include "taper/delegates/xnnpack/runtime/blob_generated.h"
#include "taper/runtime/core/span.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::delegates::xnnpack {

inline constexpr uint32_t no_value = 0xffffffffu;
inline constexpr int most_dimensions = 6;  ///< of a tensor in XNNPACK
inline constexpr index_t most_inputs = 5;
inline constexpr int64_t most_step = 1 << 15;  ///< of strides, paddings, windows and dilations
inline constexpr int64_t most_elements = int64_t{1} << 34;  ///< of a tensor
inline constexpr uint32_t most_nodes = 1u << 13;            ///< of a part
inline constexpr index_t most_groups = 1 << 12;             ///< of a grouped product

/// The vectors of a node as spans.
struct NodeView {
  explicit NodeView(const blob::Node& node);

  blob::Kind kind;
  blob::Function function;
  Span<const uint32_t> inputs;
  Span<const int64_t> numbers;
  Span<const float> parameters;
  const char* source;  ///< "" if the blob does not say it
};

/// A blob whose structure, kinds and indices are right.
class Part {
 public:
  /// False: the blob is damaged.
  static bool is_valid(Span<const std::byte> blob);
  explicit Part(Span<const std::byte> blob) : table_(blob::GetPart(blob.data())) {}

  index_t operands() const { return static_cast<index_t>(table_->operands()); }
  index_t constants() const { return static_cast<index_t>(table_->constants()); }
  index_t inputs() const { return operands() + constants(); }
  index_t results() const { return static_cast<index_t>(table_->results()->size()); }
  index_t nodes() const { return static_cast<index_t>(table_->nodes()->size()); }
  index_t values() const { return inputs() + nodes(); }

  NodeView node(index_t i) const {
    return NodeView(*table_->nodes()->Get(static_cast<uint32_t>(i)));
  }
  index_t result(index_t i) const {
    return static_cast<index_t>(table_->results()->Get(static_cast<uint32_t>(i)));
  }
  /// nullptr: the value is f32.
  const blob::Quantized* quantized(index_t value) const;
  DType dtype(index_t value) const;
  /// Whether the part is one grouped product: x, ends, filters.
  bool is_grouped_product() const { return node(0).kind == blob::Kind::grouped_product; }
  bool is_constant(uint32_t value) const {
    const index_t i = static_cast<index_t>(value);
    return i >= operands() && i < inputs();
  }

  /// Computes the sizes of all results of nodes. `shapes` has one for each value, and those of the
  /// inputs are those of the tensors. Returns the node that cannot have these sizes or parameters;
  /// -1: all can. Afterwards the library cannot meet a size or a parameter that it does not expect.
  index_t infer(Shape* shapes) const;

 private:
  // Constants in 4 bits have half as many bytes as elements: their sizes become those of elements.
  bool widen_halves(Shape* shapes) const;
  bool has_scales_for_channels(const Shape* shapes) const;

  const blob::Part* table_;
};

/// Whether the library can count these sizes. It knows no tensor without elements.
bool is_countable(const Shape& shape);

/// The sizes of a node's result. False: the node cannot have inputs of these sizes. `inputs` are
/// those of the node; nullptr: no bias.
bool infer_node(const NodeView& node, const Shape* const* inputs, Shape& result);

}  // namespace taper::delegates::xnnpack
