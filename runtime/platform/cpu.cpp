#include "taper/runtime/platform/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

namespace taper {

#if defined(__x86_64__) && defined(__GNUC__)

namespace {

constexpr bool all(uint64_t set, uint64_t bits) { return (set & bits) == bits; }

// Which registers the operating system saves at a context switch (XCR0).
uint64_t saved_registers() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

}  // namespace

// Bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID.
bool cpu_has(CpuLevel level) {
  if (level == CpuLevel::portable) return true;

  uint32_t eax, ebx, ecx, edx;
  if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return false;
  constexpr uint32_t pclmul = 1u << 1, fma = 1u << 12, aes = 1u << 25, osxsave = 1u << 27,
                     avx = 1u << 28, f16c = 1u << 29;
  if (!all(ecx, pclmul | fma | aes | osxsave | avx | f16c)) return false;
  constexpr uint64_t ymm = 0x06, zmm = 0xe6;  // SSE and AVX state; with the three of AVX-512
  if (!all(saved_registers(), level == CpuLevel::avx512 ? zmm : ymm)) return false;

  if (!__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) return false;
  constexpr uint32_t bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;
  constexpr uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
  return all(ebx, bmi1 | avx2 | bmi2) && (level != CpuLevel::avx512 || all(ebx, f | dq | bw | vl));
}

#else

bool cpu_has(CpuLevel level) { return level == CpuLevel::portable; }

#endif

}  // namespace taper
