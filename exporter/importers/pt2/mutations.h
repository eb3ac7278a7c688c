// Which inputs of a program are written.
#pragma once
#include <set>
#include <string>

#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// The names of the user's inputs that a program changes: by its signature, or by operators that
/// write one of them or a view of it.
std::set<std::string> written_inputs(const ExportedProgram& program);

}  // namespace taper::pt2
