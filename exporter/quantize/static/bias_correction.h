// The mean error that rounded weights cause. Internal.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::quantize {

/// For each quantized product that has a bias or can get one, by the name of its result: the mean
/// over all examples, for each channel, of the result with float weights minus that with rounded
/// ones. Each product reads the float activations. Method of M. Nagel et al., "Data-Free
/// Quantization through Weight Equalization and Bias Correction", 2019, arXiv:1906.04721, with
/// measured means.
std::map<std::string, std::vector<float>> bias_shifts(ir::Graph& graph, const Examples& examples,
                                                      const StaticOptions& options,
                                                      const Progress& progress = {});

}  // namespace taper::quantize
