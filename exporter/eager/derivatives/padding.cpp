// Two operators are each other's gradient: padding with copies of the tensor's elements, and the
// sum over the copies of each element.
#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/derivatives/shared.h"

namespace taper::eager::derivatives {

#define TAPER_PAD_DERIVATIVES(op)                                                        \
  TAPER_DERIVATIVE(op) {                                                                 \
    return {call<ops::op##_backward>(dy, stand_in_of(saved.sizes<"self">(), dy.dtype()), \
                                     saved.dims<"padding">())};                          \
  }                                                                                      \
  TAPER_DERIVATIVE(op##_backward) { return {call<ops::op>(dy, saved.dims<"padding">()), {}}; }
TAPER_PAD_DERIVATIVES(reflection_pad1d)
TAPER_PAD_DERIVATIVES(reflection_pad2d)
TAPER_PAD_DERIVATIVES(reflection_pad3d)
TAPER_PAD_DERIVATIVES(replication_pad1d)
TAPER_PAD_DERIVATIVES(replication_pad2d)
TAPER_PAD_DERIVATIVES(replication_pad3d)

}  // namespace taper::eager::derivatives
