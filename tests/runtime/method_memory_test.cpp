// The memory that a caller gives: as much as was asked for suffices, a byte less is refused, and
// nobody touches what lies behind.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>

#include "../support/guarded_memory.h"
#include "programs.h"

namespace taper::test {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;
using tests::GuardedMemory;

// ---- kernels that read the 64 bytes behind each argument, as those may that load whole vectors
// ----

void read_behind(const Kernel& kernel, const Slot* slots) {
  for (int i = 0; i < kernel.expected_count; ++i) {
    if (kernel.expected[i].kind != Kind::tensor || kernel.expected[i].list) continue;
    const TensorRef& t = *slots[i].tensor;
    const volatile std::byte* const end = static_cast<const std::byte*>(t.data) + t.size_bytes();
    for (int b = 0; b < 64; ++b) (void)end[b];
  }
}

template <const Kernel& kernel>
Kernel reading_behind() {
  Kernel k = kernel;
  k.run = [](Context& context, const void* plan, const Slot* slots) {
    read_behind(kernel, slots);
    return kernel.run(context, plan, slots);
  };
  return k;
}

const Kernel reading_add = reading_behind<add_f32>(), reading_sum = reading_behind<sum_rows_f32>();
const Kernel* const reading_kernels[] = {&reading_add, &reading_sum};

// forward(x: f32[n, 16]) -> sum_rows(x + x + x), weights + state, n in 1..3. All four regions of
// the host are used, and the constant is the last thing in the file.
constexpr index_t columns = 16;
ProgramFile memory_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32}),
                 sum = p.kernel(ops::sum_rows, {DType::f32, DType::f32});
  std::vector<float> counting(columns);
  std::iota(counting.begin(), counting.end(), 1.0f);
  const uint32_t weights = p.constant<float>("weights", {columns}, counting),
                 state = p.state("state", {columns}, DType::f32, weights);
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 3)),
                 width = m.literal(columns);
  const uint32_t x = io_tensor(m, {n, width}), y = io_tensor(m, {n}), z = io_tensor(m, {width});
  const uint32_t bytes = m.times(n, m.literal(columns * 4)), matrix = m.shape({n, width});
  const uint32_t below = m.buffer(bytes);
  const uint32_t t = m.value(Storage::buffer, below, matrix),
                 u = m.value(Storage::buffer, m.buffer(bytes, {below}), matrix);
  const uint32_t vector = m.shape({width});
  m.run(add, {m.tensor(x), m.tensor(x), m.tensor(t)});
  m.run(add, {m.tensor(t), m.tensor(x), m.tensor(u)});
  m.run(sum, {m.tensor(u), m.tensor(y)});
  m.run(add, {m.tensor(m.value(Storage::constant, weights, vector)),
              m.tensor(m.value(Storage::state, state, vector)), m.tensor(z)});
  m.input("x", x);
  m.output("y", y), m.output("z", z);
  return p;
}

