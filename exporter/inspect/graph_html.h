// Draws the graphs of methods as a page on which modules fold and unfold.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "taper/exporter/inspect/method_graph.h"

namespace taper::inspect {

/// One HTML file that needs no other and no network: the graphs as data, and the style and scripts
/// of `page/`, which lay them out and draw them. Whatever names a program holds, they are shown as
/// text. `title` stands above.
void write_html(std::ostream& out, const std::string& title,
                const std::vector<MethodGraph>& graphs);

}  // namespace taper::inspect
