#include <gmock/gmock.h>

#include "fake_backend.h"
#include "programs.h"
#include "taper/examples/support/allocations.h"

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::StrEq;

// forward(x: f32[n, 2]) -> y = 3 (x + x); n is 1..4. A delegate computes it.
ProgramFile delegated_program() {
  ProgramFile p;
  p.delegates = {"fake"};
  p.blob = {std::byte{3}};
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 4));
  const uint32_t x = io_tensor(m, {n, m.literal(2)}), y = io_tensor(m, {n, m.literal(2)});
  m.delegate(0, {m.tensor(x), m.tensor(x), m.tensor(y)}, 1);
  m.input("x", x);
  m.output("y", y);
  p.sources = {{"model.cpp:10"}};
  return p;
}

// The same with n = 2 and a constant: y = 3 (x + c).
ProgramFile program_with_constant(std::vector<float> elements = {1, 2, 3, 4}) {
  ProgramFile p = delegated_program();
  const uint32_t c = p.constant<float>("c", {static_cast<int64_t>(elements.size())}, elements);
  MethodTables& m = p.methods[0];
  m.symbols.clear();
  m.expressions[0] = format::Expression(2, 0, 0, 0, Operation::literal, NumberType::i64);
  const uint32_t four = m.shape({m.literal(2), m.literal(2)});
  m.arguments[1] = m.tensor(m.value(Storage::constant, c, four));
  m.instructions[0] = format::Instruction(0, 0, 3, 1, 1, 0, InstructionKind::delegate);
  return p;
}

struct Delegated {
  explicit Delegated(const ProgramFile& p = delegated_program())
      : loaded(p.bytes(), options(backend, given)) {}

  static LoadOptions options(FakeBackend& backend, Backend* (&given)[1]) {
    given[0] = &backend;
    LoadOptions options;
    options.backends = given;
    return options;
  }
  std::vector<float> call(Method& method, std::vector<float> x) {
    const index_t sizes[] = {static_cast<index_t>(x.size()) / 2, 2};
    error = method.set_input(0, x.data(), sizes);
    if (error == Error::ok) error = method.execute();
    const TensorRef y = method.output(0);
    const float* begin = static_cast<const float*>(y.data);
    return error == Error::ok ? std::vector<float>(begin, begin + y.shape->numel())
                              : std::vector<float>();
  }

  FakeBackend backend;
  Backend* given[1];
  Loaded loaded;
  Error error = Error::ok;
};

TEST(delegate, runs_an_instruction_and_is_told_when_shapes_change) {
  Delegated d;
  Method method = d.loaded.method().value();
  EXPECT_EQ(d.backend.loaded, 1);
  EXPECT_THAT(d.call(method, {1, 2}), ElementsAre(6, 12));
  const int reshaped = d.backend.reshaped;
  EXPECT_THAT(d.call(method, {1, 3}), ElementsAre(6, 18));
  EXPECT_EQ(d.backend.reshaped, reshaped) << "the shape is the same";
  EXPECT_THAT(d.call(method, {1, 2, 3, 4}), ElementsAre(6, 12, 18, 24));
  EXPECT_EQ(d.backend.reshaped, reshaped + 1);
  EXPECT_THAT(method.instruction(0).op, StrEq("fake"));
  EXPECT_THAT(method.instruction(0).source, StrEq("model.cpp:10"));
}

TEST(delegate, reads_constants_when_it_is_created) {
  Delegated d(program_with_constant());
  Method method = d.loaded.method().value();
  EXPECT_THAT(d.call(method, {10, 20, 30, 40}), ElementsAre(33, 66, 99, 132));
}

TEST(delegate, takes_a_constant_as_an_operand) {
  ProgramFile p = program_with_constant();
  p.methods[0].instructions[0] = format::Instruction(0, 0, 3, 1, 0, 0, InstructionKind::delegate);
  Delegated d(p);
  Method method = d.loaded.method().value();
  EXPECT_THAT(d.call(method, {10, 20, 30, 40}), ElementsAre(33, 66, 99, 132));
}

TEST(delegate, is_released_and_unloaded_once) {
  Delegated d;
  Method method = d.loaded.method().value();  // also measures, with an instance of its own
  EXPECT_EQ(d.backend.created, d.backend.released + 1);
  EXPECT_EQ(method.close(), Error::ok);
  EXPECT_EQ(d.backend.created, d.backend.released);
  EXPECT_EQ(d.loaded.session->value().close(), Error::ok);
  EXPECT_EQ(d.backend.unloaded, 0);
  EXPECT_EQ(d.loaded.program->value().close(), Error::ok);
  EXPECT_EQ(d.backend.unloaded, 1);
}