// Runs with every n.
void expect_right_results(Method& method) {
  std::vector<float> x(3 * columns);
  std::iota(x.begin(), x.end(), 0.0f);
  for (const index_t n : {3, 1, 2, 3}) {
    ASSERT_EQ(method.set_input(0, x.data(), {n, columns}), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    const std::vector<float> y = elements(method.output(0)), z = elements(method.output(1));
    ASSERT_EQ(y.size(), static_cast<size_t>(n));
    for (size_t r = 0; r < y.size(); ++r)  // 3 (16 r + 0 + … + 16 r + 15)
      EXPECT_EQ(y[r], 3.0f * (256.0f * static_cast<float>(r) + 120.0f));
    for (size_t c = 0; c < z.size(); ++c) EXPECT_EQ(z[c], 2.0f * static_cast<float>(c + 1));
  }
}

// A program all of whose memory ends where nobody may read: its file, its tables, its session.
struct GuardedProgram {
  explicit GuardedProgram(const ProgramFile& p, KernelSet set = reading_kernels)
      : bytes(p.bytes()), file(bytes.size()), metadata(Program::metadata_bytes(bytes).value()) {
    std::memcpy(file.data(), bytes.data(), bytes.size());
    program.emplace(Program::load(Span<const std::byte>(file), set, metadata));
    session_memory.emplace(program->value().session_bytes());
    session.emplace(Session::create(program->value(), *session_memory));
    AlignedBytes workspace(program->value().method_metadata_bytes("forward").value());
    needed = program->value().requirements("forward", workspace).value();
  }
  Error create_error(const MethodMemory& memory) {
    return Method::create(session->value(), "forward", memory, &info).error();
  }

  AlignedBytes bytes;
  GuardedMemory file, metadata;
  std::optional<Result<Program>> program;
  std::optional<GuardedMemory> session_memory;
  std::optional<Result<Session>> session;
  MethodRequirements needed;
  ErrorInfo info;
};

// How many bytes are as GuardedMemory and the tests below begin with them.
size_t untouched(Span<const std::byte> bytes) {
  return static_cast<size_t>(std::count(bytes.begin(), bytes.end(), std::byte{0xa5}));
}

// A piece of memory for each purpose, each of the size that is asked for.
struct Pieces {
  explicit Pieces(const MethodRequirements& needed)
      : metadata(needed.metadata),
        activations(needed.activations),
        scratch(needed.scratch),
        io(needed.io) {
    memory.metadata = metadata, memory.activations = activations;
    memory.scratch = scratch, memory.io = io;
  }
  GuardedMemory metadata, activations, scratch, io;
  MethodMemory memory;
};

TEST(guarded_memory, ends_the_process_that_passes_its_end) {
  const GuardedMemory memory(100);
  const volatile std::byte* const end = memory.data() + 100;
  EXPECT_EQ(memory.data()[99], std::byte{0xa5});
  EXPECT_DEATH((void)end[0], "");
}

TEST(method, stays_within_memory_of_exactly_the_required_sizes) {
  GuardedProgram p(memory_program());
  ASSERT_TRUE(p.session->ok());
  const Pieces pieces(p.needed);
  Result<Method> method = Method::create(p.session->value(), "forward", pieces.memory);
  ASSERT_TRUE(method.ok());
  expect_right_results(method.value());

  // Binding takes the caller's memory, and the 64 bytes behind that it must have.
  const GuardedMemory bound(3 * columns * 4 + 64);
  const Shape shape = Shape::dense(std::vector<index_t>{3, columns});
  std::memset(bound.data(), 0, bound.size());
  ASSERT_EQ(method.value().bind_input(0, {bound.data(), &shape, DType::f32}), Error::ok);
  ASSERT_EQ(method.value().execute(), Error::ok);
  EXPECT_THAT(elements(method.value().output(0)), Each(0));
}

TEST(method, runs_in_one_piece_of_memory_at_any_address) {
  GuardedProgram p(memory_program());
  ASSERT_TRUE(p.session->ok());
  const GuardedMemory memory(p.needed.total() + 63);
  for (index_t at = 0; at < 64; ++at) {
    std::memset(memory.data(), 0xa5, memory.size());
    const Span<std::byte> part(memory.data() + at, static_cast<index_t>(p.needed.total()));
    Result<Method> method = Method::create(p.session->value(), "forward", part);
    ASSERT_TRUE(method.ok()) << at;
    expect_right_results(method.value());
    EXPECT_EQ(untouched({part.end(), 63 - at}), static_cast<size_t>(63 - at));
  }
}

TEST(method, refuses_a_piece_of_memory_that_lacks_a_byte) {
  GuardedProgram p(memory_program());
  ASSERT_TRUE(p.session->ok());
  ASSERT_EQ(p.needed.scratch, 64u);
  const Pieces pieces(p.needed);
  const struct {
    Span<std::byte> MethodMemory::*piece;
    const char* message;
  } all[] = {{&MethodMemory::activations, "activations need {} bytes"},
             {&MethodMemory::io, "inputs and outputs need {} bytes"},
             {&MethodMemory::scratch, "kernels need {} bytes of scratch"}};
  for (const auto& [piece, message] : all) {
    MethodMemory memory = pieces.memory;
    const Span<std::byte> exact = memory.*piece;
    memory.*piece = exact.part(0, exact.size() - 1);
    EXPECT_EQ(p.create_error(memory), Error::out_of_memory) << message;
    EXPECT_THAT(p.info.message, HasSubstr(message));
    EXPECT_EQ(p.info.values[0], exact.size()) << "needed";
    EXPECT_EQ(p.info.values[1], exact.size() - 1) << "given";

    // At another address 63 bytes more are needed, and suffice.
    const GuardedMemory elsewhere(static_cast<size_t>(exact.size()) + 63);
    memory.*piece = {elsewhere.data(), exact.size()};
    EXPECT_EQ(p.create_error(memory), Error::out_of_memory) << message;
    memory.*piece = {elsewhere.data() + 1, exact.size() + 61};
    EXPECT_EQ(p.create_error(memory), Error::out_of_memory) << message;
    memory.*piece = elsewhere;
    Result<Method> method = Method::create(p.session->value(), "forward", memory);
    ASSERT_TRUE(method.ok()) << message;
    expect_right_results(method.value());
  }
}

// The fewest bytes at a multiple of 64 that `create` accepts, `enough` at most. However few they
// are, nothing behind them is written.
template <class Create>
size_t fewest_bytes(size_t enough, const Create& create) {
  AlignedBytes memory(enough + 128);
  size_t fewest = enough + 1;
  for (size_t size = enough; size > 0 && size + 300 > enough; --size) {
    std::memset(memory.data(), 0xa5, memory.size());
    if (create(Span<std::byte>(memory.data(), static_cast<index_t>(size)))) {
      EXPECT_EQ(size + 1, fewest) << "fewer bytes suffice, more do not";
      fewest = size;
    }
    const size_t behind = memory.size() - size;
    EXPECT_EQ(untouched({memory.data() + size, static_cast<index_t>(behind)}), behind) << size;
  }
  return fewest;
}

// What is told leaves room for an address that is no multiple of 64; tables of pointers and numbers
// alone need a multiple of 8.
TEST(program, takes_no_byte_behind_its_tables) {
  const AlignedBytes file = memory_program().bytes();
  const size_t told = Program::metadata_bytes(file).value();
  EXPECT_EQ(
      fewest_bytes(
          told, [&](Span<std::byte> memory) { return Program::load(file, kernels, memory).ok(); }),
      told - alignof(void*));
}

TEST(session, takes_no_byte_behind_its_memory) {
  Loaded loaded(memory_program());
  ASSERT_EQ(loaded.error(), Error::ok);
  const Program& program = loaded.program->value();
  const size_t told = program.session_bytes();
  EXPECT_EQ(
      fewest_bytes(told,
                   [&](Span<std::byte> memory) { return Session::create(program, memory).ok(); }),
      told - 64);
}

TEST(method, takes_no_byte_behind_its_tables) {
  GuardedProgram p(memory_program());
  ASSERT_TRUE(p.session->ok());
  const size_t told = p.program->value().method_metadata_bytes("forward").value();
  Pieces pieces(p.needed);
  EXPECT_EQ(fewest_bytes(told,
                         [&](Span<std::byte> memory) {
                           pieces.memory.metadata = memory;
                           return p.create_error(pieces.memory) == Error::ok;
                         }),
            told - 64);
  EXPECT_EQ(fewest_bytes(told,
                         [&](Span<std::byte> memory) {
                           return p.program->value().requirements("forward", memory).ok();
                         }),
            told - 64);
}

// However the states' size is rounded: the last one ends right before the 64 bytes.
TEST(session, has_readable_bytes_behind_its_last_state) {
  for (int64_t count = 1; count <= 16; ++count) {
    ProgramFile p;
    const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
    const std::vector<float> ones(static_cast<size_t>(count), 1.0f);
    const uint32_t state =
        p.state("state", {count}, DType::f32, p.constant<float>("ones", {count}, ones));
    MethodTables& m = p.methods.emplace_back();
    const uint32_t s = m.value(Storage::state, state, m.shape({m.literal(count)}));
    m.run(add, {m.tensor(s), m.tensor(s), m.tensor(s)});
    m.output("s", s);
    GuardedProgram guarded(p);
    ASSERT_TRUE(guarded.session->ok());
    AlignedBytes memory(guarded.needed.total());
    Result<Method> method =
        Method::create(guarded.session->value(), "forward", MethodMemory(memory));
    ASSERT_TRUE(method.ok());
    ASSERT_EQ(method.value().execute(), Error::ok);
    EXPECT_THAT(elements(method.value().output(0)), Each(2.0f));
  }
}

TEST(session, leaves_states_in_memory_that_holds_zeros_already) {
  ProgramFile p;
  (void)p.state("state", {4}, DType::u8);
  p.methods.emplace_back();
  const Loaded loaded(p);
  ASSERT_EQ(loaded.error(), Error::ok);
  const auto state_in = [&](bool zeroed) {
    AlignedBytes memory(loaded.program->value().session_bytes());
    std::memset(memory.data(), 7, memory.size());  // shows what is written
    SessionOptions options;
    options.zeroed = zeroed;
    Result<Session> session = Session::create(loaded.program->value(), memory, options);
    std::vector<uint8_t> state(4);
    EXPECT_EQ(session.value().read_state(0, {reinterpret_cast<std::byte*>(state.data()), 4}),
              Error::ok);
    EXPECT_EQ(session.value().close(), Error::ok);
    return state;
  };
  EXPECT_THAT(state_in(false), Each(0));
  EXPECT_THAT(state_in(true), Each(7));
}

TEST(method, aligns_every_buffer_to_64_bytes) {
  Loaded loaded(memory_program());  // an output of 12 bytes, and one above it
  ASSERT_LOADED(method, loaded);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(method.input(0).data) % 64, 0u);
  for (index_t i = 0; i < method.instruction_count(); ++i)
    for (const Slot& s : method.instruction(i).arguments)
      EXPECT_EQ(reinterpret_cast<uintptr_t>(s.tensor->data) % 64, 0u) << i;
}

