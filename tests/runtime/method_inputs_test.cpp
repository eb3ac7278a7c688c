// What a method takes as input: sizes within its memory, sizes that fit each other, numbers,
// memory of the caller's.
#include <gmock/gmock.h>

#include "programs.h"

namespace taper::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;

TEST(method, copies_strided_inputs) {
  ASSERT_LOADS(method, loaded, sums_program());
  float columns[] = {1, 5, 2, 6, 3, 7, 4, 8};  // the transpose of (2, 4)
  Shape shape = Shape::dense(std::vector<index_t>{2, 4});
  shape.strides[0] = 1, shape.strides[1] = 2;
  ASSERT_EQ(method.set_input(0, TensorRef{columns, &shape, DType::f32}), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(30, 78));
}

TEST(method, copies_elements_whose_sizes_are_given) {
  ASSERT_LOADS(method, loaded, sums_program());
  const float row[] = {1, 2, 3, 4};
  ASSERT_EQ(method.set_input(0, row, {1, 4}), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(30));
  EXPECT_EQ(method.set_input(0, row, {4}), Error::invalid_argument);
  EXPECT_EQ(method.set_input(0, row, {9, 4}), Error::invalid_argument);
  EXPECT_EQ(method.set_input(1, row, {1, 4}), Error::invalid_argument);
  EXPECT_EQ(method.set_input(0, row, {PTRDIFF_MAX, PTRDIFF_MAX}), Error::invalid_argument);
  EXPECT_EQ(method.set_input(0, row, {-1, 4}), Error::invalid_argument);
}

// A plain pointer says nothing of its batch: neither the largest one nor the last one is meant.
TEST(method, refuses_elements_without_sizes_where_a_size_is_symbolic) {
  ASSERT_LOADS(method, loaded, sums_program());
  const float row[] = {1, 2, 3, 4};
  EXPECT_EQ(method.set_input(0, row), Error::invalid_argument);
  EXPECT_THAT(method.last_error().message, HasSubstr("give the sizes"));
  ASSERT_EQ(method.set_input(0, row, {1, 4}), Error::ok);
  EXPECT_EQ(method.set_input(0, row), Error::invalid_argument);
  EXPECT_EQ(method.set_input(1, row), Error::invalid_argument);
  EXPECT_EQ(method.set_input(-1, row), Error::invalid_argument);
}

