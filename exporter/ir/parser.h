// Reads a graph from the text that the printer writes. For tests, bug reports, and graphs written
// by hand.
#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include "taper/exporter/ir/printer.h"

namespace taper::ir {

/// `payloads` holds the elements that the text names by digest. Printing the result gives the same
/// text. Throws ExportError with the line, the expectation and the text that stands there.
std::unique_ptr<Graph> parse(std::string_view text, const Payloads& payloads = {});

/// An expression in the form of `Dim::to_string`. `symbol` gives the symbol of a name.
Dim parse_dim(std::string_view text, const std::function<Dim(std::string_view)>& symbol);

}  // namespace taper::ir
