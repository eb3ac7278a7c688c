#include "taper/runtime/extension/module/sha256.h"

#include <cstdint>
#include <cstring>

namespace taper {
namespace {

// The fractions of the cube roots of the first 64 primes.
constexpr uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t turned(uint32_t x, int bits) { return x >> bits | x << (32 - bits); }

struct State {
  // the fractions of the square roots of the first 8 primes
  uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

  void add(const std::byte* block) {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i) {
      w[i] = 0;
      for (int k = 0; k < 4; ++k) w[i] = w[i] << 8 | static_cast<uint32_t>(block[4 * i + k]);
    }
    for (int i = 16; i < 64; ++i) {
      const uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[i - 7] +
             (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    uint32_t s[8];
    std::memcpy(s, h, sizeof s);
    for (int i = 0; i < 64; ++i) {
      const uint32_t e = s[4], a = s[0];
      const uint32_t t1 = s[7] + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) +
                          ((e & s[5]) ^ (~e & s[6])) + round_constants[i] + w[i],
                     t2 = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) +
                          ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
      std::memmove(s + 1, s, 7 * sizeof *s);
      s[4] += t1, s[0] = t1 + t2;
    }
    for (int i = 0; i < 8; ++i) h[i] += s[i];
  }
};

}  // namespace

std::array<std::byte, 32> sha256(Span<const std::byte> bytes) {
  constexpr size_t block = 64;
  State state;
  const size_t size = static_cast<size_t>(bytes.size()), rest = size % block;
  for (size_t at = 0; at + block <= size; at += block) state.add(bytes.data() + at);
  // the rest, a one, zeros, and the number of bits
  std::byte last[2 * block] = {};
  if (rest > 0) std::memcpy(last, bytes.data() + (size - rest), rest);
  last[rest] = std::byte{0x80};
  const size_t end = rest + 9 <= block ? block : 2 * block;
  for (int i = 0; i < 8; ++i)
    last[end - 1 - static_cast<size_t>(i)] =
        static_cast<std::byte>(static_cast<uint64_t>(size) * 8 >> 8 * i);
  for (size_t at = 0; at < end; at += block) state.add(last + at);

  std::array<std::byte, 32> digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(state.h[i / 4] >> (24 - i % 4 * 8));
  return digest;
}

}  // namespace taper
