// Finds how far each layer of a model can be quantized while the model stays good enough.
#pragma once
#include <vector>

#include "taper/exporter/quantize/quantize.h"
#include "taper/exporter/quantize/search.h"
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

struct Target {
  Goal goal;
  /// The score of a model. It may change the graphs, which are copies.
  std::function<Score(const std::vector<ir::Graph*>&)> measure;
  SearchProgress progress;
};

struct BlockTarget {
  Recipe recipe;  ///< with a rule for each weight
  SearchResult search;
};
/// A weight gets the scheme that `least` gives it, one of more bits, or stays float. Nothing scales
/// channels: do that before (awq.h). Batch norms are folded if `least` widens weights; the graphs
/// do not change otherwise. Throws ExportError if nothing can be quantized, or if nothing meets the
/// goal.
BlockTarget recipe_for(const std::vector<ir::Graph*>& graphs, const Recipe& least,
                       const Options& options, const Target& target);

struct StaticTarget {
  StaticOptions options;  ///< with float_results
  SearchResult search;
};
/// Chooses which nodes compute on 8-bit integers. The size of a node is that of its weight, and of
/// its result for the smallest input. `ranges` are those of `options`. Throws as `recipe_for`.
StaticTarget static_options_for(ir::Graph& graph, const Ranges& ranges,
                                const StaticOptions& options, const Target& target);

}  // namespace taper::quantize
