#include "taper/kernels/portable/matmul_functions.h"
#include "taper/kernels/portable/records.h"

namespace taper::portable {

TAPER_BY_NUMBER(mm, mm)
TAPER_BY_NUMBER(bmm, bmm)
TAPER_BY_NUMBER(addmm, addmm)
TAPER_BY_NUMBER(baddbmm, baddbmm)
TAPER_KERNEL(linear, f32, linear<float>)
TAPER_KERNEL(linear, f64, linear<double>)
TAPER_KERNEL(linear, i64, linear<int64_t>)

}  // namespace taper::portable
