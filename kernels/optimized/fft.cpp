// The portable Fourier transforms, compiled for AVX2. The bits are the same. Sixteen lines side by
// side, as AVX-512 has room for, are no faster.
#include "taper/kernels/portable/fft.h"

#include "taper/kernels/optimized/levels.h"
#include "taper/kernels/optimized/wide.h"

#if TAPER_X86_LEVELS
namespace taper::optimized {
namespace {

using Transform = portable::fft::Transform<LoopsAt<CpuLevel::avx2>, portable::lane_count>;

}  // namespace

TAPER_WIDE_KERNEL(_fft_c2c, c64, avx2, Transform::prepare_c2c, Transform::run_c2c,
                  Transform::bound_c2c)
TAPER_WIDE_KERNEL(_fft_r2c, f32, avx2, Transform::prepare_r2c, Transform::run_r2c,
                  Transform::bound_r2c)
TAPER_WIDE_KERNEL(_fft_c2r, c64, avx2, Transform::prepare_c2r, Transform::run_c2r,
                  Transform::bound_c2r)

}  // namespace taper::optimized
#endif
