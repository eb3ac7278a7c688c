// The weights of a graph, and who reads them.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::quantize {

/// A place where a node multiplies with a weight, or looks up its rows.
struct Reader {
  ir::Node* node;
  bool is_look_up;

  /// What is multiplied with the weight. For products.
  ir::Value* input() const;
};

/// A constant matrix, or a stack of matrices, and the nodes that read it. A weight of a convolution
/// is a matrix with a row for each number along its first dimension.
struct Weight {
  ir::Graph* graph;
  ir::Constant* constant;
  std::vector<Reader> readers;
  bool is_transposed = false;              ///< stored as (in, out); all readers agree
  int64_t matrices = 0;                    ///< of a stack, as that of experts; 0: it is no stack
  bool is_first = false, is_last = false;  ///< its product comes first or last in the graph
  std::string obstacle;                    ///< why it cannot be in blocks; "": nothing hinders
  /// No kernel reads its blocks, so that programs make f32 of them in each call (choose.h).
  bool is_widened = false;

  bool is_looked_up() const;
  int64_t rows() const;  ///< of all matrices
  int64_t depth() const;
};

/// Whether a view exchanges the two dimensions of a matrix, or of all matrices of a stack.
bool transposes(const ir::Node& view);

/// The small matrices of a LoRA adapter. They were trained beside the weights as those are, and
/// they are few bytes.
bool is_of_adapter(const ir::Constant& constant);

/// All constants that products, look-ups or convolutions read, in the order of the graph.
std::vector<Weight> find_weights(ir::Graph& graph);

}  // namespace taper::quantize
