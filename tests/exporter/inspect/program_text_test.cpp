#include "taper/exporter/inspect/program_text.h"

#include <gtest/gtest.h>

#include "taper/tests/runtime/programs.h"

namespace taper::inspect {
namespace {

TEST(method_text, calls_a_size_without_a_name_by_its_place) {
  test::ProgramFile file = test::sums_program();
  const test::Loaded nameless(file);
  EXPECT_EQ(MethodText(nameless.program->value(), 0).type(0), "f32[x.0, 4]");
  file.methods[0].symbol_names = {"batch"};
  const test::Loaded named(file);
  const MethodText text(named.program->value(), 0);
  EXPECT_EQ(text.type(0), "f32[batch, 4]");
  EXPECT_EQ(text.symbol_place(*text.table().symbols()->Get(0)), "x.0");
}

TEST(method_text, says_what_a_number_is) {
  using Type = format::NumberType;
  EXPECT_STREQ(type_text(Type::i64), "integer");
  EXPECT_STREQ(type_text(Type::f64), "real");
  EXPECT_STREQ(type_text(Type::boolean), "bool");
}

}  // namespace
}  // namespace taper::inspect
