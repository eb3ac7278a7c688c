// Rotary position embedding: each pair (a, b) of features is turned by an angle of its position.
//
//   y = x cos + turned(x) sin,  where turned makes (-b, a) of (a, b)
//
// A pair is two neighbours, or the same places in both halves. (J. Su and others, "RoFormer:
// Enhanced Transformer with Rotary Position Embedding", arXiv:2104.09864, section 3.4.2.) Every
// product and sum is rounded, so the bits are those of the single operators.
#include "taper/kernels/portable/rotary_embedding.h"

#include "taper/kernels/shapes/attention.h"

namespace taper::portable {

TAPER_KERNEL(taper_rotary_embedding, f32, rotary::prepare<float>, rotary::run<PlainLoops, float>)
TAPER_KERNEL(taper_rotary_embedding, f64, rotary::prepare<double>, rotary::run<PlainLoops, double>)

}  // namespace taper::portable
