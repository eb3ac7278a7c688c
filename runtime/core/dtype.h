#pragma once
#include <cstdint>
#include <cstring>

namespace taper {

/// The type of a tensor's elements. Stored in programs: never change a value.
enum class DType : uint8_t {
  boolean = 0,
  u8 = 1,
  i8 = 2,
  i16 = 3,
  i32 = 4,
  i64 = 5,
  f16 = 6,
  bf16 = 7,
  f32 = 8,
  f64 = 9,
  c64 = 10,  ///< a complex number: its real part and its imaginary part in f32
  f8_e4m3fn =
      11,        ///< 8 bits without infinities (OCP 8-bit floating point); storage: see is_storage
  f8_e5m2 = 12,  ///< the upper half of an IEEE 754 binary16
  u16 = 13,
  u32 = 14,
  u64 = 15,
};
inline constexpr int dtype_count = 16;

constexpr bool is_valid(DType d) { return static_cast<uint8_t>(d) < dtype_count; }
constexpr int size_bytes(DType d) {
  constexpr uint8_t sizes[dtype_count] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 1, 1, 2, 4, 8};
  return is_valid(d) ? sizes[static_cast<uint8_t>(d)] : 0;
}
constexpr bool is_floating(DType d) { return d >= DType::f16 && d <= DType::f64; }
constexpr bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }
constexpr bool is_integral(DType d) { return d >= DType::u8 && d <= DType::i64; }
constexpr bool is_complex(DType d) { return d == DType::c64; }
/// A dtype without arithmetic: its elements are moved, and cast from and to other dtypes.
constexpr bool is_storage(DType d) { return d >= DType::f8_e4m3fn && d <= DType::u64; }

/// The name in messages and reports: "f32", "i64", "bool", ….
const char* name_of(DType d);

/// A set of dtypes, one bit each.
using DTypeSet = uint32_t;
constexpr DTypeSet one(DType d) { return DTypeSet{1} << static_cast<uint8_t>(d); }

/// IEEE 754 binary16, as storage: arithmetic is done in float.
struct Half {
  uint16_t bits;
  Half() = default;
  explicit Half(float value);
  operator float() const;
};

/// The upper half of an IEEE 754 binary32, as storage: arithmetic is done in float.
struct BFloat16 {
  uint16_t bits;
  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t u;
    std::memcpy(&u, &value, 4);
    const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (u >> 16) | 0x40u
                                     : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);  // to nearest even
  }
  operator float() const {
    const uint32_t u = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &u, 4);
    return value;
  }
};

struct Complex64 {
  float real, imag;
};

/// An element of n bytes, for kernels that only move data.
template <int n>
struct Bytes {
  unsigned char byte[n];
};

/// The dtype of a C++ type, and the dtypes that a kernel over this type accepts. For `Bytes<n>`:
/// all dtypes of that size.
template <class T>
struct dtypes_of;
#define TAPER_DTYPE(type, dtype_)                       \
  template <>                                           \
  struct dtypes_of<type> {                              \
    static constexpr DType dtype = DType::dtype_;       \
    static constexpr DTypeSet set = one(DType::dtype_); \
  };
TAPER_DTYPE(bool, boolean)
TAPER_DTYPE(uint8_t, u8)
TAPER_DTYPE(int8_t, i8)
TAPER_DTYPE(int16_t, i16)
TAPER_DTYPE(int32_t, i32)
TAPER_DTYPE(int64_t, i64)
TAPER_DTYPE(Half, f16)
TAPER_DTYPE(BFloat16, bf16)
TAPER_DTYPE(float, f32)
TAPER_DTYPE(double, f64)
TAPER_DTYPE(Complex64, c64)
TAPER_DTYPE(uint16_t, u16)
TAPER_DTYPE(uint32_t, u32)
TAPER_DTYPE(uint64_t, u64)
#undef TAPER_DTYPE
template <int n>
struct dtypes_of<Bytes<n>> {
  static constexpr DTypeSet set = [] {
    DTypeSet all = 0;
    for (int i = 0; i < dtype_count; ++i)
      if (const DType d = static_cast<DType>(i); size_bytes(d) == n) all |= one(d);
    return all;
  }();
};

}  // namespace taper
