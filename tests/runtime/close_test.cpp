// How programs, sessions and methods end: in which order, what is told, and what is left.
#include <gmock/gmock.h>

#include <thread>

#include "programs.h"

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::StrEq;

const Kernel* const holding_list[] = {&holding_add_f32, &sum_rows_f32};
const KernelSet holding_kernels(holding_list);

/// Counts what kernels hold from here on.
struct Holding : testing::Test {
  Holding() { held = ended = 0, refused_size = -1; }
  ~Holding() override { refused_size = -1; }
};
using close_of = Holding;

Error execute(Method& method, index_t batch) {
  TAPER_TRY(
      method.set_input(0, Dense<float>({batch, 4}, std::vector<float>(size_t(batch) * 4, 1.0f))));
  return method.execute();
}

// ---- order ----

TEST(close, goes_from_methods_to_sessions_to_the_program) {
  Loaded loaded(sums_program());
  Program program = loaded.program->value();
  Session session = loaded.session->value();
  ASSERT_LOADED(first, loaded);
  ASSERT_LOADED(second, loaded);
  ErrorInfo info;
  EXPECT_EQ(program.close(&info), Error::busy);
  EXPECT_THAT(info.message, StrEq("{} sessions of the program are open: close them first"));
  EXPECT_EQ(info.values[0], 1);
  EXPECT_EQ(session.close(&info), Error::busy);
  EXPECT_THAT(info.message, StrEq("{} methods of the session are open: close them first"));
  EXPECT_EQ(info.values[0], 2);
  // nothing was done
  ASSERT_EQ(execute(second, 1), Error::ok);
  EXPECT_THAT(elements(second.output(0)), ElementsAre(12));

  EXPECT_EQ(first.close(), Error::ok);
  EXPECT_EQ(session.close(&info), Error::busy);
  EXPECT_EQ(info.values[0], 1);
  EXPECT_EQ(execute(second, 1), Error::ok);
  EXPECT_EQ(second.close(), Error::ok);
  EXPECT_EQ(program.close(), Error::busy);
  EXPECT_EQ(session.close(), Error::ok);
  EXPECT_EQ(program.close(), Error::ok);
}

TEST(close, counts_the_sessions_of_all_threads) {
  Loaded loaded(sums_program());
  ASSERT_EQ(loaded.error(), Error::ok);
  Program program = loaded.program->value();
  const auto many = [&program] {
    AlignedBytes memory(program.session_bytes());
    for (int i = 0; i < 1000; ++i) {
      Result<Session> session = Session::create(program, memory);
      ASSERT_TRUE(session.ok());
      ASSERT_EQ(session.value().close(), Error::ok);
    }
  };
  std::thread other(many);
  many();
  other.join();
  ErrorInfo info;
  EXPECT_EQ(program.close(&info), Error::busy);
  EXPECT_EQ(info.values[0], 1) << "that of `loaded`";
  EXPECT_EQ(loaded.session->value().close(), Error::ok);
  EXPECT_EQ(program.close(), Error::ok);
}

// What docs/running.md shows.
Error close_all(Program program, Session session, Method method) {
  ErrorInfo info;
  TAPER_TRY(method.close());
  TAPER_TRY(session.close(&info));  // busy while methods are open: info.values[0] says how many
  TAPER_TRY(program.close(&info));  // busy while sessions are open
  return Error::ok;
}

TEST(close, ends_everything_in_three_calls) {
  ASSERT_LOADS(method, loaded, sums_program());
  EXPECT_EQ(close_all(loaded.program->value(), loaded.session->value(), method), Error::ok);
}

// ---- closed handles ----

