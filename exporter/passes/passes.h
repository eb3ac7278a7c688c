// Passes over ir::Graph, one a file, and the sequence in which an export runs them.
#pragma once
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/ir/graph.h"

namespace taper::passes {

// Each edits the graph and returns how many nodes it removed or replaced; 0: nothing to do.

/// Removes nodes whose results nobody uses, and unused constants. Checks stay.
int remove_dead_code(ir::Graph& graph);

/// Computes what follows from constants alone, by eager's kernels, so bit for bit what the program
/// would compute. A result that is much larger than what it is made from stays a node.
int fold_constants(ir::Graph& graph);

/// Keeps one of several calls of the same operator on the same arguments. Random numbers are
/// functions of a state, so no operator is excepted.
int merge_common_subexpressions(ir::Graph& graph);

/// Rewrites conv → batch norm (inference, constants) as one convolution: w' = w * g / sqrt(var +
/// eps) and b' = (b - mean) * g / sqrt(var + eps) + beta, computed in double. Approximate: rounds
/// in another order.
int fold_batch_norm(ir::Graph& graph);

/// Replaces trees of f32 pointwise operators over equal sizes by one `taper::pointwise`
/// (kernels/pointwise_program.h), so that what lies between them never goes to memory. Exact: every
/// element goes through the same functions.
int fuse_pointwise(ir::Graph& graph);

/// The graph traced again through eager: composite operators that no kernel takes as a whole become
/// those they are made of, and writes in place (of imported graphs) become values and writes to
/// states. States keep their path, kind and first value.
std::unique_ptr<ir::Graph> retrace(const ir::Graph& graph);

struct Pass {
  const char* name;
  bool exact;  ///< keeps every result's bits
  int (*run)(ir::Graph& graph);
};

/// What an export runs, in order.
const std::vector<Pass>& default_passes();

struct PassResult {
  std::string name;
  int changes;
};

/// Runs `passes`, of them only the exact ones if `exact`. In debug builds the graph is verified
/// after each.
std::vector<PassResult> run_passes(ir::Graph& graph, bool exact,
                                   const std::vector<Pass>& passes = default_passes());

}  // namespace taper::passes
