// Loops that show what a processor can do: kernels are measured by them.
#pragma once
#include "taper/kernels/optimized/levels.h"

namespace taper::roofline {

using optimized::CpuLevel;

/// The loops of one CPU level.
struct Loops {
  /// Makes rounds * multiply_adds_per_round multiply-adds. All of them stay in registers, and
  /// enough are independent to keep the units busy.
  float (*multiply_add)(index_t rounds);
  index_t multiply_adds_per_round;
  /// Reads `count` numbers, a multiple of `block`, and returns their sum.
  float (*read)(const float* from, index_t count);
  /// Reads and writes `count` numbers, a multiple of `block`: halves each in its place.
  void (*halve)(float* numbers, index_t count);
};

/// `read` and `halve` take so many numbers at a time, or a part of them.
constexpr index_t block = 128;

/// The loops of this machine's highest level. Without Highway they are plain C++, as its kernels.
const Loops& fastest_loops();

// one table a level; only with Highway
TAPER_DECLARE_LEVEL_TABLES(Loops, loops)

}  // namespace taper::roofline
