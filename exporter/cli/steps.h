// What takes the time inside a kernel: packing, tiles, storing.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "taper/exporter/cli/timing.h"

namespace taper::cli {

/// The step of a kernel that a function belongs to: "pack", "tiles", "softmax" or "store"; "other"
/// for what calls them. `function` is a C++ name with its parameters.
std::string step_of(const std::string& function);

/// Runs the method for about a second more, and looks again and again where its threads are. Gives
/// each instruction with a product its `steps`. Inputs must be set. Throws ExportError if the
/// system cannot do it, or if the program has no names of functions.
void add_steps(RunningMethod& running, Timing& timing);

}  // namespace taper::cli
