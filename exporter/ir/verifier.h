#pragma once
#include <string_view>

#include "taper/exporter/ir/graph.h"

namespace taper::ir {

/// Checks that a graph is what every pass may rely on:
///   - every value is computed before it is used, and knows its users
///   - arguments are of the kinds that the operator's row says, and results have the types that its
///   shape rule gives
///   - states are dense, of fixed sizes, and written with their dtype and sizes; outputs exist
///   - names are unique, and every symbol that occurs has one source
///
/// Runs after each pass in debug builds. Throws ExportError with the node and what is wrong;
/// `after` names the pass.
void verify(const Graph& graph, std::string_view after = "");

}  // namespace taper::ir