// ---- how much is needed ----

// c lies above a, which is large, and above b, which is small: a must survive.
TEST(method, places_a_buffer_above_all_that_it_lies_above) {
  ProgramFile p;
  const uint32_t fill = p.kernel(ops::fill, {DType::f32}),
                 join = p.kernel(ops::join, {DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t a_buffer = m.buffer(m.literal(40 * 4)),
                 b_buffer = m.buffer(m.literal(4), {a_buffer});
  const uint32_t small_buffer = m.buffer(m.literal(4));
  const uint32_t forty = m.shape({m.literal(40)}), one = m.shape({m.literal(1)});
  const uint32_t a = m.value(Storage::buffer, a_buffer, forty),
                 b = m.value(Storage::buffer, b_buffer, one),
                 c = m.value(Storage::buffer, m.buffer(m.literal(4), {b_buffer, small_buffer}),
                             one);
  const uint32_t y = io_tensor(m, {m.literal(42)});
  const auto filled = [&](uint32_t value, int64_t size, double number) {
    m.run(fill, {m.list({size}, format::ArgumentKind::integer, format::ArgumentForm::list),
                 m.real(number), m.absent(), m.tensor(value)});
  };
  filled(a, 40, 1), filled(b, 1, 2), filled(c, 1, 3);
  m.run(join, {m.tensors({a, b, c}), m.tensor(y)});
  m.output("y", y);
  ASSERT_LOADS(method, loaded, p);
  ASSERT_EQ(method.execute(), Error::ok);
  std::vector<float> expected(40, 1.0f);
  expected.push_back(2), expected.push_back(3);
  EXPECT_EQ(elements(method.output(0)), expected);
}

// forward(x: f32[n]) -> sum_rows of (rows, width) elements of a state that has 64, n in 1..8
ProgramFile scratch_program(const std::function<uint32_t(MethodTables&, uint32_t n)>& width) {
  ProgramFile p;
  const uint32_t sum = p.kernel(ops::sum_rows, {DType::f32, DType::f32});
  const uint32_t state = p.state("state", {64}, DType::f32);
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 8));
  const uint32_t one = m.literal(1);
  m.input("x", io_tensor(m, {n}));
  const uint32_t y = io_tensor(m, {one});
  for (const uint32_t columns : {width(m, n), one})
    m.run(sum, {m.tensor(m.value(Storage::state, state, m.shape({one, columns}))), m.tensor(y)});
  return p;
}

