// Puts quantize and dequantize nodes into a graph, for the ranges of a calibration.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/quantize/static/calibrate.h"
#include "taper/exporter/quantize/static/decision.h"

namespace taper::quantize {

struct StaticResult {
  std::vector<Decision> decisions;    ///< one for each node that computes f32, in order
  std::vector<std::string> warnings;  ///< weights whose scales had to grow
};

/// Makes the graph read integers and round to integers, in the form that PT2E gives:
///
///   %q = quantized_decomposed::quantize_per_tensor(%x, 0.02, -14, -128, 127, i8)
///   %x8 = quantized_decomposed::dequantize_per_tensor(%q, 0.02, -14, -128, 127, i8, none)
///   %w8 = quantized_decomposed::dequantize_per_channel(%w, %scales, %zeros, 0, -127, 127, i8,
///   none) %y = convolution(%x8, %w8, %bias, …)
///
/// The graph runs as it is; another pass may put integer kernels in the place of such nodes. Biases
/// stay f32. A bias that 32 bits would not hold at its scale makes the weight's scale larger.
///
/// `ranges` come from `calibrate` of this graph with these options. Throws ExportError if a range
/// is missing or a weight is not finite.
StaticResult quantize_static(ir::Graph& graph, const Ranges& ranges, const StaticOptions& options);

/// The same for one node, and the limit that joins it. Everything else stays float.
void quantize_one(ir::Graph& graph, const ir::Node& node, const Ranges& ranges,
                  const StaticOptions& options);

}  // namespace taper::quantize
