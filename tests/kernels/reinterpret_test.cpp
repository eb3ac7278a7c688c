// view.dtype: the same bytes as elements of another dtype.
#include <gmock/gmock.h>

#include "taper/exporter/eager/ops/storage.h"
#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

std::vector<int64_t> layout(const Tensor& t) {
  std::vector<int64_t> list;
  for (const Dim& d : t.sizes()) list.push_back(d.value());
  for (const Dim& d : t.strides()) list.push_back(d.value());
  list.push_back(t.storage_offset().value());
  return list;
}
Tensor counted(const Ints& sizes, DType dtype = DType::f32) {
  int64_t n = 1;
  for (const int64_t size : sizes) n *= size;
  return arange(0, n).reshape(Dims(sizes.begin(), sizes.end())).to(dtype);
}

// Sizes, strides and offset as PyTorch 2.15 gives them.
TEST(view_dtype, has_pytorchs_layout) {
  const Tensor x = counted({4, 8});
  EXPECT_EQ(layout(view_dtype(x, DType::i32)), (std::vector<int64_t>{4, 8, 8, 1, 0}));
  EXPECT_EQ(layout(view_dtype(x, DType::f16)), (std::vector<int64_t>{4, 16, 16, 1, 0}));
  EXPECT_EQ(layout(view_dtype(x, DType::i64)), (std::vector<int64_t>{4, 4, 4, 1, 0}));
  EXPECT_EQ(layout(view_dtype(x.t(), DType::u32)), (std::vector<int64_t>{8, 4, 1, 8, 0}));
  const Tensor part = slice(slice(x, 0, 1), 1, 2, 4);
  EXPECT_EQ(layout(view_dtype(part, DType::i64)), (std::vector<int64_t>{3, 1, 4, 1, 5}));
  EXPECT_EQ(layout(view_dtype(part, DType::u8)), (std::vector<int64_t>{3, 8, 32, 1, 40}));
  EXPECT_EQ(layout(view_dtype(x.unsqueeze(1).expand({4, 3, 8}), DType::f64)),
            (std::vector<int64_t>{4, 3, 4, 4, 0, 1, 0}));
  EXPECT_EQ(layout(view_dtype(slice(counted({4, 1}), 0, 0, 4, 2), DType::i16)),
            (std::vector<int64_t>{2, 2, 4, 1, 0}));
  EXPECT_EQ(layout(view_dtype(zeros({3, 0}), DType::i16)), (std::vector<int64_t>{3, 0, 2, 1, 0}));
  EXPECT_EQ(layout(view_dtype(zeros({}), DType::u32)), (std::vector<int64_t>{0}));
}
TEST(view_dtype, reads_the_same_bytes) {
  const Tensor x = Tensor::from<float>({1, -2, 0.5f, 448}, {4});
  EXPECT_EQ(
      view_dtype(x, DType::i32).to_vector<int32_t>(),
      (std::vector<int32_t>{0x3f800000, static_cast<int32_t>(0xc0000000), 0x3f000000, 0x43e00000}));
  EXPECT_EQ(view_dtype(x, DType::u16).to_vector<uint16_t>(),
            (std::vector<uint16_t>{0, 0x3f80, 0, 0xc000, 0, 0x3f00, 0, 0x43e0}));
  EXPECT_EQ(view_dtype(x, DType::u64).to_vector<uint64_t>(),
            (std::vector<uint64_t>{0xc00000003f800000, 0x43e000003f000000}));
  EXPECT_EQ(bytes_of(view_dtype(view_dtype(x, DType::u8), DType::f32)), bytes_of(x));
}
TEST(view_dtype, says_what_does_not_fit) {
  const Tensor x = counted({4, 8});
  EXPECT_THROW_MESSAGE(
      view_dtype(x.t(), DType::i16),
      "view.dtype: the last dimension has stride 8, it must be 1; call contiguous");
  EXPECT_THROW_MESSAGE(view_dtype(slice(x, 1, 1), DType::i64),
                       "a rest of 1 instead of 0: 2 elements become one, so the last size");
  EXPECT_THROW_MESSAGE(view_dtype(slice(x, 1, 1, 3), DType::i64), "a rest of 1 instead of 0");
  EXPECT_THROW_MESSAGE(view_dtype(slice(counted({3, 5}), 1, 0, 4), DType::i64), "a rest of 1");
  EXPECT_THROW_MESSAGE(view_dtype(zeros({}), DType::i16),
                       "a tensor without dimensions has no room");
  EXPECT_THROW_MESSAGE(view_dtype(x.to(DType::u8), DType::boolean), "compare them with 0");
}
TEST(view_dtype, writes_through_to_its_base) {
  Tensor x = counted({2, 4});
  view_dtype(x, DType::i32)[0].fill_(0x40000000);
  slice(view_dtype(x, DType::u8), 1, 3, 16, 4).fill_(0x41);
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{8, 8, 8, 8, 16, 20, 24, 28}));
}
// As in PyTorch, no gradient flows through other elements.
TEST(view_dtype, has_no_gradient) {
  const Tensor x = counted({4}).set_requires_grad();
  EXPECT_FALSE(view_dtype(x, DType::i32).requires_grad());
}

