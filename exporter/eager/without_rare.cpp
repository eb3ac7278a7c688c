// For programs that call no rare operator: the table of their decompositions, empty. See
// CMakeLists.txt.
#include "taper/exporter/eager/decompositions/decomposition.h"

namespace taper::eager {

std::span<const Decomposition* const> rare_decompositions() { return {}; }

}  // namespace taper::eager