TEST(method, uses_bound_memory_without_a_copy) {
  ASSERT_LOADS(method, loaded, sums_program());
  Dense<float> x({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  x.elements.resize(8 + 16);  // 64 readable bytes behind
  ASSERT_EQ(method.bind_input(0, x), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(30, 78));
  x.elements[0] = 11;
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(60, 78));
  Dense<float> y({1, 4}, {1, 1, 1, 1});
  ASSERT_EQ(method.set_input(0, y), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(12));
}

TEST(method, refuses_wrong_inputs_and_says_why) {
  ASSERT_LOADS(method, loaded, sums_program());
  Dense<double> doubles({2, 4}, std::vector<double>(8));
  Dense<float> rank({8}, std::vector<float>(8)), columns({2, 5}, std::vector<float>(10)),
      batch({9, 4}, std::vector<float>(36)), none_({0, 4}, {});
  EXPECT_EQ(method.set_input(0, doubles), Error::invalid_argument);
  EXPECT_THAT(method.last_error().message, StrEq("an input is {dtype}, and must be {dtype}"));
  EXPECT_EQ(method.set_input(0, rank), Error::invalid_argument);
  EXPECT_EQ(method.last_error().values[0], 1);
  EXPECT_EQ(method.set_input(0, columns), Error::invalid_argument);
  EXPECT_EQ(method.last_error().values[2], 4);
  EXPECT_EQ(method.set_input(0, batch), Error::invalid_argument);
  EXPECT_EQ(method.set_input(0, none_), Error::invalid_argument);
  EXPECT_EQ(method.set_input(1, batch), Error::invalid_argument);
  EXPECT_EQ(method.set_number(0, int64_t{1}), Error::invalid_argument);
  EXPECT_THAT(method.last_error().subject, StrEq("forward"));
  EXPECT_EQ(method.execute(), Error::ok);
}

TEST(method, refuses_inputs_without_memory_or_shape) {
  ASSERT_LOADS(method, loaded, sums_program());
  const Shape shape = Shape::dense(std::vector<index_t>{2, 4});
  EXPECT_EQ(method.set_input(0, TensorRef{nullptr, &shape, DType::f32}), Error::invalid_argument);
  EXPECT_THAT(method.last_error().message, StrEq("input {} has no memory"));
  EXPECT_EQ(method.bind_input(0, TensorRef{nullptr, &shape, DType::f32}), Error::invalid_argument);
  float x[8] = {};
  EXPECT_EQ(method.set_input(0, TensorRef{x, nullptr, DType::f32}), Error::invalid_argument);
  EXPECT_EQ(method.bind_input(0, TensorRef{x, nullptr, DType::f32}), Error::invalid_argument);
}

// ---- sizes ----

// forward(a: f32[n], b: f32[2 n], c: f32[n + k], d: f32[k]) -> [a, b], [c, d], n in 1..4, k in 1..3
ProgramFile expressions_program() {
  ProgramFile p;
  const uint32_t join = p.kernel(ops::join, {DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 4)),
                 k = m.of_symbol(m.symbol(SymbolSource::input_extent, 3, 0, 1, 3));
  const uint32_t two_n = m.times(m.literal(2), n),
                 sum = m.node(Operation::add, NumberType::i64, n, k);
  const uint32_t a = io_tensor(m, {n}), b = io_tensor(m, {two_n}), c = io_tensor(m, {sum}),
                 d = io_tensor(m, {k});
  const uint32_t ab = io_tensor(m, {m.times(m.literal(3), n)}),
                 cd = io_tensor(m, {m.node(Operation::add, NumberType::i64, sum, k)});
  m.run(join, {m.tensors({a, b}), m.tensor(ab)});
  m.run(join, {m.tensors({c, d}), m.tensor(cd)});
  m.input("a", a), m.input("b", b), m.input("c", c), m.input("d", d);
  m.output("ab", ab), m.output("cd", cd);
  return p;
}

// Only the memory of the method limits an extent such as 2 n when it is given.
TEST(method, refuses_an_input_beyond_its_capacity) {
  ASSERT_LOADS(method, loaded, expressions_program());
  constexpr index_t huge = 1 << 16;
  std::vector<float> many(huge);
  const index_t largest[] = {4, 8, 7, 3};
  for (index_t i = 0; i < 4; ++i) {
    ASSERT_EQ(method.set_input(i, many.data(), {largest[i]}), Error::ok) << i;
    for (const index_t size : {largest[i] + 1, index_t{1000}, huge}) {
      const index_t sizes[] = {size};
      const Shape shape = Shape::dense(sizes);
      const TensorRef x{many.data(), &shape, DType::f32};
      EXPECT_EQ(method.set_input(i, x), Error::invalid_argument) << i << ", " << size;
      EXPECT_EQ(method.resize_input(i, sizes), Error::invalid_argument) << i << ", " << size;
      EXPECT_EQ(method.bind_input(i, x), Error::invalid_argument) << i << ", " << size;
      EXPECT_EQ(method.input(i).shape->sizes[0], largest[i]) << "what was set stays";
    }
  }
  EXPECT_EQ(method.set_input(1, many.data(), {9}), Error::invalid_argument);
  EXPECT_THAT(method.last_error().message,
              StrEq("an input is larger than the program takes: {} bytes, at most {}"));
  EXPECT_THAT(method.last_error().values, ElementsAre(36, 32, 0));
  EXPECT_THAT(method.last_error().subject, StrEq("b"));
  EXPECT_EQ(method.execute(), Error::ok);
}

TEST(method, follows_each_of_several_symbols) {
  ASSERT_LOADS(method, loaded, expressions_program());
  const auto numbers = [](index_t count, float first) {
    std::vector<float> v;
    for (index_t i = 0; i < count; ++i) v.push_back(first + static_cast<float>(i));
    return v;
  };
  for (const auto& [n, k] : std::vector<std::pair<index_t, index_t>>{
           {1, 1}, {4, 1}, {4, 3}, {2, 3}, {2, 2}, {1, 3}, {3, 1}}) {
    const auto a = numbers(n, 0), b = numbers(2 * n, 100), c = numbers(n + k, 200),
               d = numbers(k, 300);
    ASSERT_EQ(method.set_input(0, a.data(), {n}), Error::ok);
    ASSERT_EQ(method.set_input(1, b.data(), {2 * n}), Error::ok);
    ASSERT_EQ(method.set_input(2, c.data(), {n + k}), Error::ok);
    ASSERT_EQ(method.set_input(3, d.data(), {k}), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok) << n << ", " << k;
    const auto joined = [](std::vector<float> x, const std::vector<float>& y) {
      x.insert(x.end(), y.begin(), y.end());
      return x;
    };
    EXPECT_EQ(elements(method.output(0)), joined(a, b));
    EXPECT_EQ(elements(method.output(1)), joined(c, d));
  }
}

TEST(method, compares_an_extent_with_its_expression) {
  ASSERT_LOADS(method, loaded, expressions_program());
  const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_EQ(method.set_input(0, x, {2}), Error::ok);
  ASSERT_EQ(method.set_input(1, x, {4}), Error::ok);
  ASSERT_EQ(method.set_input(2, x, {3}), Error::ok);
  ASSERT_EQ(method.set_input(3, x, {1}), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  for (const index_t size : {3, 5, 8}) {
    ASSERT_EQ(method.set_input(1, x, {size}), Error::ok);
    EXPECT_EQ(method.execute(), Error::invalid_argument) << size;
    EXPECT_THAT(method.last_error().message, HasSubstr("must be {} beside the other inputs"));
    EXPECT_THAT(method.last_error().values, ElementsAre(0, size, 4));
    EXPECT_THAT(method.last_error().subject, StrEq("b"));
    EXPECT_EQ(method.execute(), Error::invalid_argument) << "not only the first time";
  }
  ASSERT_EQ(method.set_input(1, x, {4}), Error::ok);
  ASSERT_EQ(method.set_input(3, x, {2}), Error::ok);  // now c needs 2 + 2
  EXPECT_EQ(method.execute(), Error::invalid_argument);
  EXPECT_THAT(method.last_error().subject, StrEq("c"));
  ASSERT_EQ(method.set_input(2, x, {4}), Error::ok);
  EXPECT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(1)), ElementsAre(1, 2, 3, 4, 1, 2));
}

