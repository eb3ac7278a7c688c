#include <gmock/gmock.h>

#include "fake_device.h"
#include "programs.h"

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::StrEq;

// forward(x: f32[4]) -> y, on the device: total += x; d = total + w; y = d copied to the host,
// where y2 = y + y is computed.
ProgramFile device_program() {
  ProgramFile p;
  p.spaces = {"cpu", "fake"};
  p.queues = {format::Queue(0), format::Queue(1)};
  const uint32_t host_add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  const uint32_t device_add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32}, 1);
  const uint32_t w = p.constant<float>("w", {4}, {1, 2, 3, 4});
  p.constants[w].space = 1;
  const uint32_t initial = p.constant<float>("initial", {4}, {100, 100, 100, 100});
  const uint32_t total = p.state("total", {4}, DType::f32, initial, 1);
  MethodTables& m = p.methods.emplace_back();
  const uint32_t four = m.shape({m.literal(4)}), bytes = m.literal(16);
  const uint32_t x = m.value(Storage::buffer, m.buffer(bytes, {}, Region::io), four);
  const uint32_t y = m.value(Storage::buffer, m.buffer(bytes), four);
  const uint32_t y2 = m.value(Storage::buffer, m.buffer(bytes, {0}, Region::io), four);
  const uint32_t dx = m.value(Storage::buffer, m.buffer(bytes, {}, Region::activations, 1), four);
  const uint32_t d = m.value(Storage::buffer, m.buffer(bytes, {3}, Region::activations, 1), four);
  const uint32_t t = m.value(Storage::state, total, four),
                 weights = m.value(Storage::constant, w, four);
  m.instruction(InstructionKind::copy, 0, {m.tensor(x), m.tensor(dx)}, 0, 1);
  m.run(device_add, {m.tensor(t), m.tensor(dx), m.tensor(t)}, 1);
  m.run(device_add, {m.tensor(t), m.tensor(weights), m.tensor(d)}, 1);
  m.instruction(InstructionKind::copy, 0, {m.tensor(d), m.tensor(y)}, 0, 1);
  m.instruction(InstructionKind::wait, 1);
  m.run(host_add, {m.tensor(y), m.tensor(y), m.tensor(y2)});
  m.input("x", x);
  m.output("y", y2);
  return p;
}

// Bytes of the device's memory that are given to the program, and that are missing to what its
// session and its method ask for; how far behind a multiple of 64 each of the three begins.
struct DeviceMemory {
  size_t constants = 256, missing_to_states = 0, missing_to_method = 0;
  size_t constants_at = 0, states_at = 0, method_at = 0;
};

struct OnDevice {
  explicit OnDevice(const ProgramFile& p = device_program(), const DeviceMemory& given = {})
      : file(p.bytes()), metadata(Program::metadata_bytes(file).value()) {
    Device* const devices[] = {&device};
    const Span<std::byte> constants[] = {take(given.constants, given.constants_at)};
    LoadOptions options;
    options.devices = devices, options.device_memory = constants, options.info = &info;
    program = std::make_unique<Result<Program>>(Program::load(file, kernels, metadata, options));
    if (!program->ok()) return;
    session_memory = AlignedBytes(program->value().session_bytes());
    const Span<std::byte> states[] = {
        take(program->value().session_device_bytes(1) - given.missing_to_states, given.states_at)};
    SessionOptions session_options;
    session_options.device_memory = states, session_options.info = &info;
    session = std::make_unique<Result<Session>>(
        Session::create(program->value(), session_memory, session_options));
    if (!session->ok()) return;
    AlignedBytes workspace(program->value().method_metadata_bytes("forward").value());
    needed = program->value().requirements("forward", workspace).value();
    memory = AlignedBytes(needed.total());
    const Span<std::byte> activations[] = {
        take(needed.device[1] - given.missing_to_method, given.method_at)};
    MethodMemory all(memory);
    all.device = activations;
    method =
        std::make_unique<Result<Method>>(Method::create(session->value(), "forward", all, &info));
  }
  Span<std::byte> take(size_t bytes, size_t at) {
    return {device.take(at + bytes).data() + at, static_cast<index_t>(bytes)};
  }

  FakeDevice device{1 << 16};
  AlignedBytes file, metadata, session_memory, memory;
  MethodRequirements needed;
  ErrorInfo info;
  std::unique_ptr<Result<Program>> program;
  std::unique_ptr<Result<Session>> session;
  std::unique_ptr<Result<Method>> method;
};

TEST(device, runs_its_part_later_and_in_its_own_memory) {
  OnDevice on;
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  Method& method = on.method->value();
  const float x[] = {1, 2, 3, 4};
  ASSERT_EQ(method.set_input(0, x), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(204, 208, 212, 216));
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(206, 212, 218, 224));
  EXPECT_EQ(on.device.pending(), 0u);
}

