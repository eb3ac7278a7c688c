// Sets weights of a trained model to zero, in a pattern: half of all, two of four neighbours, or
// half of the blocks of 4 rows and 8 columns (sparsity.h).
//
//   prune({graph.get()}, {.method = Pruning::Method::wanda}, examples);
//
// Fine-tuning keeps the zeros (`ZeroMask`):
//
//   ZeroMask zeros(model.parameters());
//   for (…) { loss.backward(); optimizer.step(); zeros.apply(); }
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/exporter/eager/tensor.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/nn/module.h"
#include "taper/exporter/quantize/matrix.h"
#include "taper/exporter/quantize/sparsity.h"
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

struct Pruning {
  enum class Method : uint8_t {
    magnitude,  ///< the largest weights stay; blocks compete within the whole weight
    /// The largest products of a weight and the size of its input stay; blocks compete within their
    /// rows. M. Sun and others, "A Simple and Effective Pruning Approach for Large Language
    /// Models", arXiv:2306.11695.
    wanda,
    /// As GPTQ: weights that stay make up for those that go. A part goes of each 128 neighbours.
    /// E. Frantar and D. Alistarh, "SparseGPT", arXiv:2301.00774.
    sparsegpt,
  };
  Method method = Method::magnitude;
  Sparsity sparsity;
  double damping = 0.01;  ///< of SparseGPT, times the mean of the Hessian's diagonal
  /// Layers that stay as they are: patterns for the path of the weight, the module or the operator.
  std::vector<std::string> exclude;
};

struct PrunedWeight {
  std::string path;
  std::vector<int64_t> sizes;
  std::string why;  ///< it was left as it is; "": it was pruned
  int64_t elements = 0, zeros = 0;
  int64_t zero_rows = 0;  ///< outputs without anything but zeros
  Measure measure;        ///< of a pruned weight
  int64_t bytes = 0;

  bool is_pruned() const { return why.empty(); }
};

struct PruneReport {
  std::string how;  ///< "wanda 2:4"
  std::vector<PrunedWeight> weights;
  std::vector<std::string> notes;  ///< warnings

  /// The weights from the most harmed to the least, those that were left at the end.
  std::vector<const PrunedWeight*> by_harm() const;
};

/// Prunes the constant weights of linear layers, products with a constant, and convolutions of all
/// graphs, and stacks of matrices, as those of experts. Graphs and nodes that share a
/// weight keep sharing it, look-ups too. A convolution's inputs are (channel, kernel row, kernel
/// column). A row that is no multiple of `of` ends with a shorter group, of which as large a part
/// stays, rounded up. `wanda` and `sparsegpt` learn from the examples, which run the first graph.
/// Where no example reaches a weight, its largest elements stay, and the report warns. Throws
/// ExportError without examples, if the pattern is impossible, if a pattern of `exclude` fits
/// nothing, or if no weight is pruned.
PruneReport prune(const std::vector<ir::Graph*>& graphs, const Pruning& how,
                  const Examples& samples = {}, const Progress& progress = {});

/// "magnitude", "wanda", "sparsegpt"
std::string name_of(Pruning::Method method);
/// Throws ExportError for a name of no method.
Pruning::Method pruning_method(const std::string& name);

/// A table for a terminal.
std::ostream& operator<<(std::ostream& out, const PruneReport& report);
/// Its last lines: how many zeros there are, and what they are good for.
void print_sum(std::ostream& out, const PruneReport& report);

/// Remembers where parameters are zero, and sets these elements to zero again after each step. A
/// step that is exported does so, too.
class ZeroMask {
 public:
  explicit ZeroMask(const std::vector<eager::Tensor>& parameters);
  void apply();

 private:
  std::vector<std::pair<eager::Tensor, eager::Tensor>> masked_;  ///< parameter, and where it is 0
};

}  // namespace taper::quantize
