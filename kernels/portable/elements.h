// Element types that stand for several dtypes, so that one kernel body serves them all.
//
// Arithmetic exists for three types: float, double and int64_t. A kernel's loop converts the other
// dtypes block by block on their way in and out (walk.h). f16 and bf16 are computed in float. bool,
// u8, i8, i16 and i32 are computed in int64_t and wrap to their width when they are stored, which
// is two's complement arithmetic of that width.
#pragma once
#include <cstdint>
#include <type_traits>

#include "taper/kernels/portable/walk.h"
#include "taper/runtime/core/dtype.h"

namespace taper {

namespace portable {
struct SmallFloat {};    ///< f16, bf16
struct SmallInteger {};  ///< bool, u8, i8, i16, i32
struct NarrowNumber {};  ///< the same without bool
struct AnyElement {};    ///< every dtype; the kernel looks at `view.dtype()`
}  // namespace portable

template <>
struct dtypes_of<portable::SmallFloat> {
  static constexpr DTypeSet set = one(DType::f16) | one(DType::bf16);
};
template <>
struct dtypes_of<portable::SmallInteger> {
  static constexpr DTypeSet set =
      one(DType::boolean) | one(DType::u8) | one(DType::i8) | one(DType::i16) | one(DType::i32);
};
template <>
struct dtypes_of<portable::NarrowNumber> {
  static constexpr DTypeSet set =
      one(DType::u8) | one(DType::i8) | one(DType::i16) | one(DType::i32);
};
template <>
struct dtypes_of<portable::AnyElement> {
  static constexpr DTypeSet set = (DTypeSet{1} << dtype_count) - 1;
};

namespace portable {

/// The type in which a kernel computes on elements of `E`: float, double or int64_t. bool and bytes
/// stay as they are.
template <class E>
struct compute_of {
  using type = E;
};
template <>
struct compute_of<SmallFloat> {
  using type = float;
};
template <>
struct compute_of<SmallInteger> {
  using type = int64_t;
};
template <>
struct compute_of<NarrowNumber> {
  using type = int64_t;
};
template <class E>
using Compute = typename compute_of<E>::type;

/// Integer arithmetic wraps around, even where overflow of a signed type is undefined in C++.
template <class T>
constexpr T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class T>
constexpr T wrapping_sub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  else
    return a - b;
}
template <class T>
constexpr T wrapping_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}
template <class T>
constexpr T wrapping_neg(T a) {
  if constexpr (std::is_integral_v<T>)
    return wrapping_sub(T{0}, a);
  else
    return -a;  // 0 - a would lose the sign of zero
}

/// How a kernel's driver calls the functions that hold its loops. This one calls them as they are.
/// kernels/optimized/wide.h has others, for functions compiled for wider vectors.
struct PlainLoops {
  template <auto f, class... A>
  static auto call(A&&... a) {
    return f(static_cast<A&&>(a)...);
  }
  static Load loader(DType from, DType to) { return portable::loader(from, to); }
  static Store storer(DType from, DType to) { return portable::storer(from, to); }
};

}  // namespace portable
}  // namespace taper

/// Says that the iterations of a loop are independent: the output lies exactly on an input, or
/// overlaps none.
#if defined(__clang__)
#define TAPER_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define TAPER_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

/// Stands before a short loop over lanes whose count is a compile-time constant. Without it, gcc
/// unrolls the loop into single elements before it looks for vectors.
#if defined(__clang__)
#define TAPER_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define TAPER_LANES _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

/// Stands before an outer loop of a few rounds. Unrolled, its inner loop has a compile-time count.
#define TAPER_UNROLLED _Pragma("GCC unroll 8")
