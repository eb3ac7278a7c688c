// Puts the weights of a graph into blocks of a few bits, as a recipe says.
//
//   exporter.method("forward", …);
//   ExportOptions options;
//   options.before_passes = [&](const std::vector<ir::Graph*>& graphs) {
//     report = quantize::quantize(graphs, quantize::find_recipe("int4-g32"));
//   };
//   exporter.write("model.taper", options);
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "taper/exporter/quantize/calibration.h"
#include "taper/exporter/quantize/recipe.h"
#include "taper/exporter/quantize/report.h"

namespace taper::quantize {

struct Cache;

struct Options {
  /// Calls of the first graph, from which methods such as GPTQ learn.
  Examples samples;
  /// Told what is next, and how much of all of it is done.
  std::function<void(const std::string& what, int64_t done, int64_t all)> progress;
  Cache* cache = nullptr;  ///< of calls for copies of the same graphs, with the same samples
};

/// Weights of linear layers, products and look-ups become constants in blocks, and their readers
/// `linear`, `taper::block_linear`, `taper::block_linear_q8` or `embedding`. A weight that several
/// graphs or nodes share stays one constant. Rows that are no multiple of a block get zeros at
/// their end, and so does the value that is multiplied with them.
///
/// Throws ExportError if no weight matches or can be quantized, or if a weight is not finite.
Report quantize(const std::vector<ir::Graph*>& graphs, const Recipe& recipe,
                const Options& options = {});

}  // namespace taper::quantize