TEST(device, holds_states_that_the_host_reads_through_copies) {
  OnDevice on;
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  const float x[] = {1, 2, 3, 4};
  ASSERT_EQ(on.method->value().set_input(0, x), Error::ok);
  ASSERT_EQ(on.method->value().execute(), Error::ok);
  Session& session = on.session->value();
  EXPECT_FALSE(session.state(0).on_host);
  float total[4] = {};
  ASSERT_EQ(session.read_state(0, {reinterpret_cast<std::byte*>(total), 16}), Error::ok);
  EXPECT_THAT(total, ElementsAre(101, 102, 103, 104));
  ASSERT_EQ(session.reset(), Error::ok);
  ASSERT_EQ(session.read_state(0, {reinterpret_cast<std::byte*>(total), 16}), Error::ok);
  EXPECT_THAT(total, ElementsAre(100, 100, 100, 100));
}

TEST(device, reports_errors_late_and_goes_on) {
  OnDevice on;
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  Method& method = on.method->value();
  on.device.fail_next();
  EXPECT_EQ(method.execute(), Error::device_failed);
  EXPECT_EQ(method.last_error().instruction, 4);  // the wait
  EXPECT_EQ(method.execute(), Error::ok);
}

// Without an instruction that waits, the end of the method does.
TEST(device, reports_errors_of_work_that_no_instruction_waits_for) {
  ProgramFile p = device_program();
  MethodTables& m = p.methods[0];
  m.instructions.resize(2), m.arguments.resize(5);  // the copy to the device, and a sum there
  OnDevice on(p);
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  Method& method = on.method->value();
  on.device.fail_next();
  EXPECT_EQ(method.execute(), Error::device_failed);
  EXPECT_THAT(method.last_error().message, StrEq("queued work on space {} failed"));
  EXPECT_EQ(method.execute(), Error::ok);
}

TEST(device, must_be_given) {
  Loaded loaded(device_program());
  EXPECT_EQ(loaded.error(), Error::not_supported);
  EXPECT_THAT(loaded.info.subject, StrEq("fake"));
}

TEST(device, takes_no_host_tensor_as_an_argument) {
  ProgramFile p = device_program();
  p.methods[0].arguments[2] = MethodTables::tensor(0);
  FakeDevice device(1 << 16);
  Device* const devices[] = {&device};
  const Span<std::byte> constants[] = {device.take(256)};
  LoadOptions options;
  options.devices = devices, options.device_memory = constants;
  Loaded loaded(p, options);
  EXPECT_EQ(loaded.error(), Error::invalid_program);
}

// ---- memory ----

// A constant and a state of 16 bytes, each with 64 readable bytes behind it; states and activations
// are rounded up to multiples of 64.
TEST(device, refuses_memory_that_lacks_a_byte) {
  const OnDevice exact(device_program(), {16 + 64, 0, 0});
  ASSERT_TRUE(exact.method != nullptr && exact.method->ok());
  EXPECT_EQ(exact.program->value().session_device_bytes(1), 128u);
  EXPECT_EQ(exact.needed.device[1], 64u + 128);

  const OnDevice constants(device_program(), {16 + 64 - 1, 0, 0});
  EXPECT_EQ(constants.program->error(), Error::out_of_memory);
  EXPECT_THAT(constants.info.message, StrEq("the device memory for constants is too small"));

  const OnDevice states(device_program(), {256, 1, 0});
  ASSERT_NE(states.session, nullptr);
  EXPECT_EQ(states.session->error(), Error::out_of_memory);
  EXPECT_THAT(states.info.message, StrEq("space {} needs {} bytes for states, {} were given"));
  EXPECT_THAT(states.info.values, ElementsAre(1, 128, 127));

  const OnDevice activations(device_program(), {256, 0, 1});
  ASSERT_NE(activations.method, nullptr);
  EXPECT_EQ(activations.method->error(), Error::out_of_memory);
  EXPECT_THAT(activations.info.message, StrEq("space {} needs {} bytes, {} were given"));
  EXPECT_THAT(activations.info.values, ElementsAre(1, 192, 191));
}

TEST(device, refuses_memory_at_an_address_that_is_no_multiple_of_64) {
  const auto is_refused = [](const auto& result, const ErrorInfo& info) {
    EXPECT_THAT(info.message, StrEq("the memory of space {} must lie at a multiple of {} bytes"));
    return result != nullptr && result->error() == Error::invalid_argument;
  };
  for (const size_t at : {1, 16, 63}) {
    const OnDevice constants(device_program(), {256, 0, 0, at, 0, 0}),
        states(device_program(), {256, 0, 0, 0, at, 0}),
        method(device_program(), {256, 0, 0, 0, 0, at});
    EXPECT_TRUE(is_refused(constants.program, constants.info)) << at;
    EXPECT_TRUE(is_refused(states.session, states.info)) << at;
    EXPECT_TRUE(is_refused(method.method, method.info)) << at;
  }
}

