// The features of a processor beyond the compiler's baseline. Device code.
#pragma once
#include <cstdint>

namespace taper {

/// An extension of the instruction set that kernels are written for.
enum class CpuFeature : uint8_t {
  avx2,         ///< x86-64: AVX2 with FMA, F16C, BMI1 and BMI2
  avx512,       ///< AVX-512 F, VL, DQ and BW
  avx512_vnni,  ///< sums of products of bytes, in AVX-512
  avx512_bf16,
  avx512_fp16,
  avx_vnni,  ///< sums of products of bytes, in AVX
  amx_int8,  ///< tiles; on Linux a process must have asked for them (ARCH_REQ_XCOMP_PERM)
  amx_bf16,
  dotprod,  ///< AArch64: sums of products of bytes
  i8mm,     ///< products of matrices of bytes
  bf16,
};
inline constexpr int cpu_feature_count = 11;

/// A set of features. The empty set is the compiler's baseline, which every machine has.
class CpuFeatures {
 public:
  constexpr CpuFeatures() = default;
  template <class... Rest>
  constexpr CpuFeatures(CpuFeature first, Rest... rest)
      : bits_(static_cast<uint16_t>((1u << static_cast<unsigned>(first)) |
                                    CpuFeatures(rest...).bits_)) {}

  /// Whether all of `wanted` are in the set.
  constexpr bool has(CpuFeatures wanted) const { return (bits_ & wanted.bits_) == wanted.bits_; }
  constexpr CpuFeatures operator&(CpuFeatures b) const { return of(bits_ & b.bits_); }
  constexpr CpuFeatures operator|(CpuFeatures b) const { return of(bits_ | b.bits_); }
  constexpr bool operator==(CpuFeatures b) const { return bits_ == b.bits_; }
  constexpr bool operator!=(CpuFeatures b) const { return bits_ != b.bits_; }

 private:
  static constexpr CpuFeatures of(int bits) {
    CpuFeatures set;
    set.bits_ = static_cast<uint16_t>(bits);
    return set;
  }
  uint16_t bits_ = 0;
};

namespace internal {
inline constexpr char cpu_feature_names[cpu_feature_count][12] = {
    "avx2",     "avx512",   "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni",
    "amx_int8", "amx_bf16", "dotprod",     "i8mm",        "bf16"};
}
/// "avx512_vnni"
constexpr const char* name_of(CpuFeature feature) {
  return internal::cpu_feature_names[static_cast<int>(feature)];
}

/// A feature, with the features that every processor with it has, too.
constexpr CpuFeatures with_implied(CpuFeature feature) {
  switch (feature) {
    case CpuFeature::avx512:
    case CpuFeature::avx_vnni:
      return {feature, CpuFeature::avx2};
    case CpuFeature::avx512_vnni:
    case CpuFeature::avx512_bf16:
    case CpuFeature::avx512_fp16:
    case CpuFeature::amx_int8:
    case CpuFeature::amx_bf16:
      return {feature, CpuFeature::avx512, CpuFeature::avx2};
    default:
      return feature;
  }
}

/// The features of this machine that its operating system supports. Asks the processor on every
/// call, and a virtual machine may take 100 microseconds to answer. So ask once and keep the set.
///
/// On Linux, macOS and BSD the environment variable TAPER_CPU limits the set to the features that
/// it names, separated by commas, and those that they imply: `avx2`, `avx2,avx_vnni`, or `portable`
/// for none. If it contains any other word, the set is empty.
CpuFeatures cpu_features();

/// The value of TAPER_CPU if it contains a word that names no feature, for a message to the user;
/// else nullptr.
const char* unknown_cpu_features();

}  // namespace taper
