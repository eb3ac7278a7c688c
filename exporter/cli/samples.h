// Calibration data: calls of a graph, out of files.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/calibration.h"

namespace taper::cli {

/// Reads at most `most` samples for the inputs of a graph:
///
///   calls.safetensors        recorded calls, as for `taper check`
///   inputs.safetensors       tensors with the names of the inputs
///   inputs.safetensors:name  a tensor for the first input
///   inputs.npy               the same
///   story.txt                a text for the language model `model`, which has a tokenizer
///
/// A tensor holds several samples, one behind the other in its first dimension. Throws ExportError
/// if there is no sample, or one does not fit.
std::vector<quantize::Sample> read_samples(const std::string& data, const std::string& model,
                                           const ir::Graph& graph, int64_t most);

}  // namespace taper::cli
