// Layer normalisation over the last dimensions, its gradient, and RMS normalisation.
//
//   y = xhat weight + bias,  xhat = (x - mean) rstd,  rstd = 1 / sqrt(var + eps)   for each row
//   dx = rstd (g - mean(g) - xhat mean(g xhat)),  g = dy weight
//   dweight = sum(dy xhat),  dbias = sum(dy)   over the rows
//
// (J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer Normalization", 2016.)
//
//   y = x rstd weight,  rstd = 1 / sqrt(mean(x²) + eps)
//
// (B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", 2019.)
#include "taper/kernels/portable/layer_norm.h"

#include "taper/kernels/shapes/norm.h"

namespace taper::portable {

using namespace layer_norm;

TAPER_KERNEL(native_layer_norm, f32, forward<PlainLoops, float>)
TAPER_KERNEL(native_layer_norm, f64, forward<PlainLoops, double>)
TAPER_KERNEL(_fused_rms_norm, f32, rms_forward<PlainLoops, float>)
TAPER_KERNEL(_fused_rms_norm, f64, rms_forward<PlainLoops, double>)
TAPER_KERNEL(native_layer_norm_backward, f32, backward<PlainLoops, float>)
TAPER_KERNEL(native_layer_norm_backward, f64, backward<PlainLoops, double>)

}  // namespace taper::portable