// forward(a: f32[batch, time], b: f32[batch, time]) -> a + b, batch in 1..3, time in 1..4: both
// symbols are extents of `a`.
ProgramFile shared_symbols_program() {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t batch = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 1, 3)),
                 time = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 1, 1, 4));
  const uint32_t a = io_tensor(m, {batch, time}), b = io_tensor(m, {batch, time}),
                 y = io_tensor(m, {batch, time});
  m.run(add, {m.tensor(a), m.tensor(b), m.tensor(y)});
  m.input("a", a), m.input("b", b);
  m.output("y", y);
  return p;
}

TEST(method, compares_the_extents_of_inputs_that_share_symbols) {
  ASSERT_LOADS(method, loaded, shared_symbols_program());
  std::vector<float> ones(12, 1.0f);
  ones.resize(12 + 16);  // 64 readable bytes behind
  for (const bool bound : {false, true}) {
    const auto give_b = [&](index_t batch, index_t time) {
      if (!bound) return method.set_input(1, ones.data(), {batch, time});
      const Shape shape = Shape::dense(std::vector<index_t>{batch, time});
      return method.bind_input(1, {ones.data(), &shape, DType::f32});
    };
    for (const auto& [batch, time] :
         std::vector<std::pair<index_t, index_t>>{{1, 3}, {3, 3}, {2, 2}, {2, 4}, {3, 2}}) {
      ASSERT_EQ(method.set_input(0, ones.data(), {2, 3}), Error::ok);
      ASSERT_EQ(give_b(batch, time), Error::ok);
      EXPECT_EQ(method.execute(), Error::invalid_argument) << batch << ", " << time;
      EXPECT_THAT(method.last_error().subject, StrEq("b"));
      const bool first = batch != 2;
      EXPECT_THAT(method.last_error().values,
                  ElementsAre(first ? 0 : 1, first ? batch : time, first ? 2 : 3));
      ASSERT_EQ(method.set_input(0, ones.data(), {batch, time}), Error::ok);
      EXPECT_EQ(method.execute(), Error::ok) << "now `a` has the sizes of `b`";
      EXPECT_EQ(elements(method.output(0)),
                std::vector<float>(static_cast<size_t>(batch * time), 2.0f));
    }
  }
}

