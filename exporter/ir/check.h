// What is known of an assumption before a run.
#pragma once
#include "taper/exporter/ir/dim.h"

namespace taper {

/// Whether the ranges of the symbols prove that it holds.
bool proves(const Check& check);
/// Whether they prove that it does not.
bool refutes(const Check& check);

}  // namespace taper
