// How passes that match several nodes put one in their place.
#pragma once
#include <string>
#include <vector>

#include "taper/exporter/ir/call.h"
#include "taper/exporter/passes/passes.h"

namespace taper::passes {

/// Whether one node reads `value`, once, and nothing else does.
bool has_one_reader(const ir::Graph& graph, const ir::Value* value);

/// A call before `node`, with its location and module. nullptr if the target has no kernel for the
/// call; then a note says why `node` stays.
ir::Node* insert_if_it_runs(ir::Graph& graph, PassContext& context, ir::Node& node,
                            const Operator& op, std::vector<ir::Argument> arguments);

/// Everybody who reads `old` reads `replacement`, which gets its name.
void take_place_of(ir::Graph& graph, ir::Value* old, ir::Value* replacement);

/// The value to which a node only gave other sizes or strides; nullptr: the node did more.
ir::Value* source_of_reshape(const ir::Value* value);

/// The value below views and copies that have the same elements at the same places: `alias`,
/// `clone`, and `expand` and `view` that keep all sizes.
ir::Value* below_copies(ir::Value* value);

/// The node that casts to the value's dtype; nullptr: another node gives the value.
ir::Node* cast_to(const ir::Value* value);
/// A call of the same cast on another value.
ir::Value* insert_cast(ir::Graph& graph, ir::Node* before, const ir::Node& cast, ir::Value* value);

/// The permuted value, if `value` is a view that exchanges its last two dimensions; else nullptr.
ir::Value* transposed_matrices(const ir::Value* value);

}  // namespace taper::passes
