// What a model calls its results: the keys of a dict that it returns.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/importers/pt2/program.h"

namespace taper::pt2 {

/// A name for each result that the user's function returns, in the order of the program's outputs:
/// "logits" of a dict, "past.0" of a tuple in it, fields of named tuples and dataclasses. Empty for
/// a result under no key, such as an element of a plain tuple. Nothing if the file does not say
/// how the results nest.
std::vector<std::string> output_names(const ExportedProgram& program);

}  // namespace taper::pt2