TEST(close, leaves_a_method_without_anything) {
  ASSERT_LOADS(method, loaded, sums_program());
  ASSERT_EQ(execute(method, 2), Error::ok);
  Method copy = method;
  ASSERT_EQ(method.close(), Error::ok);
  EXPECT_EQ(copy.close(), Error::invalid_argument);
  EXPECT_THAT(copy.last_error().message, StrEq("the method is closed already"));
  EXPECT_EQ(copy.execute(), Error::invalid_argument);
  EXPECT_THAT(copy.last_error().message, StrEq("the method is closed"));
  const float x[4] = {};
  EXPECT_EQ(copy.set_input(0, x, {1, 4}), Error::invalid_argument);
  EXPECT_THAT(copy.last_error().message, StrEq("the method is closed"));
  EXPECT_EQ(copy.set_input(0, x), Error::invalid_argument);
  const index_t sizes[] = {1, 4};
  EXPECT_EQ(copy.resize_input(0, sizes), Error::invalid_argument);
  EXPECT_EQ(copy.bind_input(0, Dense<float>({1, 4}, std::vector<float>(20))),
            Error::invalid_argument);
  EXPECT_EQ(copy.set_number(0, int64_t{1}), Error::invalid_argument);
  EXPECT_EQ(copy.set_number(0, 1.0), Error::invalid_argument);
  EXPECT_EQ(copy.name(), nullptr);
  EXPECT_EQ(copy.input_count(), 0);
  EXPECT_EQ(copy.output_count(), 0);
  EXPECT_EQ(copy.instruction_count(), 0);
  EXPECT_EQ(copy.input_name(0), nullptr);
  EXPECT_EQ(copy.find_output("y"), -1);
  EXPECT_EQ(copy.input(0).data, nullptr);
  EXPECT_EQ(copy.output(0).data, nullptr);
  EXPECT_EQ(copy.output(0).shape, nullptr);
  EXPECT_EQ(copy.instruction(0).op, nullptr);
  int64_t number;
  EXPECT_EQ(copy.output_number(0, number), Error::invalid_argument);
}

TEST(close, leaves_a_session_without_anything) {
  ProgramFile file = sums_program();
  file.state("count", {2}, DType::f32);
  Loaded loaded(file);
  Session session = loaded.session->value();
  float two[2] = {};
  const Span<std::byte> bytes(reinterpret_cast<std::byte*>(two), 8);
  ASSERT_EQ(session.read_state(0, bytes), Error::ok);
  ASSERT_EQ(session.close(), Error::ok);
  ErrorInfo info;
  EXPECT_EQ(session.close(&info), Error::invalid_argument);
  EXPECT_THAT(info.message, StrEq("the session is closed already"));
  EXPECT_EQ(session.state_count(), 0);
  EXPECT_EQ(session.state(0).path, nullptr);
  EXPECT_EQ(session.find_state("count").error(), Error::invalid_argument);
  EXPECT_EQ(session.read_state(0, bytes), Error::invalid_argument);
  EXPECT_EQ(session.write_state(0, bytes), Error::invalid_argument);
  EXPECT_EQ(session.reset(), Error::invalid_argument);
  EXPECT_EQ(session.copy_states(session), Error::invalid_argument);
  EXPECT_EQ(Method::create(session, "forward", {}, &info).error(), Error::invalid_argument);
  EXPECT_THAT(info.message, StrEq("the session is closed"));
}

TEST(close, leaves_a_program_without_anything) {
  Loaded loaded(sums_program());
  Program program = loaded.program->value();
  ASSERT_EQ(loaded.session->value().close(), Error::ok);
  ASSERT_EQ(program.close(), Error::ok);
  ErrorInfo info;
  EXPECT_EQ(program.close(&info), Error::invalid_argument);
  EXPECT_THAT(info.message, StrEq("the program is closed already"));
  EXPECT_EQ(program.method_count(), 0);
  EXPECT_EQ(program.method_name(0), nullptr);
  EXPECT_EQ(program.session_bytes(), 0u);
  EXPECT_TRUE(program.file().empty());
  EXPECT_EQ(program.verify_segments(), Error::invalid_argument);
  EXPECT_EQ(program.method_metadata_bytes("forward").error(), Error::invalid_argument);
  SessionOptions options;
  options.info = &info;
  EXPECT_EQ(Session::create(program, loaded.session_memory, options).error(),
            Error::invalid_argument);
  EXPECT_THAT(info.message, StrEq("the program is closed"));
}

