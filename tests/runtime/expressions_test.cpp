#include "taper/runtime/program/expressions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "taper/schema/program_generated.h"

namespace taper::internal {
namespace {

using format::NumberType;
using format::Operation;

constexpr int64_t lowest = std::numeric_limits<int64_t>::min(),
                  highest = std::numeric_limits<int64_t>::max();

struct Outcome {
  bool ok;
  int64_t value;
  bool operator==(const Outcome& o) const { return ok == o.ok && (!ok || value == o.value); }
};

Outcome apply(Operation op, NumberType operands, NumberType result, int64_t a, int64_t b = 0) {
  const format::Expression nodes[] = {{a, 0, 0, 0, Operation::literal, operands},
                                      {b, 0, 0, 0, Operation::literal, operands},
                                      {0, 0, 1, 0, op, result}};
  int64_t values[3] = {};
  for (size_t i = 0; i < 3; ++i)
    if (!evaluate(nodes, i, nullptr, values, values[i])) return {false, 0};
  return {true, values[2]};
}
Outcome integers(Operation op, int64_t a, int64_t b = 0) {
  return apply(op, NumberType::i64, NumberType::i64, a, b);
}
Outcome reals(Operation op, double a, double b = 0) {
  return apply(op, NumberType::f64, NumberType::f64, bits_of(a), bits_of(b));
}
const Outcome refused{false, 0};
Outcome is(int64_t v) { return {true, v}; }
Outcome is(double v) { return {true, bits_of(v)}; }

TEST(expressions, compute_integers_and_refuse_overflow) {
  EXPECT_EQ(integers(Operation::add, 2, 3), is(int64_t{5}));
  EXPECT_EQ(integers(Operation::add, highest, 1), refused);
  EXPECT_EQ(integers(Operation::subtract, lowest, 1), refused);
  EXPECT_EQ(integers(Operation::multiply, int64_t{1} << 32, int64_t{1} << 31), refused);
  EXPECT_EQ(integers(Operation::negate, lowest), refused);
  EXPECT_EQ(integers(Operation::absolute, -4), is(int64_t{4}));
  EXPECT_EQ(integers(Operation::absolute, lowest), refused);
  EXPECT_EQ(integers(Operation::power, -3, 3), is(int64_t{-27}));
  EXPECT_EQ(integers(Operation::power, 7, 0), is(int64_t{1}));
  EXPECT_EQ(integers(Operation::power, 2, 63), refused);
  EXPECT_EQ(integers(Operation::power, 2, -1), refused);
}

TEST(expressions, divide_as_python_does) {
  EXPECT_EQ(integers(Operation::floor_divide, -7, 2), is(int64_t{-4}));
  EXPECT_EQ(integers(Operation::modulo, -7, 2), is(int64_t{1}));
  EXPECT_EQ(integers(Operation::floor_divide, 7, -2), is(int64_t{-4}));
  EXPECT_EQ(integers(Operation::modulo, 7, -2), is(int64_t{-1}));
  EXPECT_EQ(integers(Operation::floor_divide, 1, 0), refused);
  EXPECT_EQ(integers(Operation::modulo, 1, 0), refused);
  EXPECT_EQ(integers(Operation::floor_divide, lowest, -1), refused);
  EXPECT_EQ(integers(Operation::modulo, lowest, -1), is(int64_t{0}));
  EXPECT_EQ(reals(Operation::floor_divide, -7, 2), is(-4.0));
  EXPECT_EQ(reals(Operation::modulo, -7, 2), is(1.0));
  EXPECT_EQ(reals(Operation::true_divide, 1, 4), is(0.25));
  EXPECT_EQ(reals(Operation::true_divide, 1, 0), refused);
}

TEST(expressions, convert_and_refuse_what_is_no_integer) {
  const auto to_integer = [](Operation op, double v) {
    return apply(op, NumberType::f64, NumberType::i64, bits_of(v));
  };
  EXPECT_EQ(to_integer(Operation::floor, -1.5), is(int64_t{-2}));
  EXPECT_EQ(to_integer(Operation::ceil, -1.5), is(int64_t{-1}));
  EXPECT_EQ(to_integer(Operation::truncate, -1.5), is(int64_t{-1}));
  EXPECT_EQ(to_integer(Operation::round, 2.5), is(int64_t{2}));
  EXPECT_EQ(to_integer(Operation::floor, NAN), refused);
  EXPECT_EQ(to_integer(Operation::floor, 9223372036854775808.0), refused);
  EXPECT_EQ(to_integer(Operation::floor, -9223372036854775808.0), is(lowest));
  EXPECT_EQ(apply(Operation::to_f64, NumberType::i64, NumberType::f64, 3), is(3.0));
  EXPECT_EQ(reals(Operation::square_root, 9), is(3.0));
}

TEST(expressions, compare_by_the_type_of_their_operands) {
  const auto compare = [](Operation op, NumberType t, int64_t a, int64_t b) {
    return apply(op, t, NumberType::boolean, a, b);
  };
  EXPECT_EQ(compare(Operation::less, NumberType::i64, -1, 1), is(int64_t{1}));
  EXPECT_EQ(compare(Operation::less, NumberType::f64, bits_of(-1.0), bits_of(1.0)), is(int64_t{1}));
  EXPECT_EQ(compare(Operation::equal, NumberType::f64, bits_of(0.0), bits_of(-0.0)),
            is(int64_t{1}));
  EXPECT_EQ(compare(Operation::equal, NumberType::f64, bits_of(NAN), bits_of(NAN)), is(int64_t{0}));
  EXPECT_EQ(compare(Operation::not_equal, NumberType::i64, 1, 2), is(int64_t{1}));
  EXPECT_EQ(compare(Operation::logical_not, NumberType::boolean, 1, 0), is(int64_t{0}));
}

}  // namespace
}  // namespace taper::internal
