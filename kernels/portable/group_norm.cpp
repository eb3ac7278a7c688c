// Group normalisation of (N, C, HxW), and its gradient. Each group of channels has its own
// statistics.
//
//   y = xhat weight + bias,  xhat = (x - mean) rstd,  rstd = 1 / sqrt(var + eps)
//   dx = rstd (g - mean(g) - xhat mean(g xhat)),  g = dy weight
//   dweight = sum(dy xhat),  dbias = sum(dy)
//
// (Y. Wu, K. He, "Group Normalization", ECCV 2018.)
#include "taper/kernels/portable/group_norm.h"

#include "taper/kernels/shapes/norm.h"

namespace taper::portable {
TAPER_KERNEL(native_group_norm, f32, group_norm::forward<PlainLoops, float>)
TAPER_KERNEL(native_group_norm, f64, group_norm::forward<PlainLoops, double>)
TAPER_KERNEL(native_group_norm_backward, f32, group_norm::prepare_backward<float>,
             group_norm::backward<PlainLoops, float>)
TAPER_KERNEL(native_group_norm_backward, f64, group_norm::prepare_backward<double>,
             group_norm::backward<PlainLoops, double>)

}  // namespace taper::portable
