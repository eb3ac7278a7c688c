// The peak of sums of products of bytes: a loop of independent sums in registers, for each
// instruction set of kernels/quantized.
#pragma once
#include <cstdint>
#include <string_view>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace taper::benchmarks {

/// Runs `rounds` rounds of `sums_of_round` sums, each of products of a whole vector of bytes.
using ByteLoop = void (*)(int64_t rounds);
inline constexpr int sums_of_round = 12;  // for which AVX2 has registers

#if defined(__x86_64__)
// Instructions are written out: a compiler would compute a product that does not change once.
#define TAPER_BYTE_LOOP(name, features, V, sum, more)                                          \
  __attribute__((target(features))) inline void name(int64_t rounds) {                         \
    V a{}, b{}, t{}, s0{}, s1{}, s2{}, s3{}, s4{}, s5{}, s6{}, s7{}, s8{}, s9{}, s10{}, s11{}; \
    for (int64_t i = 0; i < rounds; ++i) {                                                     \
      TAPER_SUM(sum, more, s0);                                                                \
      TAPER_SUM(sum, more, s1);                                                                \
      TAPER_SUM(sum, more, s2);                                                                \
      TAPER_SUM(sum, more, s3);                                                                \
      TAPER_SUM(sum, more, s4);                                                                \
      TAPER_SUM(sum, more, s5);                                                                \
      TAPER_SUM(sum, more, s6);                                                                \
      TAPER_SUM(sum, more, s7);                                                                \
      TAPER_SUM(sum, more, s8);                                                                \
      TAPER_SUM(sum, more, s9);                                                                \
      TAPER_SUM(sum, more, s10);                                                               \
      TAPER_SUM(sum, more, s11);                                                               \
    }                                                                                          \
  }
#define TAPER_SUM(sum, more, s) asm volatile(sum more : "+v"(s), "+v"(t) : "v"(a), "v"(b))
#define TAPER_DOT "vpdpbusd %3, %2, %0"
#define TAPER_PAIRS "vpmaddubsw %3, %2, %1\n"
#define TAPER_ADD "vpaddw %1, %0, %0"
TAPER_BYTE_LOOP(bytes_avx2, "avx2", __m256i, TAPER_PAIRS, TAPER_ADD)
TAPER_BYTE_LOOP(bytes_avx_vnni, "avx2,avxvnni", __m256i, "%{vex%} ", TAPER_DOT)
TAPER_BYTE_LOOP(bytes_avx512, "avx512f,avx512bw", __m512i, TAPER_PAIRS, TAPER_ADD)
TAPER_BYTE_LOOP(bytes_avx512_vnni, "avx512f,avx512vnni", __m512i, "", TAPER_DOT)
#undef TAPER_ADD
#undef TAPER_PAIRS
#undef TAPER_DOT
#undef TAPER_SUM
#undef TAPER_BYTE_LOOP
#endif

struct BytePeak {
  ByteLoop loop = nullptr;  ///< nullptr: none is known
  double operations = 0;    ///< of a round; a multiply-add is two
};
/// For a record whose name ends so: "avx512_vnni".
inline BytePeak byte_peak_of(std::string_view record) {
#if defined(__x86_64__)
  const auto is = [&](std::string_view end) {
    return record.size() >= end.size() && record.substr(record.size() - end.size()) == end;
  };
  if (is("avx512_vnni")) return {bytes_avx512_vnni, 2.0 * 64 * sums_of_round};
  if (is("avx512")) return {bytes_avx512, 2.0 * 64 * sums_of_round};
  if (is("avx_vnni")) return {bytes_avx_vnni, 2.0 * 32 * sums_of_round};
  if (is("avx2")) return {bytes_avx2, 2.0 * 32 * sums_of_round};
#else
  (void)record;
#endif
  return {};
}

}  // namespace taper::benchmarks
