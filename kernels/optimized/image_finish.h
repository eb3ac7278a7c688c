// What convolutions do with finished sums of images with channels last.
#pragma once
#include "taper/kernels/optimized/fused_pointwise.h"
#include "taper/kernels/optimized/pixel_tiles.h"
#include "taper/kernels/portable/image_program.h"

namespace taper::optimized {

/// A bias and bounds, while the sums are in registers. A program that is more than bounds runs over
/// the stored sums, while they are near.
struct ImageFinish {
  Finish in_registers;
  portable::fused::RunProgram run_program = nullptr;  ///< nullptr: `in_registers` is all
  portable::fused::ProgramOverPixels program;

  /// `bias` from a channel on.
  Finish from_channel(index_t channel) const {
    Finish finish = in_registers;
    if (finish.bias != nullptr) finish.bias += channel;
    return finish;
  }
  /// Runs the program for some channels of `count` pixels, which lie one behind the other.
  void finish_pixels(index_t pixel, index_t count, index_t channel, index_t channels) const {
    if (run_program != nullptr) program.run(run_program, pixel, count, channel, channel + channels);
  }
};

/// Whether finished sums are read again, by a program.
inline bool runs_program(Span<const int64_t> program, Span<const double> constants) {
  return !program.empty() && !bounds_of(program, constants).present;
}

template <CpuLevel level, bool plain = false>
ImageFinish image_finish(Maybe<View<const float>> bias, ViewList<const float> others,
                         Span<const int64_t> program, Span<const double> constants,
                         portable::Pixels out, index_t to_pixel) {
  ImageFinish f;
  f.in_registers.bias = bias ? bias->data() : nullptr;
  if (const Bounds bounds = bounds_of(program, constants); bounds.present) {
    f.in_registers.is_bounded = true;
    f.in_registers.low = bounds.low, f.in_registers.high = bounds.high;
  } else if (!program.empty()) {
    f.run_program = program_runner<level, plain>();
    f.program = portable::program_over(program, constants, others, out, to_pixel);
  }
  return f;
}

}  // namespace taper::optimized