Error run_with(Method& method, index_t n) {
  const index_t sizes[] = {n};
  EXPECT_EQ(method.resize_input(0, sizes), Error::ok);
  return method.execute();
}

TEST(method, asks_for_the_scratch_of_its_greediest_kernel_and_size) {
  const auto scratch = [](const auto& width) {
    return GuardedProgram(scratch_program(width)).needed.scratch;
  };
  EXPECT_EQ(scratch([](MethodTables& m, uint32_t) { return m.literal(48); }), 48u * 4);
  EXPECT_EQ(scratch([](MethodTables& m, uint32_t n) { return m.times(n, m.literal(6)); }), 48u * 4);
  EXPECT_EQ(scratch([](MethodTables& m, uint32_t n) {
              return m.node(Operation::floor_divide, NumberType::i64, m.literal(48), n);
            }),
            48u * 4);
}

// n (9 - n) is 8 for the smallest and the largest n, and 20 for 4.
TEST(method, refuses_sizes_that_need_more_scratch_than_there_is) {
  GuardedProgram p(scratch_program([](MethodTables& m, uint32_t n) {
    return m.times(n, m.node(Operation::subtract, NumberType::i64, m.literal(9), n));
  }));
  ASSERT_TRUE(p.session->ok());
  Pieces pieces(p.needed);
  pieces.memory.scratch = {pieces.scratch.data(), 8 * 4};
  {
    Result<Method> method = Method::create(p.session->value(), "forward", pieces.memory);
    ASSERT_TRUE(method.ok());
    for (const index_t n : {8, 4, 1, 5, 2}) {
      EXPECT_EQ(run_with(method.value(), n), n == 1 || n == 8 ? Error::ok : Error::out_of_memory);
      if (n == 1 || n == 8) continue;
      EXPECT_THAT(method.value().last_error().message, HasSubstr("{} bytes of scratch are needed"));
      EXPECT_EQ(method.value().last_error().values[0], n * (9 - n) * 4);
      EXPECT_EQ(method.value().last_error().values[1], 8 * 4);
    }
  }
  const GuardedMemory more(20 * 4 + 64);
  pieces.memory.scratch = more;
  Result<Method> method = Method::create(p.session->value(), "forward", pieces.memory);
  ASSERT_TRUE(method.ok());
  for (const index_t n : {1, 4, 8}) EXPECT_EQ(run_with(method.value(), n), Error::ok) << n;
}

