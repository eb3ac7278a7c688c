#pragma once
#include <cstdint>

namespace taper::data {

/// A small deterministic generator for shuffling and augmentation: SplitMix64 (Steele, Lea, Flood:
/// Fast splittable pseudorandom number generators, 2014). The same seed gives the same numbers with
/// every compiler, unlike the standard distributions.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  /// A generator for one of many purposes that share a seed: an epoch, an example.
  Random(uint64_t seed, uint64_t stream) : state_(Random(seed ^ Random(stream).bits()).bits()) {}

  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// A number in [0, n), n > 0 and below 2^32; its bias is below n / 2^32.
  int64_t below(int64_t n) {
    return static_cast<int64_t>(((bits() >> 32) * static_cast<uint64_t>(n)) >> 32);
  }

 private:
  uint64_t state_;
};

}  // namespace taper::data
