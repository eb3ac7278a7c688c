// Cross-layer equalization.
#pragma once
#include "taper/exporter/ir/graph.h"

namespace taper::quantize {

/// Scales the channels between two products so that both weights use their ranges alike. The second
/// product takes back what the first one gets. Between them may stand relu, leaky_relu and max
/// pools, which commute with positive factors. The model computes the same function, up to
/// rounding.
///
/// This helps if weights have one scale each, and their channels have different magnitudes, as
/// behind folded batch norms. Method of M. Nagel et al., "Data-Free Quantization through Weight
/// Equalization and Bias Correction", 2019, arXiv:1906.04721. Call it before calibration. Returns
/// how many pairs of products it scaled.
int equalize(ir::Graph& graph);

}  // namespace taper::quantize
