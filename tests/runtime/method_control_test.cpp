// Branches, loops, sizes that instructions bind, and limits.
#include <gmock/gmock.h>

#include <atomic>

#include "programs.h"

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::StrEq;

// forward(x: f32[4], count: i64[]) -> x doubled `count` times; count in 0..10. Reads the count
// before the loop and at its end.
ProgramFile loop_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t shape = m.shape({m.literal(4)}), scalar = m.shape({});
  const uint32_t x = m.value(Storage::buffer, m.buffer(m.literal(16), {}, Region::io), shape);
  const uint32_t count =
      m.value(Storage::buffer, m.buffer(m.literal(8), {0}, Region::io), scalar, DType::i64);
  const uint32_t y = m.value(Storage::buffer, m.buffer(m.literal(16), {1}, Region::io), shape);
  const uint32_t limit = m.of_symbol(m.symbol(SymbolSource::element, count, 0, 0, 10));
  m.instruction(InstructionKind::copy, 0, {m.tensor(x), m.tensor(y)});
  const uint32_t is_empty = m.node(Operation::equal, NumberType::boolean, limit, m.literal(0));
  const uint32_t has_some = m.node(Operation::logical_not, NumberType::boolean, is_empty);
  m.instruction(InstructionKind::jump_unless, 5, {}, has_some);
  m.instruction(InstructionKind::loop_begin, 4);
  const uint32_t done = m.of_symbol(m.symbol(SymbolSource::loop_counter, 2, 0, 0, 1000));
  m.run(add, {m.tensor(y), m.tensor(y), m.tensor(y)});
  m.instruction(InstructionKind::loop_end, 2, {},
                m.node(Operation::less, NumberType::boolean, done, limit));
  m.input("x", x);
  m.input("count", count);
  m.output("y", y);
  return p;
}

TEST(method, loops_and_branches_within_limits) {
  ASSERT_LOADS(method, loaded, loop_program());
  const float x[] = {1, 2, 3, 4};
  for (int64_t count : {3, 0, 10}) {
    ASSERT_EQ(method.set_input(0, x), Error::ok);
    ASSERT_EQ(method.set_input(1, &count), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    EXPECT_EQ(elements(method.output(0))[3], 4.0f * static_cast<float>(1 << count));
  }
  Limits limits;
  limits.steps = 5;
  EXPECT_EQ(method.execute(limits), Error::limit_reached);
  const std::atomic<bool> cancel{true};
  limits = {};
  limits.cancel = &cancel;
  EXPECT_EQ(method.execute(limits), Error::limit_reached);
  EXPECT_EQ(method.execute(), Error::ok);
  const int64_t too_many = 11;
  ASSERT_EQ(method.set_input(1, &too_many), Error::ok);
  EXPECT_EQ(method.execute(), Error::invalid_argument);
  EXPECT_EQ(method.last_error().values[0], 11);
}

// forward(n: i64[1], x: f32[4]) -> x[:k] + x[:k], where k is read from a tensor that an instruction
// wrote
ProgramFile late_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t one = m.shape({m.literal(1)});
  const uint32_t n =
      m.value(Storage::buffer, m.buffer(m.literal(8), {}, Region::io), one, DType::i64);
  const uint32_t x_buffer = m.buffer(m.literal(16), {0}, Region::io),
                 y_buffer = m.buffer(m.literal(16), {x_buffer}, Region::io);
  const uint32_t whole = m.value(Storage::buffer, x_buffer, m.shape({m.literal(4)}));
  const uint32_t copy = m.value(Storage::buffer, m.buffer(m.literal(8)), one, DType::i64);
  const uint32_t k = m.of_symbol(m.symbol(SymbolSource::element, copy, 0, 0, 4));
  const uint32_t part = m.shape({k});
  const uint32_t x = m.value(Storage::buffer, x_buffer, part),
                 y = m.value(Storage::buffer, y_buffer, part);
  m.instruction(InstructionKind::copy, 0, {m.tensor(n), m.tensor(copy)});
  m.instruction(InstructionKind::bind, 0);
  m.run(add, {m.tensor(x), m.tensor(x), m.tensor(y)});
  m.input("n", n);
  m.input("x", whole);
  m.output("y", y);
  return p;
}

