// Draws the graphs of methods as a page on which modules fold and unfold.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/exporter/inspect/method_graph.h"

namespace taper::inspect {

/// One HTML file that needs no other file and no network. It contains the graphs as data, and the
/// style and scripts of `page/`, which lay them out and draw them. Names of a program are always
/// shown as text. `title` is the heading.
void write_html(std::ostream& out, const std::string& title,
                const std::vector<MethodGraph>& graphs);

}  // namespace taper::inspect
