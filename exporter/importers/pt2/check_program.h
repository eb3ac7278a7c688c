// Checks that the parts of a program fit each other.
#pragma once
#include <string>

#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// Checks that every name is defined once and before it is used, in subgraphs too; that tensors
/// have types; that inputs and outputs fit the signature. Throws io::FileError, which begins with
/// `file` and says where the fault is.
void check_program(const ExportedProgram& program, const std::string& file);

}  // namespace taper::pt2
