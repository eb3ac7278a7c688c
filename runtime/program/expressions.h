// The arithmetic of symbolic numbers: sizes, strides, offsets, conditions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace taper::format {
struct Expression;
}

namespace taper::internal {

/// A number of an expression: an i64, a boolean (0, 1), or the bits of an f64.
inline double real_of(int64_t bits) {
  double d;
  std::memcpy(&d, &bits, sizeof d);
  return d;
}
inline int64_t bits_of(double d) {
  int64_t bits;
  std::memcpy(&bits, &d, sizeof d);
  return bits;
}

/// Evaluates node `i`; its operands have been evaluated before. `values` holds one number for each
/// expression, `symbols` one for each symbol. The nodes have been verified. Returns false if the
/// result is not an i64, a divisor is zero, or an exponent is negative.
bool evaluate(const format::Expression* expressions, size_t i, const int64_t* symbols,
              const int64_t* values, int64_t& result);

}  // namespace taper::internal