std::vector<Tensor> bit_tricks(const std::vector<Tensor>& in) {
  const Tensor bits = view_dtype(in[0], DType::i32);
  const Tensor exponent = sub(bitwise_and(bitwise_right_shift(bits, 23), 255), 127);
  const Tensor fraction =
      view_dtype(bitwise_or(bitwise_and(bits, 0x7fffff), 0x3f800000), DType::f32);
  Tensor written = in[0].clone();
  view_dtype(written, DType::u8)[0].fill_(0x3f);
  view_dtype(written, DType::i16)[-1].copy_(view_dtype(in[0], DType::i16)[0]);
  const Tensor pairs = view_dtype(in[0], DType::i64);
  return {exponent,
          fraction,
          mul(fraction, 2),
          view_dtype(in[0], DType::u8),
          pairs,
          written,
          view_dtype(view_dtype(in[0], DType::f16), DType::f32).t()};
}
TEST(view_dtype, runs_in_programs_of_fixed_and_other_sizes) {
  expect_same_bits_in_program(bit_tricks, {{"x", {3, 4}}}, {{random_tensor({3, 4})}});
  const Dim rows = Dim::symbol("rows", 1, 300), columns = Dim::symbol("columns", 2, 80);
  const std::vector<InputSpec> inputs = {{"x", {rows, columns}}};
  expect_same_bits_in_program(
      bit_tricks, inputs,
      {{random_tensor({1, 2})}, {random_tensor({5, 8})}, {random_tensor({300, 80})}});
  EXPECT_EXPORT_ERROR(InProgram(bit_tricks, inputs).run({random_tensor({2, 3})}),
                      "a rest of columns%2 instead of 0");
}
// The result of an operator may lie on its argument only if both have one dtype, and a view keeps
// what it shows alive.
TEST(view_dtype, keeps_its_base_alive_in_a_program) {
  const auto chain = [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    const Tensor sum = add(in[0], 1.0);
    const Tensor bits = view_dtype(sum, DType::i32);
    const Tensor next = mul(sum, 3.0), other = add(next, next);
    return {bitwise_and(bits, 0xffff), other, view_dtype(add(bits, 1), DType::f32)};
  };
  expect_same_bits_in_program(chain, {{"x", {64}}}, {{random_tensor({64})}});
}
// A constant of bytes that the program reads as other elements.
TEST(view_dtype, shows_constants) {
  const Tensor table = counted({4, 8}, DType::u8), weight = random_tensor({2, 8});
  const auto read = [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    return {add(view_dtype(table, DType::i32).to(DType::f32), in[0]), mm(in[0], weight),
            add(view_dtype(weight, DType::i32), 1)};
  };
  expect_same_bits_in_program(read, {{"x", {4, 2}}}, {{random_tensor({4, 2})}});
}

}  // namespace
}  // namespace taper::eager
