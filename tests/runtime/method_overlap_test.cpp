// What an instruction writes may lie exactly on what it reads if its kernel allows that, and
// nowhere else.
#include <gmock/gmock.h>

#include "programs.h"

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(method, refuses_results_that_overlap_arguments_in_another_way_than_exactly) {
  ProgramFile p = sums_program();
  MethodTables& m = p.methods[0];
  m.buffers[2] = format::Buffer(m.times(0, m.literal(32)), 0, 0, Region::activations, 0);
  m.arguments[5] = m.tensor(
      m.value(Storage::buffer, 2, 0, DType::f32, 1));  // t as result, t shifted by one as `self`
  m.arguments[3] = m.tensor(1);
  EXPECT_EQ(create_error(p), Error::invalid_program);
}

TEST(method, refuses_a_result_of_another_dtype_exactly_on_an_argument) {
  const auto refusal_if = [](bool on_the_argument) {
    ProgramFile p = sums_program();
    MethodTables& m = p.methods[0];
    const auto buffer = [&](Region region) {
      m.buffers.push_back(format::Buffer(m.literal(32), 0, 0, region, 0));
      return static_cast<uint32_t>(m.buffers.size() - 1);
    };
    const uint32_t from = buffer(Region::io),
                   to = on_the_argument ? from : buffer(Region::activations);
    const uint32_t eight = m.shape({m.literal(8)});
    m.run(p.kernel(ops::truncate, {DType::f32, DType::i32}),
          {m.tensor(m.value(Storage::buffer, from, eight)),
           m.tensor(m.value(Storage::buffer, to, eight, DType::i32))});
    Loaded loaded(p);
    const Error error = loaded.method().error();
    return std::string(error == Error::ok ? "" : loaded.info.message);
  };
  EXPECT_EQ(refusal_if(false), "");
  EXPECT_THAT(refusal_if(true), HasSubstr("what is written overlaps argument"));
}

// The state `numbers` has 12 elements: 0, 1, 2, …
uint32_t numbers_state(ProgramFile& p) {
  const uint32_t initial =
      p.constant<float>("initial", {12}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  return p.state("numbers", {12}, DType::f32, initial);
}

// An instruction that doubles the first 9 - n numbers and writes them from the fifth on.
void double_into_the_middle(ProgramFile& p, MethodTables& m, uint32_t n) {
  const uint32_t state = numbers_state(p);
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  const uint32_t part = m.shape({m.node(Operation::subtract, NumberType::i64, m.literal(9), n)});
  const uint32_t from = m.value(Storage::state, state, part),
                 to = m.value(Storage::state, state, part, DType::f32, 4);
  m.run(add, {m.tensor(from), m.tensor(from), m.tensor(to)});
}

std::vector<float> numbers_of(const Loaded& loaded) {
  std::vector<float> numbers(12);
  EXPECT_EQ(
      loaded.session->value().read_state(0, {reinterpret_cast<std::byte*>(numbers.data()), 12 * 4}),
      Error::ok);
  return numbers;
}

// With n = 5 the four numbers that are read end where those begin that are written.
TEST(method, checks_for_overlaps_again_when_a_size_changes) {
  ProgramFile p;
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 8));
  m.input("x", io_tensor(m, {n}));
  double_into_the_middle(p, m, n);
  ASSERT_LOADS(method, loaded, p);
  const auto run = [&](index_t size) {
    const index_t sizes[] = {size};
    EXPECT_EQ(method.resize_input(0, sizes), Error::ok);
    return method.execute();
  };
  EXPECT_EQ(run(5), Error::ok);
  const auto doubled = ElementsAre(0, 1, 2, 3, 0, 2, 4, 6, 8, 9, 10, 11);
  EXPECT_THAT(numbers_of(loaded), doubled);
  for (const index_t overlapping : {4, 1}) {
    EXPECT_EQ(run(overlapping), Error::invalid_program) << overlapping;
    EXPECT_THAT(method.last_error().message, HasSubstr("what is written overlaps argument {}"));
    EXPECT_EQ(method.last_error().instruction, 0);
    EXPECT_EQ(method.last_error().argument, 0);
    EXPECT_EQ(method.execute(), Error::invalid_program) << "not only the first time";
    EXPECT_THAT(numbers_of(loaded), doubled) << "nothing ran";
  }
  EXPECT_EQ(run(8), Error::ok);
}