// forward(x: f32[n]) -> f32[9 - n], n in 1..8: 64 (9 - n) bytes of activations, which only the
// largest n asks for.
ProgramFile shrinking_program(int64_t output_bytes) {
  ProgramFile p;
  const uint32_t fill = p.kernel(ops::fill, {DType::f32}),
                 add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 8));
  const uint32_t rest = m.node(Operation::subtract, NumberType::i64, m.literal(9), n);
  m.input("x", io_tensor(m, {n}));
  const uint32_t t =
      m.value(Storage::buffer, m.buffer(m.times(rest, m.literal(64))), m.shape({rest}));
  const uint32_t bytes = output_bytes == 0 ? m.times(rest, m.literal(4)) : m.literal(output_bytes);
  const uint32_t y = m.value(Storage::buffer, m.buffer(bytes, {0}, Region::io), m.shape({rest}));
  m.run(fill, {m.list({rest}, format::ArgumentKind::integer, format::ArgumentForm::expression_list),
               m.real(1.5), m.absent(), m.tensor(t)});
  m.run(add, {m.tensor(t), m.tensor(t), m.tensor(y)});
  m.output("y", y);
  return p;
}

TEST(method, refuses_sizes_that_need_more_activations_than_there_are) {
  GuardedProgram p(shrinking_program(32), kernels);
  ASSERT_TRUE(p.session->ok());
  ASSERT_EQ(p.needed.activations, 64u + 64);
  Pieces pieces(p.needed);
  const index_t enough_for_3 = 6 * 64 + 64;
  const GuardedMemory activations(enough_for_3);
  for (const index_t missing : {0, 1, 63}) {
    pieces.memory.activations = {activations.data(), enough_for_3 - missing};
    Result<Method> method = Method::create(p.session->value(), "forward", pieces.memory);
    ASSERT_TRUE(method.ok());
    for (const index_t n : {8, 3, 4, 2, 1, 5}) {
      const bool fits = n > 3 || (n == 3 && missing == 0);
      EXPECT_EQ(run_with(method.value(), n), fits ? Error::ok : Error::out_of_memory)
          << n << ", " << missing;
      if (fits) {
        EXPECT_EQ(elements(method.value().output(0)),
                  std::vector<float>(static_cast<size_t>(9 - n), 3.0f));
        continue;
      }
      EXPECT_THAT(method.value().last_error().message, HasSubstr("bytes of activations"));
      EXPECT_EQ(method.value().last_error().values[0], 64 * (9 - n) + 64);
      EXPECT_EQ(method.value().last_error().values[1], enough_for_3 - missing);
    }
  }
}

