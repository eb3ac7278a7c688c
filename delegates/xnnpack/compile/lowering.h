// Writes a blob: the values of a graph's body become values of a part, plain or with channels last.
#pragma once
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "taper/delegates/xnnpack/compile/scales.h"
#include "taper/delegates/xnnpack/runtime/blob_generated.h"
#include "taper/exporter/partition/delegate.h"
#include "taper/exporter/passes/constant_values.h"

namespace taper::delegates::xnnpack {

/// How a value lies in a part. An image (batch, channels, height, width) may have its channels
/// last, and so may a volume (batch, channels, depth, height, width). So may a line (batch,
/// channels, length), which then is an image of one row: (batch, 1, length, channels). Other values
/// are always plain.
enum class Order : uint8_t { plain, channels_last };

/// The place of a plain dimension of a line, an image or a volume with channels last.
inline int64_t place_with_channels_last(int64_t dimension, int rank) {
  constexpr int64_t of_line[] = {0, 3, 2};
  if (rank == 3) return of_line[dimension];
  if (dimension == 1) return rank - 1;
  return dimension == 0 ? 0 : dimension - 1;
}

/// A value of the part. The final numbers are known when all constants are.
struct Ref {
  enum class Kind : uint8_t { none, operand, constant, node } kind = Kind::none;
  uint32_t index = 0;

  auto operator<=>(const Ref&) const = default;
};

class Lowering {
 public:
  explicit Lowering(const ir::Graph& body);

  /// The value in this order. Adds a transpose if the part has it in the other one only.
  Ref ref(const ir::Value* value, Order order = Order::plain);
  /// A constant with its dimensions in another order, or of other sizes. -1 in an order is a
  /// dimension of one element more.
  Ref permuted(const ir::Value* constant, const std::vector<int64_t>& order);
  Ref reshaped(const ir::Value* constant, const std::vector<int64_t>& sizes);
  /// The same of elements that were made of a constant.
  Ref permuted(const ir::Value* constant, const eager::Tensor& elements,
               const std::vector<int64_t>& order);
  Ref reshaped(const ir::Value* constant, const eager::Tensor& elements,
               const std::vector<int64_t>& sizes);
  /// A constant that is made here.
  template <class T>
  Ref constant(const std::vector<T>& elements, std::vector<int64_t> sizes) {
    return constant("", ir::Payload::from(elements, std::move(sizes)));
  }
  /// What a constant of the body holds.
  const eager::Tensor& elements(const ir::Value* constant);
  /// A number, for binary operators.
  Ref number(double value);
  /// Whether the part gives the value to others. Then it is the result of a node of its own.
  bool is_output(const ir::Value* value) const { return body_.is_returned(value); }
  /// The order in which a pointwise operator reads the value without a transpose.
  Order natural_order(const ir::Value* value) const;

  /// What nodes that are added from now on say of themselves in a profile.
  void set_source(std::string source) { source_ = std::move(source); }
  /// Adds a node.
  Ref add(blob::Kind kind, blob::Function function, std::vector<Ref> inputs,
          std::vector<int64_t> numbers = {}, std::vector<float> parameters = {});
  /// Values of f32 one behind the other, as many as there are.
  Ref joined(std::vector<Ref> values, int64_t axis);
  /// Says that a constant has integers of so many bits, and `scales` along the dimension `channel`,
  /// or, in bf16, for each `block` elements of a row.
  void give_scales(Ref constant, uint8_t bits, Ref scales, uint8_t channel, uint32_t block = 0);
  /// The value with its rows rounded to 8 bits while the part runs. Products read it.
  Ref rounded(Ref value);
  /// Says that a value of the body lies there.
  void define(const ir::Value* value, Ref ref, Order order = Order::plain);

  partition::Compiled finish();

 private:
  struct Node {
    blob::Kind kind;
    blob::Function function;
    std::vector<Ref> inputs;
    std::vector<int64_t> numbers;
    std::vector<float> parameters;
    std::string source;
  };
  /// What stands beside a value of integers.
  struct Integers {
    Ref value;
    uint8_t bits;
    Scale scale;
    Ref scales;
    uint8_t channel;
    uint32_t block = 0;
    bool is_rounded = false;
  };
  Ref constant(const ir::Value* source, const eager::Tensor& elements);
  Ref constant(std::string path, std::shared_ptr<const ir::Payload> payload);
  void note_scale(const ir::Value* value, Ref ref);
  std::vector<flatbuffers::Offset<blob::Quantized>> integers(
      flatbuffers::FlatBufferBuilder& b) const;
  Ref turned(const ir::Value* value, Ref ref, Order to);
  uint32_t position(Ref ref) const;

  const ir::Graph& body_;
  passes::ConstantValues values_;
  std::map<std::pair<const ir::Value*, Order>, Ref> refs_;
  std::map<std::pair<const ir::Value*, std::vector<int64_t>>, Ref> arranged_;
  std::map<Ref, Ref> rounded_;
  std::vector<Node> nodes_;
  std::string source_;
  std::vector<Integers> integers_;
  bool is_finishing_ = false;
  partition::Compiled compiled_;
};

}  // namespace taper::delegates::xnnpack
