#pragma once
#include <string_view>

#include "taper/exporter/ir/graph.h"

namespace taper::ir {

/// Checks the rules of a graph, on which every pass relies:
///   - every value is computed before it is used, and knows its users
///   - arguments are of the kinds that the operator's row says
///   - results have the types that its shape rule gives
///   - states are dense, of fixed sizes, and written with their dtype and sizes; outputs exist
///   - names are unique, and every symbol that occurs has one source
///
/// Runs after each pass in debug builds. Throws ExportError with the node and the fault; `after`
/// names the pass.
void verify(const Graph& graph, std::string_view after = "");

}  // namespace taper::ir
