// How much an instruction computes and moves.
#pragma once
#include <string>

#include "taper/exporter/roofline/roofline.h"
#include "taper/runtime/method/method.h"

namespace taper::cli {

/// "f32[64, 400]"
std::string type_text(const TensorRef& tensor);
/// The types of an instruction's tensors: "f32[64, 400] f32[400, 120] -> f32[64, 120]".
std::string types_text(const InstructionInfo& instruction);

/// The work of one execution of an instruction, with its current shapes. Operations are the
/// multiplications and additions of matrix products, convolutions and attention; 0 for other
/// operators. Bytes are those of tensors, each counted once. A table that is looked up counts as
/// much as the result, if that is less.
roofline::Work work_of(const InstructionInfo& instruction);

}  // namespace taper::cli
