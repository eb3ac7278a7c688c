// Examples for calibration, from files.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "taper/exporter/cli/callable.h"
#include "taper/exporter/ir/graph.h"
#include "taper/exporter/quantize/static/calibrate.h"

namespace taper::cli {

/// The inputs of a graph as commands describe them.
std::vector<Callable::Input> inputs_of(const ir::Graph& graph);

struct CalibrationOptions {
  PictureOptions pictures;     ///< those of `taper run`
  size_t most = 0;             ///< not more examples; 0: all
  std::string language_model;  ///< whose tokenizer reads texts
  size_t window = 256;         ///< tokens of an example of a text
};

/// Reads examples for a method with these inputs:
///
///   calls.safetensors      recorded calls (io/recorded_calls.h)
///   data.safetensors       a tensor for each input, by its name, with as many examples in each
///   data.safetensors:name  this tensor, for a model with one input
///   data.npy               examples of a model with one input
///   story.txt              a text for a language model
///   pictures/              .png and .jpg files, each an example of a model with one input
///   a folder of .npy or .safetensors files: the examples of all files, by their names
///
/// An array may have the sizes of the input, one dimension more in front, or none for a batch of
/// one. If its first extent is a multiple of the input's, it is cut into batches. A batch of free
/// size gets up to 32 examples. Integers may have another width than the input. A language model
/// needs no positions: each text begins at 0. Texts take row 0 of the caches, and adapter 0.
/// Pictures are read when they are needed. Throws ExportError for a path without examples, for a
/// text of less than two tokens, and for tensors that do not fit.
quantize::Examples read_calibration(const std::filesystem::path& path,
                                    const std::vector<Callable::Input>& inputs,
                                    const CalibrationOptions& options = {});

}  // namespace taper::cli
