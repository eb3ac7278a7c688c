// Weights of a graph that have the numbers of their blocks, so that the layers behind them learn
// from what they will get. Internal.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "taper/exporter/quantize/readers.h"

namespace taper::quantize {

/// While it lives, graphs compute with rounded weights.
class RoundedWeights {
 public:
  RoundedWeights() = default;
  RoundedWeights(const RoundedWeights&) = delete;
  RoundedWeights& operator=(const RoundedWeights&) = delete;
  ~RoundedWeights() { restore(); }

  /// From now on, the graph computes with the numbers of `blocks` in the place of the weight.
  void put(const Weight& weight, const ir::Payload& blocks);
  /// Gives all weights their elements back.
  void restore();
  bool empty() const { return originals_.empty(); }

 private:
  std::vector<std::pair<ir::Constant*, std::shared_ptr<const ir::Payload>>> originals_;
};

/// Sorts weights by the first node of the graph that reads them. Those of other graphs come last.
void sort_by_uses(const ir::Graph& graph, std::vector<Weight>& weights);

}  // namespace taper::quantize
