#include "taper/exporter/dim/dim.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "taper/exporter/base/error.h"

namespace taper {
namespace {

constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

TEST(dim, computes_numbers_as_integers_do) {
  EXPECT_EQ((Dim(7) / 2).value(), 3);
  EXPECT_EQ((Dim(-7) / 2).value(), -4);
  EXPECT_EQ((Dim(-7) % 2).value(), 1);
  EXPECT_EQ(Dim().value(), 0);
}

TEST(dim, brings_equal_formulas_to_one_object) {
  const Dim n = Dim::symbol("n", 1, 64), h = Dim::symbol("h", 1);
  EXPECT_TRUE(same(n * 16 * 25, n * 400));
  EXPECT_TRUE(same(n * 400 / 400, n));
  EXPECT_TRUE(same((n * h + h) / (n + 1), h));
  EXPECT_TRUE(same((n + h) * (n - h), n * n - h * h));
  EXPECT_TRUE(same(n * h * 12 / (h * 3), n * 4));
  EXPECT_TRUE(same((h + 7) / 2, (h + 1) / 2 + 3));
  EXPECT_TRUE(same((h * 4 + 2) / 6, (h * 2 + 1) / 3));
  EXPECT_TRUE(same(h / 2 / 3, h / 6));
  EXPECT_TRUE(same(max(n, h), max(h, n)));
  EXPECT_TRUE(same(n * 8 % 4, Dim(0)));
  EXPECT_FALSE(same(Dim::symbol("n"), Dim::symbol("n")));
}

TEST(dim, refuses_symbols_without_name_or_value_at_the_line_that_makes_them) {
  const auto refusal = [](const char* name, int64_t minimum, int64_t maximum) -> std::string {
    try {
      Dim::symbol(name, minimum, maximum);
    } catch (const EagerError& e) {
      const std::string text = e.what();
      EXPECT_TRUE(text.starts_with("dim_test.cpp:"));
      return text.substr(text.find(": ") + 2);
    }
    return "nothing";
  };
  EXPECT_EQ(refusal("", 0, 8), "Dim::symbol: the name must not be empty");
  EXPECT_EQ(refusal("n", 8, 1), "Dim::symbol: n has no value, its range is [8, 1]");
}

TEST(dim, knows_the_range_of_an_expression) {
  const Dim n = Dim::symbol("n", 1, 64);
  EXPECT_EQ((n * 3 - 1).lower(), 2);
  EXPECT_EQ((n * 3 - 1).upper(), 191);
  EXPECT_EQ((n / 2).upper(), 32);
  EXPECT_EQ((n % 5).upper(), 4);
  EXPECT_TRUE(same(n % 65, n));
  EXPECT_TRUE(same((n - 1) / 64, Dim(0)));
  EXPECT_TRUE(same(max(n, 0), n));
  EXPECT_EQ((Dim::symbol("m", 1) * n).upper(), no_limit);
}

TEST(dim, proves_order_by_the_difference) {
  const Dim n = Dim::symbol("n", 1);
  EXPECT_TRUE(proves_less(n, n + 1));
  EXPECT_TRUE(proves_at_least(n * 2, n));
  EXPECT_FALSE(proves_less(n, 5));
}

TEST(dim, prints_as_one_would_write_it) {
  const Dim batch = Dim::symbol("batch"), h = Dim::symbol("h");
  EXPECT_EQ((batch * 400).to_string(), "batch*400");
  EXPECT_EQ(((h + 5) / 2).to_string(), "(h + 1)//2 + 2");
  EXPECT_EQ(((h - 1) / 2 * batch).to_string(), "batch*((h + 1)//2) - batch");
  EXPECT_EQ((h * h - 3 * batch - 1).to_string(), "h*h - batch*3 - 1");
  EXPECT_EQ(min(h, batch + 1).to_string(), "min(h, batch + 1)");
}

TEST(dim, refuses_to_turn_a_symbol_into_a_number) {
  const Dim n = Dim::symbol("batch", 1, 256);
  EXPECT_THROW((n * 2).value(), SymbolicValueError);
  EXPECT_THROW(static_cast<void>(n == 1), SymbolicValueError);
  EXPECT_FALSE(n == 0);
  EXPECT_TRUE(n < 257);
  try {
    (n * 2).value();
  } catch (const SymbolicValueError& e) {
    EXPECT_STREQ(e.what(),
                 "the size batch*2 is symbolic and cannot become a number; keep it as a Dim, or "
                 "fix batch: with a number in the method's inputs, or for a .pt2 with --dim "
                 "NAME=NUMBER");
  }
}

TEST(dim, refuses_overflow_and_division_by_zero) {
  const Dim n = Dim::symbol("n");
  EXPECT_THROW(Dim(no_limit) + 1, ExportError);
  EXPECT_THROW(n * no_limit * 2, ExportError);
  EXPECT_THROW(n / 0, ExportError);
  EXPECT_THROW(n % 0, ExportError);
}

TEST(dim, refuses_values_that_its_formula_cannot_take) {
  const Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  EXPECT_EQ((n * 2).evaluate({{n.as_symbol(), 4}}), 8);
  EXPECT_THROW((n * 2).evaluate({{n.as_symbol(), no_limit}}), ExportError);
  EXPECT_THROW((n / m).evaluate({{n.as_symbol(), 4}, {m.as_symbol(), 0}}), ExportError);
}

/// The same random formula over numbers and over symbols.
template <class T>
T formula(std::mt19937& random, const std::vector<T>& symbols, int depth) {
  if (depth == 0)
    return random() % 3 == 0 ? T(int64_t(random() % 9) - 4) : symbols[random() % symbols.size()];
  const unsigned op = random() % 7;
  const T a = formula(random, symbols, depth - 1), b = formula(random, symbols, depth - 1);
  const T divisor = T(int64_t(1 + random() % 6));
  switch (op) {
    case 0:
    case 1:
      return a + b;
    case 2:
      return a - b;
    case 3:
      return a * b;
    case 4:
      return a / divisor;
    case 5:
      return a % divisor;
    default:
      if constexpr (std::is_same_v<T, Dim>)
        return max(min(a, b), divisor);
      else
        return std::max(std::min(a.value, b.value), divisor.value);
  }
}

TEST(dim, keeps_the_value_of_random_formulas_and_stays_in_their_range) {
  const std::vector<Dim> symbols{Dim::symbol("a", 0, 20), Dim::symbol("b", -5, 9),
                                 Dim::symbol("c", 1, 30)};
  for (unsigned seed = 0; seed < 4000; ++seed) {
    std::mt19937 values(seed + 1), for_numbers(seed), for_symbols(seed);
    const int64_t v[] = {int64_t(values() % 21), int64_t(values() % 15) - 5,
                         1 + int64_t(values() % 30)};
    const int depth = 1 + int(seed % 4);
    const int64_t expected = formula<Extent>(for_numbers, {v[0], v[1], v[2]}, depth).value;
    const Dim dim = formula<Dim>(for_symbols, symbols, depth);
    Dim::Bindings bindings;
    Dim::Substitution numbers;
    for (int i = 0; i < 3; ++i)
      bindings[symbols[i].as_symbol()] = v[i], numbers[symbols[i].as_symbol()] = v[i];
    ASSERT_EQ(dim.evaluate(bindings), expected) << dim;
    ASSERT_EQ(dim.substitute(numbers).value(), expected) << dim;
    ASSERT_LE(dim.lower(), expected) << dim;
    ASSERT_GE(dim.upper(), expected) << dim;
  }
}

TEST(facts, prove_record_or_refuse) {
  const Dim n = Dim::symbol("n", 1, 64);
  Facts<Dim> facts;
  EXPECT_TRUE(facts.equal(n * 4, n + n * 3, "never"));
  EXPECT_TRUE(facts.checks.empty());
  EXPECT_TRUE(facts.equal(n, 5, "sizes {} and {} differ"));
  EXPECT_TRUE(facts.equal(n, 5, "sizes {} and {} differ"));
  ASSERT_EQ(facts.checks.size(), 1u);
  EXPECT_EQ(facts.checks[0].message, "sizes n and 5 differ");
  EXPECT_FALSE(facts.failed);
  EXPECT_FALSE(facts.equal(n, 65, "sizes {} and {} differ"));
  EXPECT_TRUE(facts.failed);
  EXPECT_FALSE(facts.is_one(n));
}

}  // namespace
}  // namespace taper