TEST(close, lets_the_same_memory_serve_again) {
  Loaded loaded(sums_program());
  Program program = loaded.program->value();
  ASSERT_EQ(loaded.session->value().close(), Error::ok);
  ASSERT_EQ(program.close(), Error::ok);
  AlignedBytes workspace(1 << 16), memory(1 << 16);
  for (int round = 0; round < 3; ++round) {
    Result<Program> again = Program::load(loaded.file, kernels, loaded.metadata);
    ASSERT_TRUE(again.ok());
    // of the session's own memory, too: it suffices for one method at a time
    const MethodRequirements needed = again.value().requirements("forward", workspace).value();
    const Span<std::byte> given(memory.data(),
                                index_t(again.value().session_bytes() + needed.total()));
    Result<Session> session = Session::create(again.value(), given);
    ASSERT_TRUE(session.ok());
    for (int turn = 0; turn < 3; ++turn) {
      Result<Method> method = Method::create(session.value(), "forward");
      ASSERT_TRUE(method.ok()) << turn;
      EXPECT_EQ(Method::create(session.value(), "forward").error(), Error::out_of_memory);
      EXPECT_EQ(execute(method.value(), 3), Error::ok);
      EXPECT_EQ(method.value().close(), Error::ok);
    }
    EXPECT_EQ(session.value().close(), Error::ok);
    EXPECT_EQ(again.value().close(), Error::ok);
  }
}

// ---- kernels that hold something ----

TEST_F(close_of, methods_is_told_to_kernels_once_for_each_plan) {
  ASSERT_LOADS(method, loaded, sums_program(), {},
               holding_kernels);  // `requirements` prepared, too
  EXPECT_EQ(held, 2);
  EXPECT_EQ(ended, 2);
  for (const index_t batch : {1, 8, 3}) EXPECT_EQ(execute(method, batch), Error::ok);
  EXPECT_EQ(held, 2) << "another shape is prepared on the same plan";
  ASSERT_EQ(method.close(), Error::ok);
  EXPECT_EQ(held, 0);
  EXPECT_EQ(ended, 4);
  EXPECT_EQ(method.close(), Error::invalid_argument);
  EXPECT_EQ(ended, 4);
}

TEST_F(close_of, plans_whose_later_prepare_failed_is_told) {
  ASSERT_LOADS(method, loaded, sums_program(), {}, holding_kernels);
  refused_size = 3;
  EXPECT_EQ(execute(method, 3), Error::not_supported);
  EXPECT_EQ(held, 2);
  EXPECT_EQ(execute(method, 2), Error::ok);
  ASSERT_EQ(method.close(), Error::ok);
  EXPECT_EQ(held, 0);
}

TEST_F(close_of, methods_that_were_not_created_is_told) {
  // prepared at batch 1 alone
  refused_size = 8;
  Loaded loaded(sums_program(), {}, holding_kernels);
  EXPECT_EQ(loaded.method().error(), Error::not_supported);
  EXPECT_EQ(held, 0);
  EXPECT_EQ(ended, 2);
  // never prepared
  ended = 0;
  Session& session = loaded.session->value();
  EXPECT_EQ(Method::create(session, "forward").error(), Error::out_of_memory);
  EXPECT_EQ(ended, 0);
  // prepared, and then there is no memory for tensors
  refused_size = -1;
  AlignedBytes tables(loaded.program->value().method_metadata_bytes("forward").value());
  EXPECT_EQ(Method::create(session, "forward", MethodMemory(tables)).error(), Error::out_of_memory);
  EXPECT_EQ(held, 0);
  EXPECT_EQ(ended, 2);
  EXPECT_EQ(session.close(), Error::ok) << "none of them counts";
}

TEST(close, takes_back_the_count_of_a_session_that_was_not_created) {
  ProgramFile file = sums_program();
  const uint32_t initial = file.constant<float>("elsewhere", {2}, {1, 2});
  file.constants[initial].source = format::ConstantSource::external;
  file.constants[initial].hash.assign(32, 7);
  file.state("s", {2}, DType::f32, initial);
  Loaded loaded(file);
  EXPECT_EQ(loaded.error(), Error::not_supported);
  Program program = loaded.program->value();
  EXPECT_EQ(Session::create(program, {}).error(), Error::out_of_memory);
  EXPECT_EQ(program.close(), Error::ok);
}

}  // namespace
}  // namespace taper::test