// forward(x0: f32[n0], x1: f32[n1], …) -> x0 + x0, x1 + x1, …: more symbols than the 24 bits that
// say what depends on what.
TEST(method, follows_more_symbols_than_it_has_bits_for) {
  constexpr uint32_t count = 30;
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, i, 0, 1, 4));
    const uint32_t x = io_tensor(m, {n}), y = io_tensor(m, {n});
    m.run(add, {m.tensor(x), m.tensor(x), m.tensor(y)});
    m.input("x" + std::to_string(i), x), m.output("y" + std::to_string(i), y);
  }
  ASSERT_LOADS(method, loaded, p);
  const float x[] = {1, 2, 3, 4}, doubled[] = {2, 4, 6, 8};
  const auto resize = [&](index_t i, index_t size) {
    EXPECT_EQ(method.set_input(i, x, {size}), Error::ok);
  };
  const auto execute = [&] {
    prepared = 0;
    ASSERT_EQ(method.execute(), Error::ok);
    for (index_t i = 0; i < count; ++i)
      ASSERT_THAT(
          elements(method.output(i)),
          testing::ElementsAreArray(doubled, static_cast<size_t>(method.input(i).shape->sizes[0])));
  };
  for (index_t i = 0; i < count; ++i) resize(i, 1 + i % 4);
  execute();
  for (index_t i = 0; i < count; ++i) {
    resize(i, 1 + (i + 1) % 4);
    execute();
    EXPECT_EQ(prepared, i < 23 ? 1 : 7) << "those that share the last bit with " << i;
  }
}

TEST(method, refuses_extents_below_zero) {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::input_extent, 0, 0, 0, 8));
  m.input("x", io_tensor(m, {n}));
  const uint32_t rest = m.shape({m.node(Operation::subtract, NumberType::i64, n, m.literal(4))});
  const uint32_t y = m.value(Storage::buffer, m.buffer(m.literal(16), {0}, Region::io), rest);
  m.run(add, {m.tensor(y), m.tensor(y), m.tensor(y)});
  ASSERT_LOADS(method, loaded, p);
  for (const index_t size : {4, 3, 0, 8}) {
    const index_t sizes[] = {size};
    ASSERT_EQ(method.resize_input(0, sizes), Error::ok);
    EXPECT_EQ(method.execute(), size < 4 ? Error::invalid_program : Error::ok) << size;
    if (size < 4) {
      EXPECT_THAT(method.last_error().message, HasSubstr("has an extent {}"));
    }
  }
}

// ---- memory of the caller's ----

TEST(method, binds_memory_that_is_aligned_to_its_elements) {
  ASSERT_LOADS(method, loaded, sums_program());
  AlignedBytes memory(16 + 8 + 64);
  const float x[] = {1, 2, 3, 4};
  const Shape shape = Shape::dense(std::vector<index_t>{1, 4});
  for (int at = 0; at < 8; ++at) {
    std::byte* const place = memory.data() + at;
    std::memcpy(place, x, sizeof x);
    const bool aligned = at % 4 == 0;
    EXPECT_EQ(method.bind_input(0, TensorRef{place, &shape, DType::f32}),
              aligned ? Error::ok : Error::invalid_argument)
        << at;
    if (!aligned) {
      EXPECT_THAT(method.last_error().message, HasSubstr("aligned to its elements"));
      continue;
    }
    EXPECT_EQ(method.input(0).data, place);
    ASSERT_EQ(method.execute(), Error::ok);
    EXPECT_THAT(elements(method.output(0)), ElementsAre(30));
  }
}

TEST(method, binds_dense_memory_only) {
  ASSERT_LOADS(method, loaded, sums_program());
  float columns[8 + 16] = {1, 5, 2, 6, 3, 7, 4, 8};
  Shape shape = Shape::dense(std::vector<index_t>{2, 4});
  shape.strides[0] = 1, shape.strides[1] = 2;
  EXPECT_EQ(method.bind_input(0, TensorRef{columns, &shape, DType::f32}), Error::invalid_argument);
  EXPECT_THAT(method.last_error().message, HasSubstr("must be dense"));
  EXPECT_NE(method.input(0).data, columns);
}

TEST(method, moves_to_other_memory_of_the_same_sizes) {
  ASSERT_LOADS(method, loaded, sums_program());
  const Shape shape = Shape::dense(std::vector<index_t>{1, 4});
  float first[4 + 16] = {1, 2, 3, 4}, second[4 + 16] = {5, 6, 7, 8};
  for (const auto& [memory, sum] :
       std::vector<std::pair<float*, float>>{{first, 30.0f}, {second, 78.0f}, {first, 30.0f}}) {
    ASSERT_EQ(method.bind_input(0, TensorRef{memory, &shape, DType::f32}), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    EXPECT_THAT(elements(method.output(0)), ElementsAre(sum));
  }
  const float own[] = {0, 0, 0, 1};
  ASSERT_EQ(method.set_input(0, own, {1, 4}), Error::ok);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(3));
  EXPECT_EQ(first[0], 1.0f);
}