TEST(device, places_constants_behind_each_other) {
  ProgramFile p = device_program();
  const uint32_t second = p.constant<float>("second", {4}, {5, 6, 7, 8});
  p.constants[second].space = 1;
  EXPECT_TRUE(OnDevice(p, {128 + 80, 0, 0}).program->ok());
  EXPECT_EQ(OnDevice(p, {128 + 79, 0, 0}).program->error(), Error::out_of_memory);
}

// A state of 100 bytes that begins with zeros.
TEST(device, gives_states_their_first_values_again) {
  ProgramFile p = device_program();
  const uint32_t zeros = p.state("zeros", {25}, DType::f32, none, 1);
  OnDevice on(p);
  ASSERT_TRUE(on.session != nullptr && on.session->ok());
  Session& session = on.session->value();
  std::vector<float> values(25, 1.0f);
  const Span<std::byte> bytes(reinterpret_cast<std::byte*>(values.data()), 100);
  ASSERT_EQ(session.write_state(zeros, bytes), Error::ok);
  ASSERT_EQ(session.reset(), Error::ok);
  ASSERT_EQ(session.read_state(zeros, bytes), Error::ok);
  EXPECT_THAT(values, testing::Each(0.0f));
}

// forward(x: f32[4], on the device) -> y: t = x + x; y = t + x, both on the device, where x and y
// are io and t is an activation.
ProgramFile device_io_program() {
  ProgramFile p;
  p.spaces = {"cpu", "fake"};
  p.queues = {format::Queue(0), format::Queue(1)};
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32}, 1);
  MethodTables& m = p.methods.emplace_back();
  const uint32_t four = m.shape({m.literal(4)}), bytes = m.literal(16);
  const uint32_t x_buffer = m.buffer(bytes, {}, Region::io, 1);
  const uint32_t x = m.value(Storage::buffer, x_buffer, four),
                 y = m.value(Storage::buffer, m.buffer(bytes, {x_buffer}, Region::io, 1), four),
                 t = m.value(Storage::buffer, m.buffer(bytes, {}, Region::activations, 1), four);
  const uint32_t result = io_tensor(m, {m.literal(4)});
  m.run(add, {m.tensor(x), m.tensor(x), m.tensor(t)}, 1);
  m.run(add, {m.tensor(t), m.tensor(x), m.tensor(y)}, 1);
  m.instruction(InstructionKind::copy, 0, {m.tensor(y), m.tensor(result)}, 0, 1);
  m.input("x", x);
  m.output("y", result);
  return p;
}

TEST(device, keeps_inputs_and_activations_apart) {
  OnDevice on(device_io_program());
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  EXPECT_EQ(on.needed.device[1], 128u + 192) << "an activation, and two io buffers";
  Method& method = on.method->value();
  const float x[] = {1, 2, 3, 4};
  ASSERT_EQ(method.set_input(0, x), Error::ok);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(method.execute(), Error::ok);
    EXPECT_THAT(elements(method.output(0)), ElementsAre(3, 6, 9, 12));
  }
  EXPECT_EQ(OnDevice(device_io_program(), {256, 0, 1}).method->error(), Error::out_of_memory);
}

TEST(device, takes_dense_inputs_only_and_no_memory_of_the_host) {
  OnDevice on(device_io_program());
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  Method& method = on.method->value();
  Dense<float> x({4}, std::vector<float>(4 + 16));
  EXPECT_EQ(method.bind_input(0, x), Error::invalid_argument);
  x.shape.strides[0] = 2;
  EXPECT_EQ(method.set_input(0, x), Error::invalid_argument);
  EXPECT_THAT(method.last_error().message,
              StrEq("input {} lies on a device and takes dense tensors"));
}

// ---- work that waits in the queue ----

