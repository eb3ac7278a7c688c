// Moves scales from the inputs of products into their weights. Internal.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::quantize {

/// Products with constant weights that read one value.
struct SharedInput {
  ir::Value* input;
  std::vector<ir::Node*> products;  ///< linear, mm, addmm
  int64_t channels;                 ///< the size of its last dimension
};

/// All inputs of products whose weights nobody else reads, in the order of the graph.
std::vector<SharedInput> find_shared_inputs(ir::Graph& graph);

/// The constant that is the weight of a product.
ir::Constant& weight_of(ir::Graph& graph, const ir::Node& product);
/// Calls `visit(element, channel)` for the elements of a weight, as they are stored.
void for_each_channel(const ir::Node& product, std::span<float> weight,
                      const std::function<void(float& element, size_t channel)>& visit);

/// Multiplies the weights of products by a factor for each channel, and divides their input by it.
/// The model computes the same function, up to rounding. The division goes into constants: those of
/// a norm, of a product, or a vector that is multiplied. Graphs that share constants share the new
/// ones, too.
class InputScaling {
 public:
  /// The factors are positive and finite. Where no constant can take the division, a node does, or
  /// nothing changes and the result is false.
  bool scale(ir::Graph& graph, const SharedInput& shared, std::span<const float> factors,
             bool may_add_node);

 private:
  using Payload = std::shared_ptr<const ir::Payload>;
  using Change = std::function<void(std::vector<float>& elements)>;

  bool divide(ir::Graph& graph, ir::Value* value, std::span<const float> factors);
  bool divide_argument(ir::Graph& graph, ir::Node* node, ir::Value* vector,
                       std::span<const float> factors);
  bool divide_product(ir::Graph& graph, ir::Node* product, std::span<const float> factors);
  void divide_by_node(ir::Graph& graph, const SharedInput& shared,
                      std::span<const float> factors) const;
  void change(ir::Graph& graph, ir::Node* reader, ir::Value* constant, const Change& change);

  std::map<const ir::Payload*, Payload> made_;  ///< by the payload before
  std::vector<Payload> kept_;                   ///< so that no address is used again
};

}  // namespace taper::quantize