TEST(method, checks_for_overlaps_when_an_instruction_has_bound_a_size) {
  ProgramFile p;
  MethodTables& m = p.methods.emplace_back();
  const uint32_t input = io_tensor(m, {m.literal(1)}, DType::i64);
  const uint32_t copy =
      m.value(Storage::buffer, m.buffer(m.literal(8)), m.shape({m.literal(1)}), DType::i64);
  m.input("n", input);
  m.instruction(InstructionKind::copy, 0, {m.tensor(input), m.tensor(copy)});
  m.instruction(InstructionKind::bind, 0);
  double_into_the_middle(p, m, m.of_symbol(m.symbol(SymbolSource::element, copy, 0, 1, 8)));
  ASSERT_LOADS(method, loaded, p);
  const auto run = [&](int64_t n) {
    EXPECT_EQ(method.set_input(0, &n), Error::ok);
    return method.execute();
  };
  EXPECT_EQ(run(5), Error::ok);
  const auto doubled = ElementsAre(0, 1, 2, 3, 0, 2, 4, 6, 8, 9, 10, 11);
  EXPECT_THAT(numbers_of(loaded), doubled);
  for (const int64_t overlapping : {4, 1}) {
    EXPECT_EQ(run(overlapping), Error::invalid_program) << overlapping;
    EXPECT_EQ(method.last_error().instruction, 2);
    EXPECT_THAT(numbers_of(loaded), doubled);
  }
  EXPECT_EQ(run(8), Error::ok);
}

// forward(x: f32[n]) -> a copy of `a` by a kernel. Both have the fixed size 8, but the copy lies
// above a buffer of n elements: it moves, though its instruction depends on no size.
TEST(method, checks_for_overlaps_of_buffers_that_another_size_moves) {
  ProgramFile p;
  const uint32_t join = p.kernel(ops::join, {DType::f32, DType::f32}),
                 fill = p.kernel(ops::fill, {DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 0, 8));
  const uint32_t bytes = m.literal(32), eight = m.shape({m.literal(8)});
  m.input("x", io_tensor(m, {n}));
  const uint32_t y = io_tensor(m, {m.literal(8)});
  const uint32_t a = m.value(Storage::buffer, m.buffer(bytes), eight);
  const uint32_t growing = m.buffer(m.times(n, m.literal(4)));
  const uint32_t moving = m.value(Storage::buffer, m.buffer(bytes, {growing}), eight);
  m.run(fill, {m.list({8}, format::ArgumentKind::integer, format::ArgumentForm::list), m.real(1.5),
               m.absent(), m.tensor(a)});
  m.run(join, {m.tensors({a}), m.tensor(moving)});
  m.instruction(InstructionKind::copy, 0, {m.tensor(moving), m.tensor(y)});
  m.output("y", y);
  ASSERT_LOADS(method, loaded, p);
  for (const index_t size : {1, 8, 0, 3}) {
    const index_t sizes[] = {size};
    ASSERT_EQ(method.resize_input(0, sizes), Error::ok);
    EXPECT_EQ(method.execute(), size == 0 ? Error::invalid_program : Error::ok) << size;
    if (size != 0) {
      EXPECT_THAT(elements(method.output(0)), testing::Each(1.5f));
    }
  }
}

// forward(x: f32[n]) negates n x n elements of a state. They are read as rows that lie `stride`
// apart, or as columns, and written as rows that lie 3 apart.
enum class Read { rows, columns, three_apart };
ProgramFile negating_program(Read read) {
  ProgramFile p;
  const uint32_t negate = p.kernel(ops::negate, {DType::f32, DType::f32});
  const uint32_t state = numbers_state(p);
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 3));
  const uint32_t one = m.literal(1), three = m.literal(3);
  m.input("x", io_tensor(m, {n}));
  std::vector<uint32_t> strides = {three, one};
  if (read == Read::rows) strides = {n, one};
  if (read == Read::columns) strides = {one, three};
  m.run(negate, {m.tensor(m.value(Storage::state, state, m.shape({n, n}, strides))),
                 m.tensor(m.value(Storage::state, state, m.shape({n, n}, {three, one})))});
  return p;
}

