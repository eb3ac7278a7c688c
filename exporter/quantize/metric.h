// Measures how good a model is on data.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/search.h"
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

enum class Metric : uint8_t {
  top_1,       ///< the part of rows whose largest output is that of the label
  perplexity,  ///< of the tokens in the first input, by the logits of each position
  cosine,      ///< of the outputs and those of the unchanged model: the least of all outputs
  other,       ///< measured elsewhere
};
/// "top-1"
const char* name_of(Metric metric);
std::optional<Metric> find_metric(std::string_view name);

/// Calls, and the classes of their rows, one call after the other.
struct TestData {
  Examples examples;
  std::vector<int64_t> labels;  ///< for top_1
};

/// Runs graphs through eager on the same data.
class Meter {
 public:
  /// Runs `unchanged`, and keeps its outputs, up to 256 MB of them. Throws ExportError if the model
  /// or the data do not fit the metric, and for an example that the model does not take.
  Meter(Metric metric, TestData data, const ir::Graph& unchanged, const Progress& progress = {});
  ~Meter();

  /// The metric is 0 for Metric::other. The noise is that of the outputs that were kept.
  Score run(const ir::Graph& graph) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::quantize
