// Small arithmetic of the drivers.
#pragma once
#include "taper/runtime/platform/threads.h"

namespace taper::optimized {

inline constexpr index_t scratch_alignment = 64;

constexpr index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }
constexpr index_t round_up(index_t a, index_t b) { return ceil_div(a, b) * b; }
constexpr index_t smaller(index_t a, index_t b) { return a < b ? a : b; }
constexpr index_t larger(index_t a, index_t b) { return a > b ? a : b; }

/// What `count` floats take of scratch.
constexpr index_t bytes_of_floats(index_t count) {
  return round_up(count * index_t{sizeof(float)}, scratch_alignment);
}

/// Cuts [0, count) into `parts` nearly equal parts. Returns where part i begins, and part i - 1
/// ends.
constexpr index_t part_begin(index_t count, index_t parts, index_t i) { return count * i / parts; }

/// The same without a division for each part. The longer parts come first.
struct EvenParts {
  index_t count, shorter, longer;  ///< parts; the length of the shorter ones; how many are longer

  constexpr EvenParts(index_t whole, index_t parts)
      : count(parts),
        shorter(parts == 0 ? 0 : whole / parts),
        longer(parts == 0 ? 0 : whole % parts) {}
  constexpr index_t begin(index_t i) const { return i * shorter + smaller(i, longer); }
  constexpr index_t length(index_t i) const { return shorter + (i < longer ? 1 : 0); }
};

inline int thread_count(const Threads* threads) { return threads == nullptr ? 1 : threads->count; }

}  // namespace taper::optimized
