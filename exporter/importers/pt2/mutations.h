// Finds the inputs that a program writes.
#pragma once
#include <set>
#include <string>

#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// The names of the user's inputs that a program changes. Its signature names them, or an operator
/// writes one of them or a view of one.
std::set<std::string> written_inputs(const ExportedProgram& program);

}  // namespace taper::pt2