TEST(delegate, allocates_nothing_while_it_executes) {
  Delegated d;
  Method method = d.loaded.method().value();
  const float x[] = {1, 2, 3, 4};
  const size_t before = allocation_count();
  ASSERT_EQ(method.set_input(0, x, {2, 2}), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_EQ(allocation_count(), before);
}

TEST(delegate, that_fails_leaves_a_method_that_works_again) {
  Delegated d;
  Method method = d.loaded.method().value();
  d.backend.execute_error = Error::device_failed;
  d.call(method, {1, 2});
  EXPECT_EQ(d.error, Error::device_failed);
  EXPECT_THAT(method.last_error().message, StrEq("it broke"));
  EXPECT_EQ(method.last_error().instruction, 0);
  d.backend.execute_error = Error::ok;
  EXPECT_THAT(d.call(method, {1, 2}), ElementsAre(6, 12));
}

TEST(delegate, is_refused_where_nobody_reads_its_blob) {
  const ProgramFile p = delegated_program();
  const Loaded without(p.bytes());
  EXPECT_EQ(without.info.error, Error::not_supported);
  EXPECT_THAT(without.info.subject, StrEq("fake"));
  ProgramFile damaged = p;
  damaged.blob.clear();
  const Delegated d(damaged);
  EXPECT_EQ(d.loaded.info.error, Error::invalid_program);
  EXPECT_THAT(d.loaded.info.message, StrEq("the blob has {} bytes"));
  EXPECT_EQ(d.backend.loaded, 0);
}

TEST(delegate, unloads_what_was_loaded_before_a_blob_was_refused) {
  struct Second : FakeBackend {
    const char* name() const override { return "second"; }
    Error load(Span<const std::byte>, Context& context, void*&) override {
      return context.fail(Error::invalid_program, TAPER_TEXT("never"));
    }
  } second;
  FakeBackend first;
  ProgramFile p = delegated_program();
  p.delegates = {"fake", "second"};
  Backend* const both[] = {&first, &second};
  LoadOptions options;
  options.backends = both;
  const Loaded loaded(p.bytes(), options);
  EXPECT_EQ(loaded.info.error, Error::invalid_program);
  EXPECT_EQ(first.loaded, 1);
  EXPECT_EQ(first.unloaded, 1);
  EXPECT_EQ(second.unloaded, 0);
}

TEST(delegate, may_not_give_other_shapes_than_the_program) {
  Delegated d;
  d.backend.result_rows = 5;
  const Result<Method> method = d.loaded.method();
  EXPECT_EQ(method.error(), Error::invalid_program);
  EXPECT_THAT(d.loaded.info.message, StrEq("result {} has another type than the backend gives"));
  EXPECT_EQ(d.backend.created, d.backend.released);
}

TEST(delegate, reports_why_it_cannot_be_created) {
  Delegated d;
  d.backend.create_error = Error::out_of_memory;
  EXPECT_EQ(d.loaded.method().error(), Error::out_of_memory);
  EXPECT_THAT(d.loaded.info.message, StrEq("no instance"));
  EXPECT_THAT(d.loaded.info.source, StrEq("model.cpp:10"));
  EXPECT_EQ(d.backend.released, 0);
}

TEST(delegate, refuses_a_constant_that_is_smaller_than_its_view) {
  Delegated d(program_with_constant({1, 2, 3}));
  EXPECT_EQ(d.loaded.method().error(), Error::invalid_program);
  EXPECT_EQ(d.backend.created, 0);
}

TEST(delegate, refuses_arguments_that_it_cannot_take) {
  const auto load_error = [](const ProgramFile& p) { return Delegated(p).loaded.info.error; };
  ProgramFile more_results = delegated_program();
  auto& m = more_results.methods[0];
  m.instructions[0] = format::Instruction(0, 0, 3, 4, 0, 0, InstructionKind::delegate);
  EXPECT_EQ(load_error(more_results), Error::invalid_program);
  ProgramFile number = delegated_program();
  number.methods[0].arguments[0] = MethodTables::integer(1);
  EXPECT_EQ(load_error(number), Error::invalid_program);
  ProgramFile writes_input = delegated_program();
  writes_input.methods[0].arguments[2] = writes_input.methods[0].arguments[0];
  EXPECT_EQ(load_error(writes_input), Error::invalid_program);
  ProgramFile other_version = delegated_program();
  other_version.delegates = {"another"};
  EXPECT_EQ(load_error(other_version), Error::not_supported);
}

TEST(delegate, refuses_results_that_overlap_operands) {
  ProgramFile p = delegated_program();
  MethodTables& m = p.methods[0];
  // an operand that is the result
  m.arguments[1] = m.arguments[2];
  Delegated d(p);
  EXPECT_EQ(d.loaded.method().error(), Error::invalid_program);
}

}  // namespace
}  // namespace taper::test
