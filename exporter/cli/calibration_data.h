// Examples for calibration, from files.
#pragma once
#include <filesystem>
#include <vector>

#include "taper/exporter/cli/callable.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::cli {

/// The inputs of a graph as commands describe them.
std::vector<Callable::Input> inputs_of(const ir::Graph& graph);

/// Reads examples for a method with these inputs:
///
///   calls.safetensors    recorded calls (io/recorded_calls.h)
///   data.safetensors     a tensor for each input, by its name, with as many examples in each
///   data.npy             examples of a model with one input
///   pictures/            .png and .jpg files, each an example of a model with one input;
///   `pictures`
///                        has the options of `run`
///   a folder of .npy or .safetensors files: the examples of all files, by their names
///
/// An array may have the sizes of the input, one dimension more in front, or none for a batch of
/// one. If its first extent is a multiple of the input's, it is cut into batches. A batch of free
/// size gets up to 32 examples. Pictures are read when they are needed. `most`: not more examples;
/// 0: all. Throws ExportError for a path without examples, and for tensors that do not fit.
quantize::Examples read_calibration(const std::filesystem::path& path,
                                    const std::vector<Callable::Input>& inputs,
                                    const PictureOptions& pictures = {}, size_t most = 0);

}  // namespace taper::cli