TEST(method, binds_symbols_that_instructions_wrote) {
  ASSERT_LOADS(method, loaded, late_program());
  float first = 1;
  for (int64_t n : {2, 4, 0, 4, 1, 1}) {
    const float x[] = {first, first + 1, first + 2, first + 3};
    ASSERT_EQ(method.set_input(1, x), Error::ok);
    ASSERT_EQ(method.set_input(0, &n), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    ASSERT_EQ(method.output(0).shape->numel(), n);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(elements(method.output(0))[static_cast<size_t>(i)], 2 * x[i]);
    first += 10;
  }
  const int64_t five = 5;
  ASSERT_EQ(method.set_input(0, &five), Error::ok);
  EXPECT_EQ(method.execute(), Error::invalid_argument);
}

// forward(n: i64[1], x: f32[4]): total[:k] += x[:k] before k is read from a copy of n, and after
// it.
ProgramFile late_total_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  const uint32_t total = p.state("total", {4}, DType::f32);
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = io_tensor(m, {m.literal(1)}, DType::i64), x = io_tensor(m, {m.literal(4)});
  const uint32_t copy =
      m.value(Storage::buffer, m.buffer(m.literal(8)), m.shape({m.literal(1)}), DType::i64);
  const uint32_t k = m.of_symbol(m.symbol(SymbolSource::element, copy, 0, 0, 4));
  const uint32_t part = m.shape({k});
  const uint32_t t = m.value(Storage::state, total, part),
                 first = m.value(Storage::buffer, m.values[x].storage_index(), part);
  m.run(add, {m.tensor(t), m.tensor(first), m.tensor(t)});
  m.instruction(InstructionKind::copy, 0, {m.tensor(n), m.tensor(copy)});
  m.instruction(InstructionKind::bind, 0);
  m.run(add, {m.tensor(t), m.tensor(first), m.tensor(t)});
  m.input("n", n), m.input("x", x);
  m.checks.push_back({m.node(Operation::not_equal, NumberType::boolean, k, m.literal(0)),
                      "k is {}, and must not be 0",
                      {k}});
  return p;
}

std::vector<float> total_of(const Loaded& loaded, size_t count) {
  std::vector<float> total(count);
  EXPECT_EQ(loaded.session->value().read_state(
                0, {reinterpret_cast<std::byte*>(total.data()), static_cast<index_t>(count * 4)}),
            Error::ok);
  return total;
}

