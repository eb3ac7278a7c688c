// Derivatives of the views of complex numbers. All others follow from those of real operators.
#include "taper/exporter/eager/ops/complex.h"

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/ops/movement.h"

namespace taper::eager::derivatives {

TAPER_DERIVATIVE(view_as_real) { return {view_as_complex(contiguous(dy))}; }
TAPER_DERIVATIVE(view_as_complex) { return {view_as_real(dy)}; }

}  // namespace taper::eager::derivatives
