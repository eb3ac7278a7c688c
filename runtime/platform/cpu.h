#pragma once
#include "taper/kernels/kernel.h"

namespace taper {

/// A set of CPU levels. `portable` is in every set.
class CpuLevels {
 public:
  constexpr CpuLevels() = default;
  /// `highest` and all levels below.
  static constexpr CpuLevels up_to(CpuLevel highest) {
    return CpuLevels(static_cast<uint8_t>((2u << static_cast<unsigned>(highest)) - 1));
  }

  constexpr bool has(CpuLevel level) const {
    return (bits_ >> static_cast<unsigned>(level) & 1) != 0;
  }
  /// The levels that are in both sets.
  constexpr CpuLevels operator&(CpuLevels other) const {
    return CpuLevels(static_cast<uint8_t>(bits_ & other.bits_));
  }

 private:
  explicit constexpr CpuLevels(uint8_t bits) : bits_(bits) {}
  uint8_t bits_ = 1;  // bit i: level i
};

/// The levels that this machine and its operating system run. Beyond `portable` only x86-64 has
/// levels. Asks the processor on every call, and a virtual machine may take 100 microseconds to
/// answer: ask once and keep the set.
///
/// On Linux, macOS and BSD the environment variable TAPER_CPU names the highest level to use:
/// portable, avx2, avx512 or avx512_bf16. With any other word the set is `portable` alone.
CpuLevels cpu_levels();

/// The word in TAPER_CPU if no level has this name, else nullptr: for a message to the user.
const char* unknown_cpu_level();

}  // namespace taper