TEST(method, gives_bound_memory_back_when_it_resizes_an_input) {
  ASSERT_LOADS(method, loaded, sums_program());
  const index_t sizes[] = {1, 4};
  const Shape shape = Shape::dense(sizes);
  float bound[4 + 16] = {1, 2, 3, 4};
  ASSERT_EQ(method.bind_input(0, TensorRef{bound, &shape, DType::f32}), Error::ok);
  ASSERT_EQ(method.resize_input(0, sizes), Error::ok);
  ASSERT_NE(method.input(0).data, bound);
  const float own[] = {0, 0, 0, 1};
  std::memcpy(method.input(0).data, own, sizeof own);
  ASSERT_EQ(method.execute(), Error::ok);
  EXPECT_THAT(elements(method.output(0)), ElementsAre(3));
  EXPECT_EQ(bound[3], 4.0f);
}

// A file may say that the buffer of an input is larger than the input. What lies behind the
// caller's tensor is not the program's to read.
TEST(method, reads_nothing_behind_the_tensor_that_is_bound) {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t four = m.shape({m.literal(4)});
  const uint32_t buffer = m.buffer(m.literal(4096), {}, Region::io);
  const uint32_t x = m.value(Storage::buffer, buffer, four),
                 behind = m.value(Storage::buffer, buffer, four, DType::f32, 1000);
  m.input("x", x);
  const uint32_t y = io_tensor(m, {m.literal(4)});
  m.run(add, {m.tensor(x), m.tensor(behind), m.tensor(y)});
  m.output("y", y);
  ASSERT_LOADS(method, loaded, p);
  Dense<float> tensor({4}, {1, 2, 3, 4});
  EXPECT_EQ(method.set_input(0, tensor), Error::ok);
  EXPECT_EQ(method.execute(), Error::ok);
  EXPECT_EQ(method.bind_input(0, tensor), Error::ok);
  EXPECT_EQ(method.execute(), Error::invalid_program);
  EXPECT_EQ(method.execute(), Error::invalid_program) << "not only the first time";
}

