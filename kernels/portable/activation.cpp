// Activation functions, and the functions that their derivatives call.
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
namespace {

// f16 and bf16 are computed in f32, but their largest finite numbers are smaller than those of f32.
struct NanToNumSmall : Elementwise<NanToNum<float>, SmallFloat, SmallFloat> {
  using Base = Elementwise<NanToNum<float>, SmallFloat, SmallFloat>;
  static Error run(Context& context, const Plan& plan, AnyView<const SmallFloat> x,
                   Maybe<double> nan, Maybe<double> posinf, Maybe<double> neginf,
                   View<SmallFloat> out) {
    const double largest = out.ref->dtype == DType::f16 ? 65504.0 : 0x1.fep127;
    if (!posinf) posinf = {largest, true};
    if (!neginf) neginf = {-largest, true};
    return Base::run(context, plan, x, nan, posinf, neginf, out);
  }
};

}  // namespace

#define TAPER_ACTIVATION(op, arguments, records, F, ...) TAPER_##arguments##_##records(op, F)
#include "taper/kernels/pointwise.def"
TAPER_POINTWISE(nan_to_num, f32, Elementwise<NanToNum<float>, float, float>)
TAPER_POINTWISE(nan_to_num, f64, Elementwise<NanToNum<double>, double, double>)
TAPER_POINTWISE(nan_to_num, small_float, NanToNumSmall)

}  // namespace taper::portable
