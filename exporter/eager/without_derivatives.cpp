// For programs that never train: the table of derivatives, empty. See CMakeLists.txt.
#include "taper/exporter/eager/derivatives/derivative.h"

namespace taper::eager {

std::span<const Derivative* const> all_derivatives() { return {}; }

}  // namespace taper::eager
