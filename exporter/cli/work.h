// How much an instruction computes and moves.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/roofline/roofline.h"
#include "taper/runtime/method/method.h"

namespace taper::cli {

/// "f32[64, 400]"
std::string type_text(const TensorRef& tensor);
/// The types of an instruction's tensors: "f32[64, 400] f32[400, 120] -> f32[64, 120]".
std::string types_text(const InstructionInfo& instruction);

/// The work of one execution of each instruction, with the current shapes. Operations are the
/// multiplications and additions of matrix products, convolutions and attention; 0 for other
/// operators. Of a table that is looked up, as many bytes count as the result has. Footprints are
/// those of a method that runs again and again, each instruction once and in order.
std::vector<roofline::Work> works_of(const Method& method);

}  // namespace taper::cli
