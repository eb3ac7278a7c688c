#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_device.h"
#include "programs.h"

namespace taper::test {
namespace {

using format::InstructionKind;
using format::Region;
using format::Storage;
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
  MethodTables m;
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
  p.methods.push_back(m);
  return p;
}

struct OnDevice {
  OnDevice() : file(device_program().bytes()), metadata(Program::metadata_bytes(file).value()) {
    Device* const devices[] = {&device};
    const Span<std::byte> constants[] = {device.take(256)};
    LoadOptions options;
    options.devices = devices, options.device_memory = constants;
    program = std::make_unique<Result<Program>>(Program::load(file, kernels, metadata, options));
    if (!program->ok()) return;
    session_memory = AlignedBytes(program->value().session_bytes());
    const Span<std::byte> states[] = {device.take(program->value().session_device_bytes(1))};
    SessionOptions session_options;
    session_options.device_memory = states;
    session = std::make_unique<Result<Session>>(
        Session::create(program->value(), session_memory, session_options));
    if (!session->ok()) return;
    AlignedBytes workspace(program->value().method_metadata_bytes("forward").value());
    const MethodRequirements needed = program->value().requirements("forward", workspace).value();
    memory = AlignedBytes(needed.total());
    const Span<std::byte> activations[] = {device.take(needed.device[1])};
    MethodMemory all(memory);
    all.device = activations;
    method = std::make_unique<Result<Method>>(Method::create(session->value(), "forward", all));
  }
  FakeDevice device{1 << 16};
  AlignedBytes file, metadata, session_memory, memory;
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

}  // namespace
}  // namespace taper::test
