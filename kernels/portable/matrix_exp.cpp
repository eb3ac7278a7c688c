#include "taper/kernels/portable/matrix_exp.h"

namespace taper::portable {

TAPER_KERNEL(linalg_matrix_exp, f32, prepare_exp<float>, run_exp<float>)
TAPER_KERNEL(linalg_matrix_exp, f64, prepare_exp<double>, run_exp<double>)

}  // namespace taper::portable
