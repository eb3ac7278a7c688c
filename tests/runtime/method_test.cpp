#include <gmock/gmock.h>

#include "programs.h"
#include "taper/examples/support/allocations.h"

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::StrEq;

TEST(method, runs_its_instructions) {
  ASSERT_LOADS(method, loaded, sums_program());
  Dense<float> x({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  ASSERT_EQ(method.set_input(0, x), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(30, 78));
}

TEST(method, follows_changing_sizes_without_allocating) {
  ASSERT_LOADS(method, loaded, sums_program());
  std::vector<float> ones(32, 1.0f);
  const size_t before = allocation_count();
  for (index_t batch : {1, 8, 3, 3, 5, 1}) {
    ASSERT_EQ(method.set_input(0, ones.data(), {batch, 4}), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    ASSERT_EQ(method.output(0).shape->sizes[0], batch);
    for (index_t i = 0; i < batch; ++i)
      ASSERT_EQ(static_cast<float*>(method.output(0).data)[i], 12.0f);
  }
  EXPECT_EQ(allocation_count(), before);
}

TEST(method, counts_allocations_at_all) {
  const size_t before = allocation_count();
  delete new std::vector<int>(100);
  EXPECT_GT(allocation_count(), before);
}

TEST(method, prepares_again_only_what_changed) {
  Loaded loaded(sums_program());
  prepared = 0;
  ASSERT_LOADED(method, loaded);
  const int at_create = prepared;
  // three instructions, for the requirements and for the method, at the smallest and largest sizes
  EXPECT_EQ(at_create, 12);
  ASSERT_EQ(method.execute(), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_EQ(prepared, at_create);
  const index_t sizes[] = {2, 4};
  ASSERT_EQ(method.resize_input(0, sizes), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_EQ(prepared, at_create + 3);
}

TEST(method, finds_inputs_and_outputs_by_their_names_only) {
  ASSERT_LOADS(method, loaded, sums_program());
  EXPECT_EQ(method.find_input(method.input_name(0)), 0);
  EXPECT_EQ(method.find_output(method.output_name(0)), 0);
  EXPECT_EQ(method.find_input("nope"), -1);
  EXPECT_EQ(method.find_output("nope"), -1);
}

TEST(method, has_nothing_at_an_index_out_of_range) {
  ASSERT_LOADS(method, loaded, sums_program());
  for (index_t i : {index_t{-1}, index_t{1}, index_t{1} << 40}) {
    EXPECT_EQ(method.input_name(i), nullptr);
    EXPECT_EQ(method.output_name(i), nullptr);
    EXPECT_EQ(method.input(i).shape, nullptr);
    EXPECT_EQ(method.output(i).shape, nullptr);
    EXPECT_EQ(method.resize_input(i, {}), Error::invalid_argument);
    EXPECT_EQ(method.bind_input(i, method.input(0)), Error::invalid_argument);
    EXPECT_EQ(method.set_number(i, 1.0), Error::invalid_argument);
    int64_t number;
    EXPECT_EQ(method.output_number(i, number), Error::invalid_argument);
    EXPECT_EQ(loaded.program->value().method_name(i), nullptr);
  }
  for (index_t i : {index_t{-1}, method.instruction_count()}) {
    EXPECT_EQ(method.instruction(i).op, nullptr);
    EXPECT_TRUE(method.instruction(i).arguments.empty());
  }
  EXPECT_EQ(loaded.session->value().state(0).path, nullptr);
}

// forward(a: f32[n], b: f32[m]) -> a + b, n and m in 0..4 with the check n == m.
ProgramFile checked_program(int64_t largest_b = 4) {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  uint32_t value[3], size[2];
  for (uint32_t i = 0; i < 2; ++i) {
    size[i] = m.of_symbol(m.symbol(SymbolSource::input_extent, i, 0, 0, i == 0 ? 4 : largest_b));
    value[i] =
        m.value(Storage::buffer,
                m.buffer(m.times(size[i], m.literal(4)),
                         i == 0 ? std::vector<uint32_t>{} : std::vector<uint32_t>{0}, Region::io),
                m.shape({size[i]}));
    m.input(i == 0 ? "a" : "b", value[i]);
  }
  value[2] = m.value(Storage::buffer, m.buffer(m.times(size[0], m.literal(4)), {1}, Region::io),
                     m.shape({size[0]}));
  m.run(add, {m.tensor(value[0]), m.tensor(value[1]), m.tensor(value[2])});
  m.output("sum", value[2]);
  m.checks.push_back({m.node(Operation::equal, NumberType::boolean, size[0], size[1]),
                      "a has {} elements, b has {}",
                      {size[0], size[1]}});
  return p;
}

TEST(method, evaluates_checks_and_recovers) {
  ASSERT_LOADS(method, loaded, checked_program());
  Dense<float> two({2}, {1, 2}), three({3}, {1, 2, 3}), empty({0}, {});
  ASSERT_EQ(method.set_input(0, two), Error::ok);
  ASSERT_EQ(method.set_input(1, three), Error::ok);
  EXPECT_EQ(method.execute(), Error::invalid_argument);
  EXPECT_THAT(method.last_error().message, StrEq("a has {} elements, b has {}"));
  EXPECT_EQ(method.last_error().values[0], 2);
  EXPECT_EQ(method.last_error().values[1], 3);
  ASSERT_EQ(method.set_input(0, three), Error::ok);
  EXPECT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(2, 4, 6));
  ASSERT_EQ(method.set_input(0, empty), Error::ok);
  ASSERT_EQ(method.set_input(1, empty), Error::ok);
  EXPECT_EQ(method.execute(), Error::ok);
  EXPECT_EQ(method.output(0).shape->numel(), 0);
}

// Inputs start with their largest sizes, 4 and 6, which do not go together.
TEST(method, runs_nothing_that_its_largest_sizes_exclude) {
  ASSERT_LOADS(method, loaded, checked_program(6));
  EXPECT_EQ(method.execute(), Error::invalid_argument);
  EXPECT_THAT(method.last_error().message, StrEq("a has {} elements, b has {}"));
  Dense<float> three({3}, {1, 2, 3});
  ASSERT_EQ(method.set_input(0, three), Error::ok);
  ASSERT_EQ(method.set_input(1, three), Error::ok);
  EXPECT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(2, 4, 6));
}

// forward(i: i64[2]) -> take(constant[3], i)
ProgramFile take_program() {
  ProgramFile p;
  const uint32_t take = p.kernel(ops::take, {DType::f32, DType::i64, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t two = m.shape({m.literal(2)});
  const uint32_t i =
      m.value(Storage::buffer, m.buffer(m.literal(16), {}, Region::io), two, DType::i64);
  const uint32_t y = m.value(Storage::buffer, m.buffer(m.literal(8), {0}, Region::io), two);
  const uint32_t table =
      m.value(Storage::constant, p.constant<float>("table", {4}, {9, 10, 11, 12}),
              m.shape({m.literal(3)}), DType::f32, 1);
  m.run(take, {m.tensor(table), m.tensor(i), m.tensor(y)});
  m.input("i", i);
  m.output("y", y);
  p.sources = {{"gather.cpp:3"}};
  return p;
}

TEST(method, says_where_data_was_wrong) {
  ASSERT_LOADS(method, loaded, take_program());
  const int64_t good[] = {2, 0}, bad[] = {0, 3};
  ASSERT_EQ(method.set_input(0, good), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(12, 10));
  ASSERT_EQ(method.set_input(0, bad), Error::ok);
  EXPECT_EQ(method.execute(), Error::invalid_argument);
  const ErrorInfo& info = method.last_error();
  EXPECT_EQ(info.instruction, 0);
  EXPECT_THAT(info.source, StrEq("gather.cpp:3"));
  EXPECT_THAT(info.subject, StrEq("test::take"));
  EXPECT_THAT(info.message, StrEq("index {} is outside [0, {})"));
  EXPECT_EQ(info.values[0], 3);
}

// accumulate(x: f32[2]): total += x in place; report() -> total + total; save(): saved = total, by
// a copy
ProgramFile states_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  const uint32_t total =
      p.state("total", {2}, DType::f32, p.constant<float>("total.initial", {2}, {10, 20}));
  const uint32_t saved = p.state("saved", {2}, DType::f32);
  MethodTables accumulate;
  accumulate.name = "accumulate";
  uint32_t shape = accumulate.shape({accumulate.literal(2)});
  const uint32_t x = accumulate.value(
      Storage::buffer, accumulate.buffer(accumulate.literal(8), {}, Region::io), shape);
  uint32_t t = accumulate.value(Storage::state, total, shape);
  accumulate.run(add, {accumulate.tensor(t), accumulate.tensor(x), accumulate.tensor(t)});
  accumulate.input("x", x);
  accumulate.output("total", t);
  MethodTables save;
  save.name = "save";
  shape = save.shape({save.literal(2)});
  save.instruction(InstructionKind::copy, 0,
                   {save.tensor(save.value(Storage::state, total, shape)),
                    save.tensor(save.value(Storage::state, saved, shape))});
  p.methods = {accumulate, save};
  return p;
}

TEST(session, shares_states_between_its_methods_only) {
  Loaded loaded(states_program());
  Result<Method> accumulate = loaded.method("accumulate"), save = loaded.method("save");
  ASSERT_TRUE(accumulate.ok() && save.ok());
  AlignedBytes other_memory(loaded.program->value().session_bytes());
  Result<Session> other = Session::create(loaded.program->value(), other_memory);
  ASSERT_TRUE(other.ok());

  const float x[] = {1, 2};
  ASSERT_EQ(accumulate.value().set_input(0, x), Error::ok);
  ASSERT_EQ(accumulate.value().execute(), Error::ok);
  ASSERT_EQ(accumulate.value().execute(), Error::ok);
  ASSERT_EQ(save.value().execute(), Error::ok);
  EXPECT_THAT(elements(accumulate.value().output(0)), ElementsAre(12, 24));

  Session& session = loaded.session->value();
  std::vector<float> read(2);
  const auto bytes = [&] { return Span<std::byte>(reinterpret_cast<std::byte*>(read.data()), 8); };
  ASSERT_EQ(session.read_state(session.find_state("saved").value(), bytes()), Error::ok);
  EXPECT_THAT(read, ElementsAre(12, 24));
  ASSERT_EQ(other.value().read_state(0, bytes()), Error::ok);
  EXPECT_THAT(read, ElementsAre(10, 20));
  ASSERT_EQ(other.value().copy_states(session), Error::ok);
  ASSERT_EQ(other.value().read_state(0, bytes()), Error::ok);
  EXPECT_THAT(read, ElementsAre(12, 24));
  ASSERT_EQ(session.reset(), Error::ok);
  ASSERT_EQ(session.read_state(0, bytes()), Error::ok);
  EXPECT_THAT(read, ElementsAre(10, 20));
  EXPECT_EQ(session.read_state(0, bytes().part(0, 4)), Error::invalid_argument);
  EXPECT_EQ(session.find_state("other").error(), Error::invalid_argument);
}

TEST(session, takes_states_of_its_own_program_and_size_only) {
  Loaded loaded(states_program()), same_file(states_program());
  ASSERT_EQ(loaded.error(), Error::ok);
  Session& session = loaded.session->value();
  const float ones[] = {1, 1};
  const Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(ones), 8);
  EXPECT_EQ(session.copy_states(same_file.session->value()), Error::invalid_argument);
  for (const index_t size : {0, 4, 7})
    EXPECT_EQ(session.write_state(0, bytes.part(0, size)), Error::invalid_argument) << size;
  for (const index_t i : {-1, 2})
    EXPECT_EQ(session.write_state(i, bytes), Error::invalid_argument) << i;
  float read[2] = {};
  const Span<std::byte> place(reinterpret_cast<std::byte*>(read), 8);
  ASSERT_EQ(session.read_state(0, place), Error::ok);
  EXPECT_THAT(read, ElementsAre(10, 20)) << "nothing was written";
  for (const index_t i : {0, 1}) ASSERT_EQ(session.write_state(i, bytes), Error::ok);
  ASSERT_EQ(session.reset(), Error::ok);
  ASSERT_EQ(session.read_state(1, place), Error::ok);
  EXPECT_THAT(read, ElementsAre(0, 0)) << "a state without a first value begins with zeros";
}

TEST(method, passes_lists_numbers_and_texts) {
  ProgramFile p;
  p.strings = {"a note"};
  const uint32_t fill = p.kernel(ops::fill, {DType::f32}),
                 join = p.kernel(ops::join, {DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  m.inputs.push_back(
      {"n", none, m.symbol(SymbolSource::input_number, 0, 0, 1, 4), NumberType::i64});
  const uint32_t n = m.of_symbol(0), bytes = m.times(n, m.literal(4)),
                 three_n = m.times(n, m.literal(3));
  const uint32_t a = m.value(Storage::buffer, m.buffer(bytes), m.shape({n}));
  const uint32_t b = m.value(Storage::buffer, m.buffer(bytes, {0}), m.shape({n}));
  const uint32_t y =
      m.value(Storage::buffer, m.buffer(m.times(three_n, m.literal(4)), {}, Region::io),
              m.shape({three_n}));
  const format::Argument note(0, 0, ArgumentKind::string, ArgumentForm::literal);
  m.run(fill, {m.list({n}, ArgumentKind::integer, ArgumentForm::expression_list), m.real(1.5), note,
               m.tensor(a)});
  m.run(fill, {m.list({n}, ArgumentKind::integer, ArgumentForm::expression_list), m.number(n),
               m.absent(), m.tensor(b)});
  m.run(join, {m.tensors({a, b, a}), m.tensor(y)});
  m.output("y", y);
  m.outputs.push_back({"three_n", none, three_n, NumberType::i64});
  ASSERT_LOADS(method, loaded, p);
  ASSERT_EQ(method.set_number(0, int64_t{2}), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(1.5, 1.5, 2, 2, 1.5, 1.5));
  int64_t number = 0;
  ASSERT_EQ(method.output_number(1, number), Error::ok);
  EXPECT_EQ(number, 6);
  ASSERT_EQ(method.set_number(0, int64_t{5}), Error::ok);
  EXPECT_EQ(method.execute(), Error::invalid_argument);
  ASSERT_EQ(method.set_number(0, int64_t{1}), Error::ok);
  EXPECT_EQ(method.execute(), Error::ok);
}

TEST(method, records_times_where_it_is_asked_to) {
  ASSERT_LOADS(method, loaded, sums_program());
  ProfileEvent events[4];
  Profiler profiler;
  profiler.events = events;
  profiler.now = [] {
    static uint64_t time = 0;
    return ++time;
  };
  method.set_profiler(&profiler);
  ASSERT_EQ(method.execute(), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  if (profiler.count == 0) GTEST_SKIP() << "built without TAPER_PROFILE";
  EXPECT_EQ(profiler.count, 4);
  EXPECT_EQ(profiler.dropped, 2);
  EXPECT_EQ(events[2].instruction, 2u);
  EXPECT_EQ(events[2].end, events[2].begin + 1);
  EXPECT_THAT(method.instruction(2).op, StrEq("test::sum_rows"));
  EXPECT_THAT(method.instruction(2).kernel->name, StrEq("sum_rows_f32"));
  EXPECT_THAT(method.instruction(2).source, StrEq("model.cpp:12"));
}

// ---- a file may lie about shapes ----

TEST(method, refuses_a_result_of_another_type_than_the_rule_gives) {
  ProgramFile p = sums_program();
  MethodTables& m = p.methods[0];
  const uint32_t batch = 0;
  m.values.push_back(m.values[2]);
  m.values[2] = format::Value(1, m.literal(0), m.shape({batch, m.literal(1)}), none,
                              Storage::buffer, format::DType::f32);
  Loaded loaded(p);  // what `info` names lies in the program
  EXPECT_EQ(loaded.method().error(), Error::invalid_program);
  EXPECT_EQ(loaded.info.instruction, 2);
  EXPECT_EQ(loaded.info.argument, 1);
  EXPECT_THAT(loaded.info.source, StrEq("model.cpp:12"));
}

TEST(method, refuses_a_view_outside_its_buffer) {
  ProgramFile p = sums_program();
  MethodTables& m = p.methods[0];
  m.buffers[2] = format::Buffer(m.times(0, m.literal(15)), 0, 0, Region::activations, 0);
  EXPECT_EQ(create_error(p), Error::invalid_program);
}

TEST(method, refuses_strides_that_a_kernel_does_not_take) {
  ProgramFile p = sums_program();
  MethodTables& m = p.methods[0];
  const uint32_t transposed = m.shape({0, m.literal(4)}, {m.literal(1), 0});
  m.arguments[0] = m.tensor(m.value(Storage::buffer, 2, transposed));
  EXPECT_EQ(create_error(p), Error::invalid_program);
}

TEST(method, refuses_sizes_that_overflow) {
  ProgramFile p = sums_program();
  MethodTables& m = p.methods[0];
  m.symbols[0] = format::Symbol(1, INT64_MAX, 0, 0, SymbolSource::input_extent, NumberType::i64);
  EXPECT_EQ(create_error(p), Error::invalid_argument);
}

TEST(method, refuses_to_write_inputs_and_constants) {
  ProgramFile p = sums_program();
  p.methods[0].arguments[2] = MethodTables::tensor(0);
  EXPECT_EQ(create_error(p), Error::invalid_program);
}

}  // namespace
}  // namespace taper::test
