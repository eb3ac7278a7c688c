// The names of a model's results: the keys of a dict that it returns.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// A name for each result that the user's function returns, in the order of the program's outputs:
/// "logits" for a dict, "past.0" for a tuple in it, fields of named tuples and dataclasses. The
/// name is empty for a result under no key, such as an element of a plain tuple. The list is empty
/// if the file does not say how the results nest.
std::vector<std::string> output_names(const ExportedProgram& program);

}  // namespace taper::pt2
