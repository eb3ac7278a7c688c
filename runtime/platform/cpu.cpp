#include "taper/runtime/platform/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#if defined(__unix__) || defined(__APPLE__)
#include <cstdlib>
#include <cstring>
#define TAPER_HAS_ENVIRONMENT
#endif

namespace taper {
namespace {

constexpr bool all(uint64_t set, uint64_t bits) { return (set & bits) == bits; }

// Which registers the operating system saves at a context switch (XCR0).
uint64_t saved_registers() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID.
CpuLevel highest_level() {
  uint32_t eax, ebx, ecx, edx;
  __cpuid(0, eax, ebx, ecx, edx);
  if (eax < 7) return CpuLevel::portable;  // the number of the last leaf

  __cpuid(1, eax, ebx, ecx, edx);
  constexpr uint32_t pclmul = 1u << 1, fma = 1u << 12, aes = 1u << 25, osxsave = 1u << 27,
                     avx = 1u << 28, f16c = 1u << 29;
  if (!all(ecx, pclmul | fma | aes | osxsave | avx | f16c)) return CpuLevel::portable;
  const uint64_t saved = saved_registers();
  constexpr uint64_t ymm = 0x06, zmm = 0xe6;  // SSE and AVX state; with the three of AVX-512
  if (!all(saved, ymm)) return CpuLevel::portable;

  __cpuid_count(7, 0, eax, ebx, ecx, edx);
  constexpr uint32_t bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;
  constexpr uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
  if (!all(ebx, bmi1 | avx2 | bmi2)) return CpuLevel::portable;
  if (!all(saved, zmm) || !all(ebx, f | dq | bw | vl)) return CpuLevel::avx2;
  if (eax < 1) return CpuLevel::avx512;  // the number of the last part of leaf 7

  __cpuid_count(7, 1, eax, ebx, ecx, edx);
  constexpr uint32_t bf16 = 1u << 5;
  return all(eax, bf16) ? CpuLevel::avx512_bf16 : CpuLevel::avx512;
}

#ifdef TAPER_HAS_ENVIRONMENT
constexpr struct {
  const char* name;
  CpuLevel level;
} levels[] = {{"portable", CpuLevel::portable},
              {"avx2", CpuLevel::avx2},
              {"avx512", CpuLevel::avx512},
              {"avx512_bf16", CpuLevel::avx512_bf16}};

// The level that TAPER_CPU names; the highest if it is not set. `unknown`: a word that is no name.
CpuLevel allowed_level(const char*& unknown) {
  const char* word = std::getenv("TAPER_CPU");
  unknown = nullptr;
  if (word == nullptr || *word == '\0') return CpuLevel::avx512_bf16;
  for (const auto& l : levels)
    if (std::strcmp(word, l.name) == 0) return l.level;
  unknown = word;
  return CpuLevel::portable;
}
#else
CpuLevel allowed_level(const char*& unknown) {
  unknown = nullptr;
  return CpuLevel::avx512_bf16;
}
#endif

}  // namespace

CpuLevels cpu_levels() {
  const char* unknown;
  const CpuLevels allowed = CpuLevels::up_to(allowed_level(unknown));
  return CpuLevels::up_to(highest_level()) & allowed;
}

const char* unknown_cpu_level() {
  const char* unknown;
  (void)allowed_level(unknown);
  return unknown;
}

}  // namespace taper

#else

namespace taper {

CpuLevels cpu_levels() { return {}; }
const char* unknown_cpu_level() { return nullptr; }

}  // namespace taper

#endif
