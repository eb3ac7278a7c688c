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

/// Computes nodes whose arguments are all constants. Eager's kernels compute them, so the bits are
/// those of the program. A result that is much larger than its arguments stays a node.
int fold_constants(ir::Graph& graph);

/// Keeps one of several calls of the same operator on the same arguments. This holds for all
/// operators, because random numbers are functions of a state.
int merge_common_subexpressions(ir::Graph& graph);

/// Rewrites conv → batch norm (inference, constants) as one convolution: w' = w * g / sqrt(var +
/// eps) and b' = (b - mean) * g / sqrt(var + eps) + beta, computed in double. Approximate: rounds
/// in another order.
int fold_batch_norm(ir::Graph& graph);

/// Replaces trees of f32 pointwise operators over equal sizes by one `taper::pointwise`
/// (kernels/pointwise_program.h), so that intermediate results never go to memory. Exact: every
/// element goes through the same functions.
int fuse_pointwise(ir::Graph& graph);

/// Traces the graph again through eager. A composite operator without a kernel of its own becomes
/// the operators of its decomposition. Writes in place (of imported graphs) become values and
/// writes to states. States keep their path, kind and first value.
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

/// Runs `passes`; with `exact`, only the exact ones. Debug builds verify the graph after each pass.
std::vector<PassResult> run_passes(ir::Graph& graph, bool exact,
                                   const std::vector<Pass>& passes = default_passes());

}  // namespace taper::passes
