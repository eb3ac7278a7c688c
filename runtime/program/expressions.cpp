#include "taper/runtime/program/expressions.h"

#include <cmath>

#include "taper/schema/program_generated.h"

namespace taper::internal {
namespace {

using format::Operation;

bool floor_divide(int64_t a, int64_t b, int64_t& result) {
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  result = a / b;
  if (a % b != 0 && (a < 0) != (b < 0)) --result;
  return true;
}

bool modulo(int64_t a, int64_t b, int64_t& result) {
  if (b == 0) return false;
  if (b == -1) return result = 0, true;  // INT64_MIN % -1 traps
  result = a % b;
  if (result != 0 && (result < 0) != (b < 0)) result += b;
  return true;
}

bool power(int64_t base, int64_t exponent, int64_t& result) {
  if (exponent < 0) return false;
  result = 1;
  for (;;) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return false;
    if ((exponent >>= 1) == 0) return true;
    if (__builtin_mul_overflow(base, base, &base)) return false;
  }
}

bool to_integer(double d, int64_t& result) {
  // 2^63 itself is not an i64; NaN fails both comparisons
  if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0)) return false;
  result = static_cast<int64_t>(d);
  return true;
}

bool integer(Operation op, int64_t a, int64_t b, int64_t& r) {
  switch (op) {
    case Operation::add:
      return !__builtin_add_overflow(a, b, &r);
    case Operation::subtract:
      return !__builtin_sub_overflow(a, b, &r);
    case Operation::multiply:
      return !__builtin_mul_overflow(a, b, &r);
    case Operation::floor_divide:
      return floor_divide(a, b, r);
    case Operation::modulo:
      return modulo(a, b, r);
    case Operation::minimum:
      return r = a < b ? a : b, true;
    case Operation::maximum:
      return r = a > b ? a : b, true;
    case Operation::negate:
      return !__builtin_sub_overflow(int64_t{0}, a, &r);
    case Operation::absolute:
      return a >= 0 ? (r = a, true) : !__builtin_sub_overflow(int64_t{0}, a, &r);
    case Operation::power:
      return power(a, b, r);
    default:
      return false;
  }
}

bool real(Operation op, double a, double b, double& r) {
  switch (op) {
    case Operation::add:
      return r = a + b, true;
    case Operation::subtract:
      return r = a - b, true;
    case Operation::multiply:
      return r = a * b, true;
    case Operation::true_divide:
      return r = a / b, b != 0;
    case Operation::floor_divide:
      return r = std::floor(a / b), b != 0;
    case Operation::modulo:
      return r = a - std::floor(a / b) * b, b != 0;
    case Operation::minimum:
      return r = a < b ? a : b, true;
    case Operation::maximum:
      return r = a > b ? a : b, true;
    case Operation::negate:
      return r = -a, true;
    case Operation::absolute:
      return r = std::fabs(a), true;
    case Operation::power:
      return r = std::pow(a, b), true;
    case Operation::square_root:
      return r = std::sqrt(a), true;
    default:
      return false;
  }
}

}  // namespace

bool evaluate(const format::Expression* expressions, size_t i, const int64_t* symbols,
              const int64_t* values, int64_t& result) {
  const format::Expression& e = expressions[i];
  const Operation op = e.operation();
  if (op == Operation::literal) return result = e.literal(), true;
  if (op == Operation::symbol) return result = symbols[e.a()], true;

  const int64_t a = values[e.a()], b = values[e.b()];
  const bool reals = expressions[e.a()].type() == format::NumberType::f64;
  switch (op) {
    case Operation::floor:
      return to_integer(std::floor(real_of(a)), result);
    case Operation::ceil:
      return to_integer(std::ceil(real_of(a)), result);
    case Operation::round:
      return to_integer(std::nearbyint(real_of(a)), result);
    case Operation::truncate:
      return to_integer(std::trunc(real_of(a)), result);
    case Operation::to_f64:
      return result = bits_of(static_cast<double>(a)), true;
    case Operation::to_i64:
      return result = a, true;
    case Operation::equal:
      return result = reals ? real_of(a) == real_of(b) : a == b, true;
    case Operation::not_equal:
      return result = reals ? real_of(a) != real_of(b) : a != b, true;
    case Operation::less:
      return result = reals ? real_of(a) < real_of(b) : a < b, true;
    case Operation::less_equal:
      return result = reals ? real_of(a) <= real_of(b) : a <= b, true;
    case Operation::logical_and:
      return result = a & b, true;
    case Operation::logical_or:
      return result = a | b, true;
    case Operation::logical_not:
      return result = 1 - a, true;
    case Operation::select:
      return result = a != 0 ? b : values[e.c()], true;
    default:
      break;
  }
  if (!reals) return integer(op, a, b, result);
  double r = 0;
  if (!real(op, real_of(a), real_of(b), r)) return false;
  result = bits_of(r);
  return true;
}

}  // namespace taper::internal
