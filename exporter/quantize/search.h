// Finds a scheme for each layer, so that a model is small and still good enough. It knows nothing
// of graphs: layers have levels, and a function measures a choice of levels.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace taper::quantize {

/// What a layer can become.
struct SearchLayer {
  std::string name;
  std::vector<int64_t> bytes;  ///< of each level, falling; level 0 is the layer as it was
  /// The errors of each level in any unit, such as those of the weight; 0 for level 0. Then only
  /// the first and the last level are measured alone. Empty: unknown.
  std::vector<double> errors;
};

/// The level of each layer.
using Levels = std::vector<size_t>;

struct Score {
  double metric = 0;  ///< what the goal is about
  double noise = 0;   ///< how far results are from those of the model as it was; ranks layers
};

struct Goal {
  double bound = 0;
  bool at_most = false;    ///< smaller is better, as of a perplexity
  bool is_pruned = false;  ///< the model was pruned before the search

  /// False for NaN.
  bool is_met_by(double metric) const { return at_most ? metric <= bound : metric >= bound; }
};

struct SearchPoint {
  Levels levels;
  int64_t bytes = 0;
  Score score;
};

struct SearchResult {
  SearchPoint best;                   ///< the smallest one that meets the goal
  std::vector<SearchPoint> measured;  ///< all that were measured, in this order

  /// The points that no smaller one equals or beats, from the largest.
  std::vector<SearchPoint> curve(const Goal& goal) const;
};

/// Measures a model with these levels. Equal levels give equal scores.
using MeasureLevels = std::function<Score(const Levels&)>;
/// Gets how many measurements are done, and about how many there will be.
using SearchProgress = std::function<void(size_t done, size_t all)>;

/// Searches in three steps:
///
///   sensitivity  Each layer alone gives a noise. Noises of layers about add up.
///   descent      From the model as it was, the step that saves most bytes for its noise comes
///                first. A bisection measures how far down this way the goal is met.
///   repair       Every layer takes more steps down, the cheapest first, while the goal is met.
///
/// Throws ExportError if the model as it was does not meet the goal.
SearchResult search_levels(const std::vector<SearchLayer>& layers, const Goal& goal,
                           const MeasureLevels& measure, const SearchProgress& progress = {});

}  // namespace taper::quantize
