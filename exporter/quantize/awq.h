// Activation-aware scales of weights.
#pragma once
#include <vector>

#include "taper/exporter/quantize/quantize.h"

namespace taper::quantize {

/// Makes the columns of weights larger where inputs are large, and divides the inputs. Errors of
/// these columns then count less. The factor of a channel is a power of the root mean square of its
/// inputs, and the power, of 0, 1/20, … 19/20, is the one with the least error in the results of
/// the products. Method of J. Lin and others, "AWQ", 2023, arXiv:2306.00978, which takes the mean
/// magnitude of inputs.
///
/// Changes the weights whose scheme has `awq`, in all graphs. A norm, a product or a vector before
/// the products takes the division; otherwise a node does. Returns how many inputs were divided.
/// Throws ExportError without calibration data.
int scale_for_activations(const std::vector<ir::Graph*>& graphs, const Recipe& recipe,
                          const Options& options);

}  // namespace taper::quantize
