#include "taper/exporter/eager/derivatives/derivative.h"

namespace taper::eager {

namespace derivatives {
#define TAPER_DERIVATIVE_NAME(name) extern const Derivative name##_entry;
#include "taper/exporter/eager/derivatives/derivatives.def"
#undef TAPER_DERIVATIVE_NAME
}  // namespace derivatives

std::span<const Derivative* const> all_derivatives() {
  static constexpr const Derivative* list[] = {
#define TAPER_DERIVATIVE_NAME(name) &derivatives::name##_entry,
#include "taper/exporter/eager/derivatives/derivatives.def"
#undef TAPER_DERIVATIVE_NAME
  };
  return list;
}

}  // namespace taper::eager
