// Special functions of one or two tensors.
#include "taper/kernels/portable/gamma_functions.h"
#include "taper/kernels/portable/normal_functions.h"
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/special_functions.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
#define TAPER_SPECIAL(op, arguments, records, F, ...) TAPER_##arguments##_##records(op, F)
#include "taper/kernels/pointwise.def"
TAPER_POINTWISE(polygamma, f32, AfterNumber<Polygamma<float>, int64_t, float>)
TAPER_POINTWISE(polygamma, f64, AfterNumber<Polygamma<double>, int64_t, double>)
TAPER_POINTWISE(polygamma, small_float, AfterNumber<Polygamma<float>, int64_t, SmallFloat>)

}  // namespace taper::portable
