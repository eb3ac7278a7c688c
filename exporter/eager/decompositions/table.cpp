#include "taper/exporter/eager/decompositions/decomposition.h"

namespace taper::eager {

std::span<const Decomposition* const> all_decompositions() {
  static constexpr const Decomposition* list[] = {
#define TAPER_DECOMPOSITION_NAME(name) &decompositions::name##_entry,
#include "taper/exporter/eager/decompositions/decompositions.def"
#undef TAPER_DECOMPOSITION_NAME
  };
  return list;
}

}  // namespace taper::eager
