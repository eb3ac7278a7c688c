// Discrete Fourier transforms of complex and of real numbers.
#include "taper/kernels/portable/fft.h"

namespace taper::portable {
namespace {

using Transform = fft::Transform<PlainLoops, lane_count>;

}  // namespace

TAPER_KERNEL(_fft_c2c, c64, Transform::prepare_c2c, Transform::run_c2c, Transform::bound_c2c)
TAPER_KERNEL(_fft_r2c, f32, Transform::prepare_r2c, Transform::run_r2c, Transform::bound_r2c)
TAPER_KERNEL(_fft_c2r, c64, Transform::prepare_c2r, Transform::run_c2r, Transform::bound_c2r)

}  // namespace taper::portable
