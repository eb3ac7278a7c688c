// Batch norms that went into the weights of the convolutions before them.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/passes/passes.h"

namespace taper::passes {

/// What a batch norm and its convolution were made of, and where they are now.
struct FoldedNorm {
  /// A constant that the graph had; its payload is nullptr if there was none.
  struct Part {
    std::string path;
    std::shared_ptr<const ir::Payload> payload;
  };
  std::string weight_path, bias_path;  ///< of the convolution's constants from now on
  Part weight, bias;                   ///< that the convolution had before
  Part gamma, beta, mean, variance;    ///< of the norm
  double eps = 0, momentum = 0;
};

/// The weight and the bias that do what the convolution and the norm did: for channel c,
/// weight * s and (bias - mean) * s + beta, with s = gamma / sqrt(variance + eps).
struct FoldedProduct {
  std::vector<float> weight, bias;
};
FoldedProduct folded(const FoldedNorm& norm);

/// The pass `fold_batch_norm`, which says what it did.
std::vector<FoldedNorm> fold_batch_norms(ir::Graph& graph, PassContext& context);

}  // namespace taper::passes