// forward(count: i64[], x: f32[count]) -> x + x: what `x` must be is known when `count` was read.
TEST(method, compares_an_extent_with_an_element) {
  ProgramFile p;
  const uint32_t add = p.kernel(ops::add, {DType::f32, DType::f32, DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t count = io_tensor(m, {}, DType::i64);
  const uint32_t n = m.of_symbol(m.symbol(SymbolSource::element, count, 0, 0, 4));
  const uint32_t x = io_tensor(m, {n}), y = io_tensor(m, {n});
  m.run(add, {m.tensor(x), m.tensor(x), m.tensor(y)});
  m.input("count", count), m.input("x", x), m.output("y", y);
  ASSERT_LOADS(method, loaded, p);
  const int64_t four = 4;
  std::vector<float> none_at_all(16);
  const Shape shape = Shape::dense(std::vector<index_t>{0});
  ASSERT_EQ(method.set_input(0, &four), Error::ok);
  ASSERT_EQ(method.bind_input(1, {none_at_all.data(), &shape, DType::f32}), Error::ok);
  EXPECT_EQ(method.execute(), Error::invalid_argument);
  EXPECT_EQ(method.execute(), Error::invalid_argument) << "not only the first time";
  const int64_t zero = 0;
  ASSERT_EQ(method.set_input(0, &zero), Error::ok);
  EXPECT_EQ(method.execute(), Error::ok);
  EXPECT_EQ(method.output(0).shape->numel(), 0);
}

// ---- numbers ----

// forward(flag: bool, scale: f64) -> fill([2], scale), scale * scale, flag
TEST(method, takes_and_gives_numbers_of_each_type) {
  ProgramFile p;
  const uint32_t fill = p.kernel(ops::fill, {DType::f32});
  MethodTables& m = p.methods.emplace_back();
  const uint32_t flag = m.symbol(SymbolSource::input_number, 0, 0, 0, 1, NumberType::boolean),
                 scale = m.symbol(SymbolSource::input_number, 1, 0, 0, 0, NumberType::f64);
  m.inputs.push_back({"flag", none, flag, NumberType::boolean});
  m.inputs.push_back({"scale", none, scale, NumberType::f64});
  const uint32_t real = m.of_symbol(scale, NumberType::f64);
  const uint32_t y = io_tensor(m, {m.literal(2)});
  m.run(fill, {m.list({2}, ArgumentKind::integer, ArgumentForm::list),
               format::Argument(real, 0, ArgumentKind::real, ArgumentForm::expression), m.absent(),
               m.tensor(y)});
  m.output("y", y);
  m.outputs.push_back(
      {"square", none, m.node(Operation::multiply, NumberType::f64, real, real), NumberType::f64});
  m.outputs.push_back({"flag", none, m.of_symbol(flag, NumberType::boolean), NumberType::boolean});
  ASSERT_LOADS(method, loaded, p);
  for (const double value : {1.5, -2.25, 0.0, 3.0}) {
    const int64_t is_positive = value > 0;
    ASSERT_EQ(method.set_number(0, is_positive), Error::ok);
    ASSERT_EQ(value == 3.0 ? method.set_number(1, int64_t{3}) : method.set_number(1, value),
              Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    EXPECT_THAT(elements(method.output(0)), testing::Each(static_cast<float>(value)));
    double square = 0, real_flag = 0;
    int64_t integer = -1;
    EXPECT_EQ(method.output_number(1, square), Error::ok);
    EXPECT_EQ(square, value * value);
    EXPECT_EQ(method.output_number(1, integer), Error::invalid_argument);
    EXPECT_EQ(integer, -1);
    EXPECT_EQ(method.output_number(2, integer), Error::ok);
    EXPECT_EQ(integer, is_positive);
    EXPECT_EQ(method.output_number(2, real_flag), Error::ok);
    EXPECT_EQ(real_flag, static_cast<double>(is_positive));
  }
  for (const int64_t no_bool : {2, -1}) {
    EXPECT_EQ(method.set_number(0, no_bool), Error::invalid_argument);
    EXPECT_THAT(method.last_error().message, StrEq("input {} is a bool"));
  }
  EXPECT_EQ(method.set_number(0, 1.0), Error::invalid_argument);
}

// forward(x: T[2]) -> x[at]
ProgramFile element_program(DType dtype, NumberType type, uint32_t at = 1) {
  ProgramFile p;
  MethodTables& m = p.methods.emplace_back();
  const uint32_t x = io_tensor(m, {m.literal(2)}, dtype);
  const uint32_t element = m.symbol(SymbolSource::element, x, at, INT64_MIN, INT64_MAX, type);
  m.input("x", x);
  m.outputs.push_back({"element", none, m.of_symbol(element, type), type});
  return p;
}

template <class T>
void expect_elements(NumberType type, std::vector<T> values) {
  SCOPED_TRACE(name_of(dtypes_of<T>::dtype));
  ASSERT_LOADS(method, loaded, element_program(dtypes_of<T>::dtype, type));
  for (const T value : values) {
    const T x[] = {T{}, value};
    ASSERT_EQ(method.set_input(0, x), Error::ok);
    ASSERT_EQ(method.execute(), Error::ok);
    double number = 0;
    ASSERT_EQ(method.output_number(0, number), Error::ok);
    EXPECT_EQ(number, static_cast<double>(static_cast<float>(value)));
  }
}

TEST(method, reads_elements_of_every_dtype) {
  expect_elements<bool>(NumberType::boolean, {true, false});
  expect_elements<uint8_t>(NumberType::i64, {200, 7});
  expect_elements<int8_t>(NumberType::i64, {-3, 100});
  expect_elements<int16_t>(NumberType::i64, {-300, 30000});
  expect_elements<int32_t>(NumberType::i64, {-70000, 1 << 20});
  expect_elements<int64_t>(NumberType::i64, {-(int64_t{1} << 40), 5});
  expect_elements<Half>(NumberType::f64, {Half(-0.5f), Half(2048.0f)});
  expect_elements<BFloat16>(NumberType::f64, {BFloat16(-0.5f), BFloat16(1e30f)});
  expect_elements<float>(NumberType::f64, {-0.1f, 1e30f});
  expect_elements<double>(NumberType::f64, {-0.125, 4096.5});
}

TEST(method, refuses_to_read_an_element_behind_the_last) {
  for (const uint32_t at : {0u, 1u, 2u, 1000u}) {
    ASSERT_LOADS(method, loaded, element_program(DType::i64, NumberType::i64, at));
    const int64_t x[] = {3, 5};
    ASSERT_EQ(method.set_input(0, x), Error::ok);
    EXPECT_EQ(method.execute(), at < 2 ? Error::ok : Error::invalid_program) << at;
    if (at >= 2) {
      EXPECT_THAT(method.last_error().message, HasSubstr("does not exist"));
    }
  }
}

}  // namespace
}  // namespace taper::test
