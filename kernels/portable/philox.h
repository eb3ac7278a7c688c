// Philox 4x32-10: four random words as a function of a key and a counter. So element i of a tensor
// does not depend on other elements. J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011. The constants are those of the paper.
// tests/kernels/random_test compares with the known answers that its authors publish (Random123,
// kat_vectors).
#pragma once
#include <cstdint>
#include <cstring>

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

/// Groups that are computed together, in vectors. Word k of group g is word[k][g].
struct PhiloxGroups {
  static constexpr int count = 16;
  uint32_t word[4][count];
};

/// A stream of groups of four words. The seed is the key; the number of the group is the counter.
class PhiloxStream {
 public:
  PhiloxStream(int64_t seed, int64_t offset)
      : seed_(static_cast<uint64_t>(seed)), offset_(static_cast<uint64_t>(offset)) {}
  /// `count` groups, from number `first` on.
  PhiloxGroups groups(int64_t first) const;

 private:
  uint64_t seed_, offset_;
};

/// The first `bits` bits of a word as a number in [0, 1): a multiple of 2^-bits.
template <int bits>
float uniform(uint32_t word) {
  return static_cast<float>(static_cast<int32_t>(word >> (32 - bits))) *
         (1.0f / static_cast<float>(1u << bits));
}
/// A word as a double: it is placed in the low bits of 2^52's significand.
inline double number_of(uint32_t word) {
  const uint64_t bits = 0x4330000000000000u | word;
  double number;
  std::memcpy(&number, &bits, 8);
  return number - 4503599627370496.0;
}
/// 53 random bits as a number in [0, 1).
inline double uniform53(uint32_t high, uint32_t low) {
  return (number_of(high) * 2097152.0 + number_of(low >> 11)) * (1.0 / 9007199254740992.0);
}

}  // namespace taper::portable
