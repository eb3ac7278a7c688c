// Philox 4x32-10: four random words as a function of a key and a counter, so that element i of a
// tensor needs no other element. J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers:
// as easy as 1, 2, 3", SC 2011. The constants are the paper's; tests/kernels/random_test compares
// with the known answers that its authors publish (Random123, kat_vectors).
#pragma once
#include <cstdint>

namespace taper::portable {

struct PhiloxWords {
  uint32_t word[4];
};

inline PhiloxWords philox(PhiloxWords counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * counter.word[0],
                   b = uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.word[1] ^ key0, static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.word[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9u, key1 += 0xBB67AE85u;  // golden ratio, sqrt(3) - 1
  }
  return counter;
}

/// A stream of groups of four words: the seed is the key, the group's number the counter.
class PhiloxStream {
 public:
  PhiloxStream(int64_t seed, int64_t offset)
      : seed_(static_cast<uint64_t>(seed)), offset_(static_cast<uint64_t>(offset)) {}
  PhiloxWords group(int64_t i) const {
    const uint64_t n = offset_ + static_cast<uint64_t>(i);
    return philox({{static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), 0, 0}},
                  static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32));
  }

 private:
  uint64_t seed_, offset_;
};

/// `bits` random bits as a number in [0, 1): every value a multiple of 2^-bits.
template <int bits>
float uniform(uint32_t word) {
  return static_cast<float>(word >> (32 - bits)) * (1.0f / static_cast<float>(1u << bits));
}
inline double uniform53(uint32_t high, uint32_t low) {
  return static_cast<double>((uint64_t{high} << 32 | low) >> 11) * (1.0 / 9007199254740992.0);
}

}  // namespace taper::portable
