// Sets weights of a trained model to zero, in a pattern that may be called N:M: of every M
// neighbours along the inputs of a layer, N stay.
//
//   prune({graph.get()}, {.method = Pruning::Method::wanda}, examples);
//
// Fine-tuning keeps the zeros (`ZeroMask`):
//
//   ZeroMask zeros(model.parameters());
//   for (…) { loss.backward(); optimizer.step(); zeros.apply(); }
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/nn/module.h"
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

struct Pruning {
  enum class Method : uint8_t {
    magnitude,  ///< the largest weights stay
    /// The largest products of a weight and the size of its input stay. M. Sun and others, "A
    /// Simple and Effective Pruning Approach for Large Language Models", arXiv:2306.11695.
    wanda,
    /// As GPTQ: weights that stay make up for those that go. E. Frantar and D. Alistarh,
    /// "SparseGPT", arXiv:2301.00774.
    sparsegpt,
  };
  Method method = Method::magnitude;
  int keep = 2, of = 4;
  double damping = 0.01;  ///< of SparseGPT, times the mean of the Hessian's diagonal
  /// Layers that stay as they are: patterns for the path of the weight, the module or the operator.
  std::vector<std::string> exclude;
};

struct PrunedWeight {
  std::string path;
  int64_t elements = 0, zeros = 0;
};

/// Prunes the constant weights of linear layers, products with a constant, and convolutions of the
/// first graph. Other graphs that share a weight get the same. A
/// convolution's inputs are (channel, kernel row, kernel column). A row that is no multiple of `of`
/// ends with a shorter group, of which as large a part stays, rounded up. `wanda` and `sparsegpt`
/// learn from the examples. Throws ExportError without them, if the pattern is impossible, or if no
/// weight is pruned.
std::vector<PrunedWeight> prune(const std::vector<ir::Graph*>& graphs, const Pruning& how,
                                const Examples& samples = {});

/// Remembers where parameters are zero, and sets these elements to zero again after each step.
class ZeroMask {
 public:
  explicit ZeroMask(const std::vector<eager::Tensor>& parameters);
  void apply();

 private:
  std::vector<std::pair<eager::Tensor, eager::Tensor>> masked_;  ///< parameter, and where it is 0
};

}  // namespace taper::quantize
