// The layers that pruning knows: linear layers, products with a constant, convolutions, and
// products with stacks of matrices. Internal.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/gptq.h"
#include "taper/exporter/quantize/readers.h"

namespace taper::quantize {

/// A weight that is pruned.
struct PrunedLayer {
  /// A node that multiplies with it.
  struct Use {
    const ir::Node* node;
    const ir::Value* input;
  };
  const ir::Constant* weight;
  std::vector<Use> uses;
  bool is_transposed;    ///< stored as (in, out)
  int64_t matrices = 0;  ///< of a stack, such as that of experts; 0: it is no stack
  // what is learned of the groups of a convolution, of the matrices of a stack, or of a product
  std::vector<Hessian> hessians;            ///< for SparseGPT
  std::vector<std::vector<float>> squares;  ///< for Wanda: the sums over each input

  bool is_convolution() const;
  int64_t groups() const;  ///< of a convolution; 1 elsewhere
  int64_t depth() const;   ///< of a stack: the inputs of each matrix
};

/// The convolutions that read a weight, if nothing else does. A weight in f16 is widened before.
std::vector<PrunedLayer::Use> convolutions_of(const ir::Value* weight);

/// Without uses if the weight cannot be pruned.
PrunedLayer layer_of(const Weight& weight);

/// Of a product of rows with a stack of matrices: where the rows of each matrix end. nullptr: each
/// matrix has rows of its own.
const ir::Value* ends_of_rows(const ir::Node& product);

/// Why a weight is of no layer that can be pruned.
std::string reason_to_leave(const Weight& weight);

/// The inputs of each result of a convolution of a line, a picture or a volume, as rows
/// (results, depth of all groups).
eager::Tensor patches_of(const ir::Node& convolution, const std::vector<int64_t>& weight_sizes,
                         eager::Tensor x);

}  // namespace taper::quantize
