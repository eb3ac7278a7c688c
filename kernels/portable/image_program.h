// What convolutions do with their results, images with channels last.
#pragma once
#include "taper/kernels/portable/channels_last.h"
#include "taper/kernels/portable/fused_pointwise.h"

namespace taper::portable {

/// The program of pointwise operators behind a convolution. `others`: what it reads beside `out`.
inline fused::ProgramOverPixels program_over(Span<const int64_t> program,
                                             Span<const double> constants,
                                             ViewList<const float> others, Pixels out,
                                             index_t to_pixel) {
  fused::ProgramOverPixels over{program, constants, {}, out.data(), out.size(3), to_pixel};
  over.inputs.add(out.data(), false);
  for (index_t i = 0; i < others.count; ++i) over.inputs.add(others[i]);
  return over;
}

}  // namespace taper::portable