// Io buffers keep their places, so none may become larger than at the maximum.
TEST(method, refuses_an_output_that_outgrows_its_place) {
  Loaded loaded(shrinking_program(0));
  ASSERT_EQ(loaded.error(), Error::ok);
  AlignedBytes workspace(loaded.program->value().method_metadata_bytes("forward").value());
  MethodRequirements needed = loaded.program->value().requirements("forward", workspace).value();
  needed.activations += 8 * 64;
  const Pieces pieces(needed);
  Result<Method> method = Method::create(loaded.session->value(), "forward", pieces.memory);
  ASSERT_TRUE(method.ok());
  EXPECT_EQ(run_with(method.value(), 8), Error::ok);
  for (const index_t n : {7, 1}) {
    EXPECT_EQ(run_with(method.value(), n), Error::out_of_memory);
    EXPECT_THAT(method.value().last_error().message, HasSubstr("more than at the maximum"));
  }
  EXPECT_EQ(run_with(method.value(), 8), Error::ok);
}

TEST(method, touches_only_what_a_call_uses) {
  ProgramFile p = sums_program();
  p.methods[0].symbols[0] = {1, 1 << 16, 0, 0, SymbolSource::input_extent, NumberType::i64};
  Loaded loaded(p);
  ASSERT_EQ(loaded.error(), Error::ok);
  const Program& program = loaded.program->value();
  AlignedBytes workspace(program.method_metadata_bytes("forward").value());
  const MethodRequirements needed = program.requirements("forward", workspace).value();
  ASSERT_GE(needed.activations, size_t{16} << 16);
  AlignedBytes activations(needed.activations), io(needed.io), scratch(needed.scratch + 64);
  for (AlignedBytes* piece : {&activations, &io, &scratch})
    std::memset(piece->data(), 0xa5, piece->size());
  MethodMemory memory;
  memory.metadata = workspace;
  memory.activations = activations, memory.io = io, memory.scratch = scratch;
  Result<Method> method = Method::create(loaded.session->value(), "forward", memory);
  ASSERT_TRUE(method.ok());
  for (const AlignedBytes* piece : {&activations, &io, &scratch})
    EXPECT_EQ(untouched(*piece), piece->size());

  const float x[] = {1, 2, 3, 4};
  ASSERT_EQ(method.value().set_input(0, x, {1, 4}), Error::ok);
  ASSERT_EQ(method.value().execute(), Error::ok);
  EXPECT_THAT(elements(method.value().output(0)), ElementsAre(30));
  EXPECT_LE(activations.size() - untouched(activations), 16u) << "a row of four floats";
  EXPECT_LE(io.size() - untouched(io), 20u) << "a row, and its sum";
}

