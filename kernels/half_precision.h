// How an operator treats f16 and bf16 where no kernel takes them. Device code.
#pragma once
#include <cstdint>
#include <type_traits>

#include "taper/kernels/rule.h"

namespace taper {

enum class HalfPrecision : uint8_t {
  widen,   ///< the call is computed in f32 between two casts: right where it rounds once
  refuse,  ///< there is no such call: a number in f32 has other properties than the half that is
           ///< meant, as in nextafter
};

/// The policy of an operator. Its rule says `static constexpr HalfPrecision halves =
/// HalfPrecision::refuse` beside `promotion`; without that it is `widen`.
template <const Operator& op, class = void>
inline constexpr HalfPrecision half_precision = HalfPrecision::widen;
template <const Operator& op>
inline constexpr HalfPrecision half_precision<op, std::void_t<decltype(Rule<op>::halves)>> =
    Rule<op>::halves;

}  // namespace taper
