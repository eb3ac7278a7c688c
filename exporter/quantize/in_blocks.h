// A single matrix in blocks of a few bits, for models that run in eager.
#pragma once
#include <string>

#include "taper/exporter/eager/tensor.h"

namespace taper::quantize {

/// A matrix in blocks of this format ("q4_0", "q4_1", …), each with the scale of the least squared
/// error. Itself if it is in blocks already, or if its rows do not divide into blocks. Throws
/// ExportError for a format that Taper does not write, and for elements that are not finite.
eager::Tensor in_blocks(const eager::Tensor& matrix, const std::string& format);

}  // namespace taper::quantize
