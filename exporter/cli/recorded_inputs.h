// Which recorded arguments are the inputs of a program.
#pragma once
#include <map>
#include <optional>
#include <vector>

#include "taper/exporter/cli/callable.h"

namespace taper::cli {

/// Whether an array can be the input: its type and its sizes.
bool fits(const io::Array& array, const Callable::Input& input);

/// A recording also has the constants of the call, which are not inputs of a program. Chooses the
/// recorded arguments that can be the inputs, in order. nullopt unless there is exactly one way.
std::optional<std::vector<int>> choose_inputs(const std::map<int, io::Array>& recorded,
                                              const std::vector<Callable::Input>& inputs);

}  // namespace taper::cli
