// Programs with room for a LoRA adapter, which is given when the program is loaded: `taper export
// --lora-slots 16`. Beside the matrix NAME.weight of the model's file lie the slots
// NAME.lora_A.weight (rank, in) and NAME.lora_B.weight (out, rank), which has alpha / rank in it.
#pragma once
#include <map>
#include <string>

#include "taper/runtime/extension/module/module.h"

namespace taper::llm {

/// The slots of a program, for ModuleOptions::slots: with the adapter of this path, or with zeros
/// if the path is empty. Matrices of a lower rank are filled up with zeros. Empty for a program
/// without slots. Throws ExportError if the program cannot be loaded, or an adapter does not fit.
std::map<std::string, OwnedTensor> adapter_slots(const std::string& program,
                                                 const std::string& adapter);

}  // namespace taper::llm
