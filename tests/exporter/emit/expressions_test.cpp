// Formulas and checks over sizes: the runtime finds the values that C++ finds, at every size.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "taper/exporter/emit/emit.h"
#include "taper/exporter/ir/parser.h"
#include "taper/exporter/ir/verifier.h"
#include "taper/tests/support/execute.h"

namespace taper::emit {
namespace {

using eager::Tensor;

constexpr int64_t most = 7;

/// A program that takes a and b elements, with `lines` behind its inputs.
std::vector<std::byte> program(const std::string& lines) {
  const auto graph = ir::parse(
      "graph forward\nsymbol a in [1, 7]\nsymbol b in [1, 7]\ninput \"x\" = %x: f32[a]\ninput "
      "\"y\" = %y: f32[b]\noutput \"x\" = %x\n" +
      lines);
  ir::verify(*graph);
  EmitOptions options;
  Report report;
  return write({{"forward", graph.get()}}, options, report);
}
const std::string bindings = "bind a = extent 0 of input 0\nbind b = extent 0 of input 1\n";

std::vector<Tensor> run(const std::vector<std::byte>& file, int64_t a, int64_t b) {
  return tests::execute(file, {Tensor::empty({a}).zero_(), Tensor::empty({b}).zero_()});
}

TEST(expressions, are_computed_as_in_cpp_at_every_size) {
  const auto floor_of = [](int64_t a, int64_t b) { return (a - (a % b + b) % b) / b; };
  struct Formula {
    const char* text;
    std::function<int64_t(int64_t a, int64_t b)> value;
  };
  const Formula formulas[] = {
      {"a + b", [](auto a, auto b) { return a + b; }},
      {"a - b", [](auto a, auto b) { return a - b; }},
      {"a*b*3 - 5", [](auto a, auto b) { return a * b * 3 - 5; }},
      {"a // b", [](auto a, auto b) { return a / b; }},
      {"(a - b) // 3", [&](auto a, auto b) { return floor_of(a - b, 3); }},
      {"a % b", [](auto a, auto b) { return a % b; }},
      {"(a - b) % 3", [&](auto a, auto b) { return a - b - 3 * floor_of(a - b, 3); }},
      {"min(a, b)", [](auto a, auto b) { return std::min(a, b); }},
      {"max(a, b*2)", [](auto a, auto b) { return std::max(a, b * 2); }},
  };
  std::string lines;
  for (const Formula& f : formulas)
    lines += std::string("output \"") + f.text + "\" = " + f.text + "\n";
  const auto file = program(lines + bindings);
  for (int64_t a = 1; a <= most; ++a)
    for (int64_t b = 1; b <= most; ++b) {
      const std::vector<Tensor> outputs = run(file, a, b);
      for (size_t i = 0; i < std::size(formulas); ++i)
        EXPECT_EQ(outputs.at(i + 1).item<int64_t>(), formulas[i].value(a, b))
            << formulas[i].text << " at " << a << ", " << b;
    }
}

// By the check itself, or by the range that it leaves of a symbol.
TEST(checks, refuse_exactly_the_sizes_that_they_name) {
  struct Comparison {
    const char* sign;
    std::function<bool(int64_t a, int64_t b)> holds;
  };
  const Comparison comparisons[] = {
      {"==", std::equal_to<>()},
      {"!=", std::not_equal_to<>()},
      {"<", std::less<>()},
      {"<=", std::less_equal<>()},
  };
  for (const Comparison& c : comparisons) {
    const auto file = program(bindings + "check a " + c.sign + " b*2 - 3 \"a and b do not fit\"\n");
    for (int64_t a = 1; a <= most; ++a)
      for (int64_t b = 1; b <= most; ++b) {
        SCOPED_TRACE(std::to_string(a) + " " + c.sign + " " + std::to_string(b) + "*2 - 3");
        if (c.holds(a, b * 2 - 3))
          EXPECT_NO_THROW(run(file, a, b));
        else
          EXPECT_THROW(run(file, a, b), ExportError);
      }
  }
}

}  // namespace
}  // namespace taper::emit
