// An empty table of rare decompositions, for programs that call no rare operator. See
// CMakeLists.txt.
#include "taper/exporter/eager/decompositions/decomposition.h"

namespace taper::eager {

std::span<const Decomposition* const> rare_decompositions() { return {}; }

}  // namespace taper::eager
