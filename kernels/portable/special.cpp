// Special functions of one tensor.
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/portable/special_functions.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
TAPER_UNARY_FLOATING(erfinv, Erfinv)
TAPER_UNARY_FLOATING(lgamma, Lgamma)
TAPER_UNARY_FLOATING(digamma, Digamma)
TAPER_UNARY_FLOATING(i0, I0)
TAPER_UNARY_FLOATING(special_i0e, I0e)
TAPER_UNARY_FLOATING(special_i1, I1)
TAPER_UNARY_FLOATING(special_i1e, I1e)
TAPER_UNARY_FLOATING(special_log_ndtr, LogNdtr)
TAPER_POINTWISE(polygamma, f32, AfterNumber<Polygamma<float>, int64_t, float>)
TAPER_POINTWISE(polygamma, f64, AfterNumber<Polygamma<double>, int64_t, double>)
TAPER_POINTWISE(polygamma, small_float, AfterNumber<Polygamma<float>, int64_t, SmallFloat>)

}  // namespace taper::portable
