// One pass on one graph, for tests.
#pragma once
#include "taper/exporter/passes/passes.h"

namespace taper::passes {

using Run = int (*)(ir::Graph&, PassContext&);
inline int apply(Run pass, ir::Graph& graph) {
  PassContext context;
  return pass(graph, context);
}

}  // namespace taper::passes
