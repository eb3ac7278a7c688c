#include "taper/exporter/eager/decompositions/decomposition.h"

namespace taper::eager {

#define TAPER_DECOMPOSITION_NAME(name) extern const Decomposition name##_entry;
namespace decompositions {
#include "taper/exporter/eager/rare/rare.def"
}
#undef TAPER_DECOMPOSITION_NAME

std::span<const Decomposition* const> rare_decompositions() {
#define TAPER_DECOMPOSITION_NAME(name) &decompositions::name##_entry,
  static constexpr const Decomposition* list[] = {
#include "taper/exporter/eager/rare/rare.def"
  };
#undef TAPER_DECOMPOSITION_NAME
  return list;
}

}  // namespace taper::eager