// forward(n: i64[1], x: f32[4]) -> x[:k], where k is n, copied to the device and back
TEST(device, is_waited_for_before_a_size_is_read_that_it_writes) {
  ProgramFile p;
  p.spaces = {"cpu", "fake"};
  p.queues = {format::Queue(0), format::Queue(1)};
  const uint32_t join = p.kernel(ops::join, {DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t one = m.shape({m.literal(1)}), eight = m.literal(8);
  const uint32_t n = io_tensor(m, {m.literal(1)}, DType::i64), x = io_tensor(m, {m.literal(4)}),
                 y = io_tensor(m, {m.literal(4)});
  const uint32_t there = m.value(Storage::buffer, m.buffer(eight, {}, Region::activations, 1), one,
                                 DType::i64),
                 back = m.value(Storage::buffer, m.buffer(eight), one, DType::i64);
  const uint32_t k = m.of_symbol(m.symbol(format::SymbolSource::element, back, 0, 0, 4));
  const uint32_t part = m.shape({k});
  const auto first = [&](uint32_t v) {
    return m.value(Storage::buffer, m.values[v].storage_index(), part);
  };
  const uint32_t x_part = first(x), y_part = first(y);
  m.instruction(InstructionKind::copy, 0, {m.tensor(n), m.tensor(there)}, 0, 1);
  m.instruction(InstructionKind::copy, 0, {m.tensor(there), m.tensor(back)}, 0, 1);
  m.instruction(InstructionKind::bind, 0);
  m.run(join, {m.tensors({x_part}), m.tensor(y_part)});
  m.input("n", n), m.input("x", x);
  m.output("y", y_part);
  OnDevice on(p);
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  Method& method = on.method->value();
  const float elements_of_x[] = {1, 2, 3, 4};
  ASSERT_EQ(method.set_input(1, elements_of_x), Error::ok);
  for (const int64_t size : {3, 1, 4}) {
    ASSERT_EQ(method.set_input(0, &size), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    EXPECT_THAT(elements(method.output(0)),
                testing::ElementsAreArray(elements_of_x, static_cast<size_t>(size)));
  }
}

TEST(device, has_nothing_left_to_do_when_the_host_fails) {
  ProgramFile p = device_program();
  const uint32_t take = p.kernel(ops::take, {DType::f32, DType::i64, DType::f32});
  MethodTables& m = p.methods[0];
  const uint32_t i = io_tensor(m, {m.literal(1)}, DType::i64), y = io_tensor(m, {m.literal(1)});
  // behind the copy to the device
  MethodTables failing = m;
  failing.arguments.resize(2), failing.instructions.resize(1);
  failing.run(take, {m.tensor(0), m.tensor(i), m.tensor(y)});
  failing.input("i", i);
  m = failing;
  OnDevice on(p);
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  Method& method = on.method->value();
  const int64_t behind = 4, first = 0;
  for (const int64_t* index : {&first, &behind}) {
    ASSERT_EQ(method.set_input(1, index), Error::ok);
    EXPECT_EQ(method.execute(), index == &first ? Error::ok : Error::invalid_argument);
    EXPECT_EQ(on.device.pending(), 0u);
  }
}

// ---- the end ----

TEST(device, is_told_who_ends_when_it_has_nothing_left_to_do) {
  OnDevice on;
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  ASSERT_EQ(on.method->value().execute(), Error::ok);
  ASSERT_EQ(on.method->value().close(), Error::ok);
  ASSERT_EQ(on.session->value().close(), Error::ok);
  ASSERT_EQ(on.program->value().close(), Error::ok);
  ASSERT_EQ(on.device.ended.size(), 3u);
  EXPECT_EQ(on.device.ended[0].first, DeviceUser::method);
  EXPECT_EQ(on.device.ended[0].second, on.device.last_context);
  EXPECT_EQ(on.device.ended[1].first, DeviceUser::session);
  EXPECT_EQ(on.device.ended[2].first, DeviceUser::program);
}

TEST(device, is_told_of_users_that_were_not_made) {
  OnDevice on(device_program(), {16 + 64 - 1, 0, 0});
  EXPECT_EQ(on.program->error(), Error::out_of_memory);
  ASSERT_EQ(on.device.ended.size(), 1u);
  EXPECT_EQ(on.device.ended[0].first, DeviceUser::program);

  ProgramFile p = device_program();
  p.constants[1].source = format::ConstantSource::external;  // the initial value
  p.constants[1].hash.assign(32, 7);
  OnDevice without_value(p);
  EXPECT_EQ(without_value.session->error(), Error::not_supported);
  ASSERT_EQ(without_value.device.ended.size(), 1u);
  EXPECT_EQ(without_value.device.ended[0].first, DeviceUser::session);
  EXPECT_EQ(without_value.program->value().close(), Error::ok);
}

TEST(device, may_fail_while_its_user_is_closed) {
  OnDevice on(device_io_program());
  ASSERT_TRUE(on.method != nullptr && on.method->ok());
  const float x[] = {1, 2, 3, 4};
  ASSERT_EQ(on.method->value().set_input(0, x), Error::ok);  // the copy waits
  on.device.fail_next();
  EXPECT_EQ(on.method->value().close(), Error::device_failed);
  EXPECT_THAT(on.method->value().last_error().message, StrEq("queued work of the method failed"));
  EXPECT_EQ(on.method->value().close(), Error::invalid_argument);
  EXPECT_EQ(on.session->value().close(), Error::ok);
}

}  // namespace
}  // namespace taper::test
