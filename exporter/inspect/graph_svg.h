// Draws the graphs of methods.
#pragma once
#include <iosfwd>
#include <vector>

#include "taper/exporter/inspect/method_graph.h"

namespace taper::inspect {

/// One SVG picture with the graphs beside each other, each under its name. Text is selectable; no
/// scripts, no other files.
void write_svg(std::ostream& out, const std::vector<MethodGraph>& graphs);

}  // namespace taper::inspect