TEST(method, writes_in_place_where_sizes_and_strides_are_equal) {
  ASSERT_LOADS(method, loaded, negating_program(Read::three_apart));
  const index_t two[] = {2}, three[] = {3};
  ASSERT_EQ(method.resize_input(0, two), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(numbers_of(loaded), ElementsAre(0, -1, 2, -3, -4, 5, 6, 7, 8, 9, 10, 11));
  ASSERT_EQ(method.resize_input(0, three), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(numbers_of(loaded), ElementsAre(0, 1, -2, 3, 4, -5, -6, -7, -8, 9, 10, 11));
}

TEST(method, refuses_to_write_over_an_argument_in_the_order_of_other_strides) {
  EXPECT_EQ(create_error(negating_program(Read::columns)), Error::invalid_program);

  Loaded loaded(negating_program(Read::rows));  // 3 apart only when n is 3
  ASSERT_LOADED(method, loaded);
  const auto run = [&](index_t n) {
    const index_t sizes[] = {n};
    EXPECT_EQ(method.resize_input(0, sizes), Error::ok);
    return method.execute();
  };
  EXPECT_EQ(run(3), Error::ok);
  const auto negated = ElementsAre(0, -1, -2, -3, -4, -5, -6, -7, -8, 9, 10, 11);
  EXPECT_THAT(numbers_of(loaded), negated);
  EXPECT_EQ(run(2), Error::invalid_program);
  EXPECT_THAT(method.last_error().message, HasSubstr("what is written overlaps argument {}"));
  EXPECT_THAT(numbers_of(loaded), negated);
  EXPECT_EQ(run(1), Error::ok) << "strides of one row and column do not matter";
}

// forward() joins tensors of 2 numbers, which begin at `from`, to one that begins at `to`.
ProgramFile joining_program(std::vector<int64_t> from, int64_t to) {
  ProgramFile p;
  const uint32_t join = p.kernel(ops::join, {DType::f32, DType::f32});
  const uint32_t state = numbers_state(p);
  MethodTables& m = p.methods.emplace_back();
  std::vector<int64_t> parts;
  for (const int64_t first : from)
    parts.push_back(m.value(Storage::state, state, m.shape({m.literal(2)}), DType::f32, first));
  const uint32_t whole = m.shape({m.literal(2 * static_cast<int64_t>(from.size()))});
  m.run(join, {m.tensors(parts), m.tensor(m.value(Storage::state, state, whole, DType::f32, to))});
  return p;
}

TEST(method, looks_for_overlaps_with_every_tensor_of_a_list) {
  EXPECT_EQ(create_error(joining_program({4, 6}, 0)), Error::ok);
  EXPECT_EQ(create_error(joining_program({3, 6}, 0)), Error::invalid_program);
  EXPECT_EQ(create_error(joining_program({6, 3}, 0)), Error::invalid_program);
  EXPECT_EQ(create_error(joining_program({8, 10, 5}, 0)), Error::invalid_program);
}

TEST(method, refuses_to_write_over_an_argument_of_a_kernel_that_does_not_allow_it) {
  EXPECT_EQ(create_error(joining_program({2}, 2)), Error::invalid_program);
  EXPECT_EQ(create_error(joining_program({2}, 0)), Error::ok);
}

TEST(method, copies_onto_the_same_place_and_onto_no_other_that_overlaps) {
  const auto copying = [](int64_t to, int64_t stride = 1) {
    ProgramFile p;
    const uint32_t state = numbers_state(p);
    MethodTables& m = p.methods.emplace_back();
    const uint32_t four = m.shape({m.literal(4)}, {m.literal(stride)});
    m.instruction(
        InstructionKind::copy, 0,
        {m.tensor(m.value(Storage::state, state, four)),
         m.tensor(m.value(Storage::state, state, m.shape({m.literal(4)}), DType::f32, to))});
    return p;
  };
  EXPECT_EQ(create_error(copying(0)), Error::ok);
  EXPECT_EQ(create_error(copying(4)), Error::ok);
  for (const int64_t to : {1, 3}) EXPECT_EQ(create_error(copying(to)), Error::invalid_program);
  EXPECT_EQ(create_error(copying(8, 2)), Error::invalid_program) << "a copy takes no strides";
}

}  // namespace
}  // namespace taper::test