// At 8, the maximum of the batch, a check fails. Still the caller may write an input of 8 rows.
TEST(method, has_memory_for_the_largest_inputs_even_if_checks_exclude_them) {
  const auto program_with = [](int64_t input_bytes) {
    ProgramFile p = sums_program();
    MethodTables& m = p.methods[0];
    const uint32_t batch = 0, four = m.literal(4);
    m.checks.push_back({m.node(format::Operation::less_equal, NumberType::boolean, batch, four),
                        "at most 4 rows",
                        {}});
    format::Buffer& x = m.buffers[0];
    x = {m.literal(input_bytes), x.above_first(), x.above_count(), x.region(), x.space()};
    return p;
  };
  Loaded loaded(program_with(8 * 16));
  Result<Method> method = loaded.method();
  ASSERT_TRUE(method.ok()) << loaded.info.message;
  EXPECT_EQ(method.value().input(0).size_bytes(), 8 * 16);
  EXPECT_EQ(method.value().execute(), Error::invalid_argument);
  const float x[] = {1, 2, 3, 4};
  ASSERT_EQ(method.value().set_input(0, x, {1, 4}), Error::ok);
  ASSERT_EQ(method.value().execute(), Error::ok);
  EXPECT_THAT(elements(method.value().output(0)), ElementsAre(30));

  Loaded small(program_with(4 * 16));
  EXPECT_EQ(small.method().error(), Error::invalid_program);
}

TEST(method, takes_memory_from_its_session) {
  const AlignedBytes file = sums_program().bytes();
  alignas(64) static std::byte metadata[4096], memory[8192];
  Result<Program> program = Program::load(file, kernels, metadata);
  ASSERT_TRUE(program.ok());
  Result<Session> session = Session::create(program.value(), memory);
  ASSERT_TRUE(session.ok());
  Result<Method> first = Method::create(session.value(), "forward"),
                 second = Method::create(session.value(), "forward");
  ASSERT_TRUE(first.ok() && second.ok());
  const float ones[32] = {1, 1, 1, 1};
  ASSERT_EQ(first.value().set_input(0, ones, {8, 4}), Error::ok);
  ASSERT_EQ(first.value().execute(), Error::ok);
  ASSERT_EQ(second.value().execute(), Error::ok);
  EXPECT_EQ(static_cast<float*>(first.value().output(0).data)[0], 12.0f);
  EXPECT_EQ(static_cast<float*>(second.value().output(0).data)[0], 0.0f);
  ErrorInfo info;
  EXPECT_EQ(Method::create(session.value(), "backward", {}, &info).error(),
            Error::invalid_argument);
  EXPECT_THAT(info.subject, StrEq("backward"));
}

}  // namespace
}  // namespace taper::test
