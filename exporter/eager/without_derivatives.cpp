// An empty table of derivatives, for programs that never train. See CMakeLists.txt.
#include "taper/exporter/eager/derivatives/derivative.h"

namespace taper::eager {

std::span<const Derivative* const> all_derivatives() { return {}; }

}  // namespace taper::eager
