#include "taper/runtime/platform/cpu.h"

#include "taper/runtime/platform/cpu_request.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif
#if defined(__unix__) || defined(__APPLE__)
#include <cstdlib>
#include <string_view>
#define TAPER_HAS_ENVIRONMENT
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace taper {
namespace {

#if defined(__x86_64__) && defined(__GNUC__)
constexpr bool all(uint64_t set, uint64_t bits) { return (set & bits) == bits; }

// Which registers the operating system saves at a context switch (XCR0).
uint64_t saved_registers() {
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

// Bits: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, CPUID.
CpuFeatures features_of_machine() {
  uint32_t eax, ebx, ecx, edx;
  __cpuid(0, eax, ebx, ecx, edx);
  if (eax < 7) return {};  // the number of the last leaf

  __cpuid(1, eax, ebx, ecx, edx);
  constexpr uint32_t pclmul = 1u << 1, fma = 1u << 12, aes = 1u << 25, osxsave = 1u << 27,
                     avx = 1u << 28, f16c = 1u << 29;
  if (!all(ecx, pclmul | fma | aes | osxsave | avx | f16c)) return {};
  const uint64_t saved = saved_registers();
  // SSE and AVX state; with the three of AVX-512; the two of tiles
  constexpr uint64_t ymm = 0x06, zmm = 0xe6, tiles = 0x60000;
  if (!all(saved, ymm)) return {};

  __cpuid_count(7, 0, eax, ebx, ecx, edx);
  const uint32_t ebx7 = ebx, ecx7 = ecx, edx7 = edx;
  constexpr uint32_t bmi1 = 1u << 3, avx2 = 1u << 5, bmi2 = 1u << 8;
  if (!all(ebx7, bmi1 | avx2 | bmi2)) return {};
  uint32_t eax71 = 0;
  if (eax >= 1) __cpuid_count(7, 1, eax71, ebx, ecx, edx);  // eax: the last part of leaf 7

  CpuFeatures found = CpuFeature::avx2;
  const auto add = [&found](bool present, CpuFeature feature) {
    if (present) found = found | feature;
  };
  add(all(eax71, 1u << 4), CpuFeature::avx_vnni);
  constexpr uint32_t f = 1u << 16, dq = 1u << 17, bw = 1u << 30, vl = 1u << 31;
  if (!all(saved, zmm) || !all(ebx7, f | dq | bw | vl)) return found;
  add(true, CpuFeature::avx512);
  add(all(ecx7, 1u << 11), CpuFeature::avx512_vnni);
  add(all(eax71, 1u << 5), CpuFeature::avx512_bf16);
  add(all(edx7, 1u << 23), CpuFeature::avx512_fp16);
  constexpr uint32_t amx_tile = 1u << 24;
  if (!all(edx7, amx_tile) || !all(saved, tiles)) return found;
  add(all(edx7, 1u << 25), CpuFeature::amx_int8);
  add(all(edx7, 1u << 22), CpuFeature::amx_bf16);
  return found;
}

#elif defined(__aarch64__) && defined(__linux__)
// Bits: Linux, Documentation/arch/arm64/elf_hwcaps.rst.
CpuFeatures features_of_machine() {
  const unsigned long first = getauxval(AT_HWCAP), second = getauxval(AT_HWCAP2);
  CpuFeatures found;
  if ((first >> 20 & 1) != 0) found = found | CpuFeature::dotprod;
  if ((second >> 13 & 1) != 0) found = found | CpuFeature::i8mm;
  if ((second >> 14 & 1) != 0) found = found | CpuFeature::bf16;
  return found;
}

#elif defined(__aarch64__) && defined(__APPLE__)
bool has(const char* name) {
  int value = 0;
  size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}
CpuFeatures features_of_machine() {
  CpuFeatures found;
  if (has("hw.optional.arm.FEAT_DotProd")) found = found | CpuFeature::dotprod;
  if (has("hw.optional.arm.FEAT_I8MM")) found = found | CpuFeature::i8mm;
  if (has("hw.optional.arm.FEAT_BF16")) found = found | CpuFeature::bf16;
  return found;
}

#else
CpuFeatures features_of_machine() { return {}; }
#endif

constexpr CpuFeatures of_tiles{CpuFeature::amx_int8, CpuFeature::amx_bf16};

// Linux grants the data of tiles to a process on request (Documentation/arch/x86/xstate.rst).
#if defined(__x86_64__) && defined(__linux__)
constexpr long data_of_tiles = 18;
void request_tiles() {
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  (void)syscall(SYS_arch_prctl, request_permission, data_of_tiles);
}
bool may_use_tiles() {
  constexpr long get_permission = 0x1022;  // ARCH_GET_XCOMP_PERM
  uint64_t granted = 0;
  return syscall(SYS_arch_prctl, get_permission, &granted) == 0 &&
         (granted >> data_of_tiles & 1) != 0;
}
#else
void request_tiles() {}
bool may_use_tiles() { return false; }
#endif

constexpr CpuFeatures every_feature() {
  CpuFeatures all;
  for (int i = 0; i < cpu_feature_count; ++i) all = all | static_cast<CpuFeature>(i);
  return all;
}
constexpr CpuFeatures without_tiles() {
  CpuFeatures others;
  for (int i = 0; i < cpu_feature_count; ++i)
    if (!of_tiles.has(static_cast<CpuFeature>(i))) others = others | static_cast<CpuFeature>(i);
  return others;
}

// The features that TAPER_CPU allows: all if it is not set. `unknown`: its value, if a word in it
// is no name.
CpuFeatures allowed_features(const char*& unknown) {
  unknown = nullptr;
#ifdef TAPER_HAS_ENVIRONMENT
  const char* value = std::getenv("TAPER_CPU");
  if (value == nullptr || *value == '\0') return every_feature();
  CpuFeatures allowed;
  const std::string_view words(value);
  for (size_t begin = 0; begin <= words.size();) {
    size_t end = begin;
    while (end < words.size() && words[end] != ',') ++end;
    const std::string_view word(value + begin, end - begin);
    begin = end + 1;
    if (word == "portable") continue;
    int i = 0;
    while (i < cpu_feature_count && word != name_of(static_cast<CpuFeature>(i))) ++i;
    if (i == cpu_feature_count) return unknown = value, CpuFeatures();
    allowed = allowed | with_implied(static_cast<CpuFeature>(i));
  }
  return allowed;
#else
  return every_feature();
#endif
}

CpuFeatures features(bool requests) {
  const char* unknown;
  const CpuFeatures allowed = allowed_features(unknown);
  const CpuFeatures found = features_of_machine() & allowed;
  if ((found & of_tiles) == CpuFeatures()) return found;
  if (requests) request_tiles();
  return may_use_tiles() ? found : found & without_tiles();
}

}  // namespace

CpuFeatures cpu_features() { return features(false); }
CpuFeatures request_cpu_features() { return features(true); }

const char* unknown_cpu_features() {
  const char* unknown;
  (void)allowed_features(unknown);
  return unknown;
}

}  // namespace taper
