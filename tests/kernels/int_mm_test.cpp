// Products of 8-bit integers, and what is made of them.
#include <gmock/gmock.h>

#include <random>

#include "taper/exporter/eager/ops/matmul.h"
#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

const Location here = Location::current();

Tensor bytes(const Ints& sizes, uint32_t seed, DType dtype = DType::i8) {
  std::mt19937 engine(seed);
  std::vector<int64_t> values(static_cast<size_t>(sizes[0] * sizes[1]));
  for (int64_t& v : values)
    v = static_cast<int64_t>(engine() % 256) - (dtype == DType::i8 ? 128 : 0);
  return Tensor::from<int64_t>(values, sizes).to(dtype);
}
Tensor int_mm(const Tensor& a, const Tensor& b) { return call<ops::_int_mm>(here, a, b); }

TEST(int_mm, is_exact_at_every_size_and_layout) {
  for (const DType dtype : {DType::i8, DType::u8})
    for (const Ints& s : std::vector<Ints>{{1, 1, 1},
                                           {3, 5, 4},
                                           {1, 64, 33},
                                           {17, 31, 65},
                                           {66, 200, 70},
                                           {0, 3, 2},
                                           {3, 0, 2}}) {
      const Tensor a = bytes({s[0], s[1]}, 1, dtype), b = bytes({s[1], s[2]}, 2);
      const Tensor want = to(mm(a.to(DType::i64), b.to(DType::i64)), DType::i32);
      expect_same_bits(int_mm(a, b), want);
      const auto turned = [](const Tensor& t) { return contiguous(t.t()).t(); };
      expect_same_bits(int_mm(turned(a), b), want);
      expect_same_bits(int_mm(a, turned(b)), want);
      expect_same_bits(int_mm(scattered(a), scattered(b)), want);
      expect_same_bits_with_two_threads([&] { return int_mm(a, turned(b)); });
    }
}
// As PyTorch: 200000 * 16384 - 2^32.
TEST(int_mm, wraps_sums_at_32_bits) {
  const Tensor a = full({1, 200000}, -128, DType::i8);
  EXPECT_EQ(int_mm(a, a.t()).to_vector<int32_t>(), (std::vector<int32_t>{-1018167296}));
}
TEST(int_mm, says_what_does_not_fit) {
  const Tensor a = bytes({2, 3}, 1), b = bytes({3, 4}, 2);
  EXPECT_THROW_MESSAGE(int_mm(a, a), "_int_mm: 3 columns do not fit 2 rows");
  EXPECT_THROW_MESSAGE(int_mm(a, b.to(DType::u8)), "mat2 must be i8");
  EXPECT_THROW_MESSAGE(int_mm(a.to(DType::i32), b), "self must be i8 or u8");
  EXPECT_THROW_MESSAGE(int_mm(a[0], b), "needs two matrices, got 1 and 2 dimensions");
}

// An input quantized row by row, integers multiplied, and scaled: torchao's dynamic int8.
std::vector<Tensor> quantized_linear(const std::vector<Tensor>& in) {
  const Tensor x = in[0], w = in[1];
  const Tensor scale = amax(abs(x), {1}, true) / 127.0;
  const Tensor q = to(clamp(round(x / scale), -128, 127), DType::i8);
  return {call<ops::torchao_int_scaled_matmul>(here, q, w.t(), scale)};
}
TEST(int_mm, runs_in_a_program_of_any_number_of_rows) {
  const Dim rows = Dim::symbol("rows", 1, 20);
  std::vector<std::vector<Tensor>> calls;
  for (const int64_t n : {1, 3, 20})
    calls.push_back({random_tensor({n, 48}, n), bytes({10, 48}, 4)});
  expect_same_bits_in_program(quantized_linear,
                              {input("x", {rows, 48}), input("w", {10, 48}, DType::i8)}, calls);
}

TEST(int_scaled_matmul, wants_one_scale_for_each_row) {
  const auto run = [](const Dims& sizes) {
    return call<ops::torchao_int_scaled_matmul>(here, bytes({3, 8}, 1), bytes({8, 2}, 2),
                                                ones(sizes));
  };
  expect_same_bits(run({3, 1}), run({1, 1}));
  EXPECT_THROW_MESSAGE(run({2, 1}), "int_scaled_matmul: scales1 (2, 1) must be (1, 1)");
  EXPECT_THROW_MESSAGE(run({3}), "scales1 (3)");
}

TEST(weight_int8pack_mm, rounds_once_and_wants_a_scale_for_each_row) {
  const Tensor x = random_tensor({3, 16}), w = bytes({5, 16}, 2), s = abs(random_tensor({5}, 3));
  const auto run = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return call<ops::_weight_int8pack_mm>(here, a, b, c);
  };
  for (const DType dtype : {DType::f16, DType::bf16})
    expect_same_bits(run(x.to(dtype), w, s.to(dtype)),
                     run(x.to(dtype).to(DType::f32), w, s.to(dtype).to(DType::f32)).to(dtype));
  EXPECT_THROW_MESSAGE(run(x, w, ones({4})), "needs one scale for each row of mat2");
  EXPECT_THROW_MESSAGE(run(x, w.to(DType::i32), s), "two matrices, the second of i8");
}

}  // namespace
}  // namespace taper::eager
