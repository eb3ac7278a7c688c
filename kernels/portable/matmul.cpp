#include "taper/kernels/portable/matmul_functions.h"
#include "taper/kernels/portable/records.h"

#define TAPER_PRODUCT(op)         \
  TAPER_BY_NUMBER(op, op)         \
  TAPER_KERNEL(op, f16, op<Half>) \
  TAPER_KERNEL(op, bf16, op<BFloat16>)

namespace taper::portable {

TAPER_PRODUCT(mm)
TAPER_PRODUCT(bmm)
TAPER_PRODUCT(addmm)
TAPER_PRODUCT(baddbmm)
TAPER_KERNEL(linear, f32, linear<float>)
TAPER_KERNEL(linear, f64, linear<double>)
TAPER_KERNEL(linear, i64, linear<int64_t>)
TAPER_KERNEL(linear, f16, linear<Half>)
TAPER_KERNEL(linear, bf16, linear<BFloat16>)

}  // namespace taper::portable
