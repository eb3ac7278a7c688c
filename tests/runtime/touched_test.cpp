// A new size is followed to what it touches: nothing else is prepared, and nothing is forgotten.
#include <gmock/gmock.h>

#include "programs.h"

namespace taper::test {
namespace {

using testing::Each;
using testing::StrEq;

Error set(Method& method, index_t input, index_t size, float value) {
  return method.set_input(
      input, Dense<float>({size}, std::vector<float>(static_cast<size_t>(size), value)));
}

// forward(x0: f32[n0], x1: f32[n1], …) -> x0 + x0 + x0, x1 + x1 + x1, … in one space, where the
// buffer of each first sum lies above that of the one before.
ProgramFile stacked_sums(uint32_t count) {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  std::vector<uint32_t> inputs, sums, outputs;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, i, 0, 1, 100));
    inputs.push_back(io_tensor(m, {n}));
    outputs.push_back(io_tensor(m, {n}));
    std::vector<uint32_t> below;
    if (i > 0) below.push_back(m.values[sums[i - 1]].storage_index());
    sums.push_back(
        m.value(Storage::buffer, m.buffer(m.times(n, m.literal(4)), below), m.shape({n})));
  }
  for (uint32_t i = 0; i < count; ++i)
    m.run(add, {m.tensor(inputs[i]), m.tensor(inputs[i]), m.tensor(sums[i])});
  for (uint32_t i = 0; i < count; ++i)
    m.run(add, {m.tensor(sums[i]), m.tensor(inputs[i]), m.tensor(outputs[i])});
  for (uint32_t i = 0; i < count; ++i)
    m.input("x" + std::to_string(i), inputs[i]), m.output("y" + std::to_string(i), outputs[i]);
  return p;
}

// 40 symbols: more than bits, and with the places of buffers more groups than there is room for
class touched : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(by, touched, testing::Values(1, 2, 3, 5, 8, 23, 24, 40));

TEST_P(touched, sizes_give_the_right_results_and_prepare_nothing_else) {
  const uint32_t count = GetParam();
  ASSERT_LOADS(method, loaded, stacked_sums(count));
  std::vector<index_t> sizes(count, 3);
  for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(set(method, i, 3, 1.0f + float(i)), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  // symbols from the 24th on share a bit
  const auto sharing = [count](uint32_t i) { return i < 23 ? 1u : count - 23; };
  for (uint32_t turn = 0; turn < 3 * count; ++turn) {
    const uint32_t changed = turn * 7 % count;
    sizes[changed] = 1 + (turn * 13) % 100;
    const bool is_new = method.input(changed).shape->sizes[0] != sizes[changed];
    ASSERT_EQ(set(method, changed, sizes[changed], 1.0f + float(changed)), Error::ok);
    prepared = 0;
    ASSERT_EQ(method.execute(), Error::ok) << turn;
    EXPECT_EQ(prepared, is_new ? 2 * static_cast<int>(sharing(changed)) : 0) << turn;
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(method.output(i).shape->sizes[0], sizes[i]);
      ASSERT_THAT(elements(method.output(i)), Each(3 + 3 * float(i))) << i << " in " << turn;
    }
  }
  for (uint32_t i = 0; i < count; ++i) ASSERT_EQ(set(method, i, 5, 1.0f), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  for (uint32_t i = 0; i < count; ++i) ASSERT_THAT(elements(method.output(i)), Each(3.0f));
}

TEST(sizes, leave_instructions_whose_memory_only_moves) {
  ASSERT_LOADS(method, loaded, stacked_sums(3));
  for (index_t i = 0; i < 3; ++i) ASSERT_EQ(set(method, i, 20, 1), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  const auto place = [&](index_t i) {
    return reinterpret_cast<uintptr_t>(method.instruction(i).arguments[2].tensor->data);
  };
  const uintptr_t first = place(0), last = place(2);
  EXPECT_EQ(last - first, 256u);
  ASSERT_EQ(set(method, 0, 50, 1), Error::ok);
  prepared = 0;
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_EQ(prepared, 2);
  EXPECT_EQ(place(0), first);
  EXPECT_EQ(place(2) - first, 256u + 128);
  EXPECT_THAT(elements(method.output(2)), Each(3.0f));
}

// ---- scratch ----

const Kernel* const middle_list[] = {&add_f32, &middle_sum_rows_f32};
const KernelSet middle_kernels(middle_list);

Error sum(Method& method, index_t rows) {
  TAPER_TRY(method.set_input(
      0, Dense<float>({rows, 4}, std::vector<float>(static_cast<size_t>(rows) * 4, 1.0f))));
  return method.execute();
}

TEST(scratch, may_be_largest_between_the_smallest_and_the_largest_shapes) {
  bound_floats = 100;
  ASSERT_LOADS(method, loaded, sums_program(), {}, middle_kernels);
  for (const index_t rows : {1, 4, 8, 4}) {
    ASSERT_EQ(sum(method, rows), Error::ok);
    EXPECT_THAT(elements(method.output(0)), Each(12.0f));
  }
}

TEST(scratch, is_refused_beyond_the_bound) {
  bound_floats = 50;
  ASSERT_LOADS(method, loaded, sums_program(), {}, middle_kernels);
  EXPECT_EQ(sum(method, 8), Error::ok);
  EXPECT_EQ(sum(method, middle_rows), Error::out_of_memory);
  EXPECT_THAT(method.last_error().message, StrEq("{} bytes of scratch are needed, {} are there"));
  EXPECT_THAT(method.last_error().values[0], 400);
  EXPECT_EQ(sum(method, 3), Error::ok);
  // already at the maximum
  bound_floats = 1;
  EXPECT_EQ(loaded.method().error(), Error::out_of_memory);
  bound_floats = 100;
}

// ---- kernels by hash ----

TEST(load, takes_the_first_record_that_fits_of_any_number_of_kernels) {
  // many entries share a chain
  ProgramFile p;
  for (int i = 0; i < 200; ++i) {
    p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
    p.kernel(ops::sum_rows, {DType::f32, DType::f32});
  }
  Kernel second = add_f32, first_for_others = add_f32;
  first_for_others.needs = CpuFeature::i8mm;  // not of this call
  const Kernel* const list[] = {&first_for_others, &middle_sum_rows_f32, &add_f32, &sum_rows_f32,
                                &second};
  LoadOptions options;
  options.cpu = {};
  Loaded loaded(p, options, list);
  ASSERT_EQ(loaded.error(), Error::ok);
  const Program program = loaded.program->value();
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(&program.kernel(2 * i), &add_f32);
    EXPECT_EQ(&program.kernel(2 * i + 1), &middle_sum_rows_f32);
  }
}

}  // namespace
}  // namespace taper::test
