// Whether a program hangs together.
#pragma once
#include <string>

#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// Every name is defined once and before it is used, in subgraphs too; tensors have types; inputs
/// and outputs fit the signature. Throws io::FileError, led by `file`, that says where not.
void check_program(const ExportedProgram& program, const std::string& file);

}  // namespace taper::pt2