TEST(method, forgets_what_instructions_bound_when_it_begins_again) {
  ASSERT_LOADS(method, loaded, late_total_program());
  const float ones[] = {1, 1, 1, 1};
  const int64_t three = 3;
  ASSERT_EQ(method.set_input(0, &three), Error::ok);
  ASSERT_EQ(method.set_input(1, ones), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(total_of(loaded, 4), ElementsAre(1, 1, 1, 0));
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(total_of(loaded, 4), ElementsAre(2, 2, 2, 0)) << "before it is bound, k is 0 again";
}

// Until `k` is bound it is 0, and the check waits; that it is 0 afterwards, too, changes nothing.
TEST(method, evaluates_checks_when_an_instruction_binds_what_they_ask_for) {
  ASSERT_LOADS(method, loaded, late_total_program());
  for (const int64_t n : {2, 0, 1}) {
    ASSERT_EQ(method.set_input(0, &n), Error::ok);
    EXPECT_EQ(method.execute(), n == 0 ? Error::invalid_argument : Error::ok) << n;
    if (n == 0) {
      EXPECT_THAT(method.last_error().message, StrEq("k is {}, and must not be 0"));
    }
  }
}

// forward(x: f32[4]): total[:k] += x[:k] for k in 0..3, which is the counter of a loop
TEST(method, prepares_again_what_an_iteration_of_a_loop_resizes) {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  const uint32_t total = p.state("total", {4}, DType::f32);
  MethodTables& m = p.methods.emplace_back();
  const uint32_t x = io_tensor(m, {m.literal(4)});
  const uint32_t k = m.of_symbol(m.symbol(SymbolSource::loop_counter, 0, 0, 0, 4));
  const uint32_t part = m.shape({k});
  const uint32_t t = m.value(Storage::state, total, part),
                 first = m.value(Storage::buffer, m.values[x].storage_index(), part);
  m.instruction(InstructionKind::loop_begin, 2);
  m.run(add, {m.tensor(t), m.tensor(first), m.tensor(t)});
  m.instruction(InstructionKind::loop_end, 0, {},
                m.node(Operation::less, NumberType::boolean, k, m.literal(4)));
  m.input("x", x);
  ASSERT_LOADS(method, loaded, p);
  const float ones[] = {1, 1, 1, 1};
  ASSERT_EQ(method.set_input(0, ones), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(total_of(loaded, 4), ElementsAre(3, 2, 1, 0));
}

// ---- limits ----

// forward(x: f32[2]): total += x, three times
ProgramFile three_steps_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  const uint32_t total =
      p.state("total", {2}, DType::f32, p.constant<float>("total.initial", {2}, {10, 20}));
  MethodTables& m = p.methods.emplace_back();
  const uint32_t two = m.literal(2);
  const uint32_t x = io_tensor(m, {two}), t = m.value(Storage::state, total, m.shape({two}));
  for (int i = 0; i < 3; ++i) m.run(add, {m.tensor(t), m.tensor(x), m.tensor(t)});
  m.input("x", x);
  return p;
}

Limits steps(uint64_t count) {
  Limits limits;
  limits.steps = count;
  return limits;
}

TEST(method, runs_exactly_as_many_instructions_as_the_limit_says) {
  ASSERT_LOADS(method, loaded, three_steps_program());
  const float x[] = {1, 2};
  ASSERT_EQ(method.set_input(0, x), Error::ok);
  for (const int limit : {0, 1, 2, 3, 4}) {
    ASSERT_EQ(loaded.session->value().reset(), Error::ok);
    EXPECT_EQ(method.execute(steps(static_cast<uint64_t>(limit))),
              limit < 3 ? Error::limit_reached : Error::ok)
        << limit;
    const auto done = static_cast<float>(std::min(limit, 3));
    EXPECT_THAT(total_of(loaded, 2), ElementsAre(10 + done, 20 + 2 * done)) << limit;
    if (limit >= 3) continue;
    EXPECT_THAT(method.last_error().message, StrEq("the limit of steps is reached"));
    EXPECT_EQ(method.last_error().instruction, limit) << "the first one that did not run";
  }
}

// A copy, a branch, the beginning of the loop, and for each iteration an addition and its end.
TEST(method, counts_each_iteration_of_a_loop_against_the_limit) {
  ASSERT_LOADS(method, loaded, loop_program());
  const float x[] = {1, 2, 3, 4};
  ASSERT_EQ(method.set_input(0, x), Error::ok);
  for (const int64_t count : {0, 1, 3, 10}) {
    ASSERT_EQ(method.set_input(1, &count), Error::ok);
    const auto needed = static_cast<uint64_t>(count == 0 ? 2 : 3 + 2 * count);
    EXPECT_EQ(method.execute(steps(needed)), Error::ok) << count;
    EXPECT_EQ(elements(method.output(0))[3], 4.0f * static_cast<float>(1 << count));
    EXPECT_EQ(method.execute(steps(needed - 1)), Error::limit_reached) << count;
  }
}

// Preparing an instruction for a size that was bound just now is no step of its own.
TEST(method, counts_an_instruction_once_whether_or_not_it_is_prepared_again) {
  ASSERT_LOADS(method, loaded, late_program());
  const float x[] = {1, 2, 3, 4};
  ASSERT_EQ(method.set_input(1, x), Error::ok);
  for (const int64_t n : {2, 3, 3, 0}) {
    ASSERT_EQ(method.set_input(0, &n), Error::ok);
    EXPECT_EQ(method.execute(steps(3)), Error::ok) << n;
    EXPECT_EQ(method.output(0).shape->numel(), n);
    EXPECT_EQ(method.execute(steps(2)), Error::limit_reached) << n;
    EXPECT_EQ(method.last_error().instruction, 2);
  }
}

std::atomic<bool> cancelled;

// `add`, during which somebody cancels the call.
Kernel cancelling_add() {
  Kernel k = add_f32;
  k.run = [](Context& context, const void* plan, const Slot* slots) {
    cancelled = true;
    return add_f32.run(context, plan, slots);
  };
  return k;
}

TEST(method, stops_before_the_next_instruction_when_it_is_cancelled) {
  const Kernel add = cancelling_add();
  const Kernel* const set[] = {&add};
  ASSERT_LOADS(method, loaded, three_steps_program(), {}, set);
  const float x[] = {1, 2};
  ASSERT_EQ(method.set_input(0, x), Error::ok);
  Limits limits;
  limits.cancel = &cancelled;
  cancelled = false;
  EXPECT_EQ(method.execute(limits), Error::limit_reached);
  EXPECT_THAT(total_of(loaded, 2), ElementsAre(11, 22)) << "the first addition ended";
  EXPECT_THAT(method.last_error().message, StrEq("cancelled"));
  EXPECT_EQ(method.last_error().instruction, 1);
  EXPECT_EQ(method.execute(limits), Error::limit_reached);
  EXPECT_THAT(total_of(loaded, 2), ElementsAre(11, 22)) << "cancelled before it began";
  EXPECT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(total_of(loaded, 2), ElementsAre(14, 28));
}

}  // namespace
}  // namespace taper::test
