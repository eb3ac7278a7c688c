#include <gmock/gmock.h>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

Tensor ends(const std::vector<int32_t>& offs) {
  return Tensor::from<int32_t>(offs, {static_cast<int64_t>(offs.size())});
}
Tensor numbers(const std::vector<float>& values, const Ints& sizes) {
  return Tensor::from<float>(values, sizes);
}
// PyTorch's results, but for the last row, which it leaves open.
TEST(grouped_mm, multiplies_rows_by_the_matrix_of_their_group) {
  const Tensor x = numbers(
      {4, -4, -2, 2, 3, 2, 3, -3, -3, -4, 4, -2, 2, -1, -3, -2, -4, -4, 1, -1, 4, -2, 4, -2},
      {6, 4});
  const Tensor w =
      numbers({4, 1, 3, 4,  2, -4, -3, -4, 4, 2, -3, 2,  -3, 4, 4,  3, -2, -1, 3, 3, -3, 1, 0, 3,
               1, 3, 0, -2, 1, 0,  4,  1,  1, 0, -2, -2, 0,  0, -4, 2, 0,  1,  0, 3, 4,  0, 4, -2},
              {3, 4, 4});
  const std::vector<float> want{-6, 24, 38, 34,  -9, 3, -26, 13, -11, 4, 14, 14,
                                -6, -3, -8, -11, -8, 1, 20,  5,  0,   0, 0,  0};
  EXPECT_EQ(grouped_mm(x, w, ends({1, 1, 5})).to_vector<float>(), want);
  EXPECT_EQ(grouped_mm(x, w, ends({1, 1, 5}).to(DType::i64)).to_vector<float>(), want);
  EXPECT_EQ(grouped_mm(x.to(DType::f64), w.to(DType::f64), ends({1, 1, 5})).dtype(), DType::f64);
}
TEST(grouped_mm, divides_k_of_two_matrices) {
  const Tensor a = numbers({2, 3,  -4, 1, -1, 0,  -3, 4, 1, 4, 1, 3,  -1, -2, -3, 3,
                            3, -2, 0,  0, -3, -3, -3, 1, 3, 3, 4, -3, 1,  -1, -3, -1},
                           {4, 8});
  const Tensor b = numbers({4, 2,  2,  1, 4, 4, -2, 3,  1, -2, 0,  2, 3, -1, -3, 2,
                            2, -3, -3, 3, 0, 4, -3, -3, 3, 3,  -3, 3, 3, 3,  1,  0},
                           {8, 4});
  EXPECT_EQ(
      grouped_mm(a, b, ends({3, 3, 8})).to_vector<float>(),
      (std::vector<float>{16, 24, -2, 3,   21, 16, -6, 15, 4,   -2, 10, -3, 28,  10,  0,  20,
                          0,  0,  0,  0,   0,  0,  0,  0,  0,   0,  0,  0,  0,   0,   0,  0,
                          4,  5,  13, -10, 7,  -8, 12, 0,  -12, -9, 28, -9, -19, -16, 17, -9}));
}
TEST(grouped_mm, divides_the_columns_of_one_matrix) {
  const Tensor a = numbers({1,  -2, -1, 0,  2, 0, -1, -1, -4, -3, -1, -2, 3, 3,  -1, 0,
                            -4, 3,  4,  -3, 4, 1, -2, -2, -3, 4,  1,  -2, 4, -1, -1, 2},
                           {2, 4, 4});
  const Tensor b = numbers({0, 0, -1, -3, -2, -1, 2, -1, 0,  1,  3, -3, -4, -4, 2,  -4,
                            2, 4, -2, 1,  -2, -1, 4, 1,  -4, -1, 4, 3,  -2, 0,  -1, 1},
                           {4, 8});
  EXPECT_EQ(grouped_mm(a, b, ends({4, 8})).to_vector<float>(),
            (std::vector<float>{-2, -6, -5,  2,  -6, -12, 17, -7,  2,  -3, -4, -10, -4, -6, 4, -12,
                                6,  -5, -11, 14, -8, -14, 8,  -14, -2, -1, 8,  -19, -6, 1,  0, 1}));
  const Tensor out = grouped_mm(a, b, ends({1, 3}));
  expect_same_bits(slice(out, 1, 3), zeros({4, 5}));  // behind the last group
}
TEST(grouped_mm, multiplies_batches_without_offs) {
  const Tensor a = random_tensor({3, 5, 20}, 1), b = random_tensor({3, 20, 7}, 2);
  expect_same_bits(grouped_mm(a, b), bmm(a, b));
}

TEST(grouped_mm, computes_a_row_as_mm_does) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const int64_t k : {0, 1, 70, 300}) {
      const Tensor x = random_tensor({41, k}, 1, dtype), w = random_tensor({4, k, 37}, 2, dtype);
      const Tensor offs = ends({1, 1, 30, 40}), want = grouped_mm(x, w, offs);
      expect_same_bits(slice(want, 0, 0, 1), mm(slice(x, 0, 0, 1), w[0]));
      expect_same_bits(slice(want, 0, 1, 30), mm(slice(x, 0, 1, 30), w[2]));
      expect_same_bits(slice(want, 0, 30, 40), mm(slice(x, 0, 30, 40), w[3]));
      expect_same_bits(slice(want, 0, 40), zeros({1, 37}, dtype));
      const Tensor turned = contiguous(transpose(w, 1, 2));
      expect_same_bits(grouped_mm(scattered(x), transpose(turned, 1, 2), offs), want);
      const Tensor twice = reshape(stack({offs, offs}, 1), {8});
      expect_same_bits(grouped_mm(x, w, slice(twice, 0, 0, INT64_MAX, 2)), want);
    }
}
TEST(grouped_mm, gives_the_same_bits_with_any_number_of_threads) {
  const Tensor x = random_tensor({150, 300}, 1), w = random_tensor({3, 300, 210}, 2);
  expect_same_bits_with_two_threads([&] { return grouped_mm(x, w, ends({2, 130, 150})); });
}
TEST(grouped_mm, computes_half_precision_in_f32) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor x = random_tensor({9, 40}).to(dtype), w = random_tensor({2, 40, 5}, 2).to(dtype);
    expect_same_bits(grouped_mm(x, w, ends({4, 9})),
                     grouped_mm(x.to(DType::f32), w.to(DType::f32), ends({4, 9})).to(dtype));
  }
}
TEST(grouped_mm, takes_groups_and_matrices_without_elements) {
  const Tensor none = Tensor::from<int32_t>({}, {0});
  expect_same_bits(grouped_mm(ones({2, 3}), ones({0, 3, 4}), none), zeros({2, 4}));
  expect_same_bits(grouped_mm(ones({0, 3}), ones({2, 3, 4}), ends({0, 0})), zeros({0, 4}));
  expect_same_bits(grouped_mm(ones({2, 0}), ones({0, 3}), ends({0})), zeros({1, 2, 3}));
}

TEST(grouped_mm, refuses_offs_that_are_no_ascending_rows) {
  const auto run = [](const std::vector<int32_t>& offs) {
    return grouped_mm(ones({4, 2}), ones({2, 2, 3}), ends(offs));
  };
  run({0, 4});
  EXPECT_EXPORT_ERROR(run({3, 2}), "_grouped_mm: offs must ascend: 2 is outside [3, 4]");
  EXPECT_EXPORT_ERROR(run({-1, 2}), "-1 is outside [0, 4]");
  EXPECT_EXPORT_ERROR(run({2, 5}), "5 is outside [2, 4]");
  EXPECT_EXPORT_ERROR(run({INT32_MIN, INT32_MAX}), "is outside [0, 4]");
  const Tensor beyond = Tensor::from<int64_t>({1, (int64_t{1} << 32) + 1}, {2});
  EXPECT_EXPORT_ERROR(grouped_mm(ones({4, 2}), ones({2, 2, 3}), beyond), "is outside [1, 4]");
}
TEST(grouped_mm, says_what_does_not_fit) {
  const Tensor x = ones({4, 2}), w = ones({2, 2, 3}), offs = ends({1, 4});
  EXPECT_EXPORT_ERROR(grouped_mm(x, ones({2, 3, 3}), offs), "2 columns do not fit 3 rows");
  EXPECT_EXPORT_ERROR(grouped_mm(x, w, ends({4})), "2 matrices do not fit 1 groups");
  EXPECT_EXPORT_ERROR(grouped_mm(x, w), "needs offs where an operand is one matrix");
  EXPECT_EXPORT_ERROR(grouped_mm(w, ones({2, 3, 1}), offs), "and only there");
  EXPECT_EXPORT_ERROR(grouped_mm(x, w, offs.to(DType::f32)), "offs must be i32 or i64");
  EXPECT_EXPORT_ERROR(grouped_mm(x, w, ones({2, 1}, DType::i32)), "offs must have 1 dimension");
  EXPECT_EXPORT_ERROR(grouped_mm(x[0], w, offs), "got 1 and 3 dimensions");
  EXPECT_EXPORT_ERROR(grouped_mm(x, w.to(DType::f64), offs), "the operands' dtypes differ");
  EXPECT_EXPORT_ERROR(grouped_mm(x.to(DType::i32), w.to(DType::i32), offs), "floating");
  const Location here = Location::current();
  EXPECT_EXPORT_ERROR(call<ops::_grouped_mm>(here, x, w, offs, ones({3}), std::nullopt), "bias");
  EXPECT_EXPORT_ERROR(call<ops::_grouped_mm>(here, x, w, offs, Tensor(), DType::f64),
                      "out_dtype must be the dtype of self");
}

TEST(grouped_mm, is_differentiable_twice) {
  const auto check = [](const Ints& a, const Ints& b, const Tensor& offs) {
    expect_right_derivatives(
        [&](const std::vector<Tensor>& v) {
          const Tensor y = grouped_mm(v[0], v[1], offs);
          return sum(y * y);
        },
        {random_tensor(a, 1, DType::f64), random_tensor(b, 2, DType::f64)});
  };
  check({5, 2}, {3, 2, 3}, ends({2, 2, 4}));
  check({2, 5}, {5, 3}, ends({2, 2, 4}));
  check({2, 3, 2}, {2, 5}, ends({1, 4}));
  check({2, 3, 2}, {2, 2, 4}, {});
}

TEST(grouped_mm, is_what_transformers_calls_its_fallback) {
  const Tensor x = random_tensor({7, 8}, 1), w = random_tensor({3, 8, 5}, 2),
               offs = ends({2, 2, 6});
  const auto fallback = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    return call<ops::transformers_grouped_mm_fallback>(Location::current(), a, b, c);
  };
  expect_same_bits(fallback(x, w, offs), grouped_mm(x, w, offs));
  expect_same_bits(fallback(x, w, offs.to(DType::i64)), grouped_mm(x, w, offs));
  EXPECT_EXPORT_ERROR(
      fallback(x, w[0], offs),
      "grouped_mm_fallback: needs input (rows, in) and weight (experts, in, out), got "
      "(7, 8) and (8, 5)");
}

// A router that sends each row to the expert of the largest score: sizes of groups are data.
std::vector<Tensor> routed(const std::vector<Tensor>& in) {
  const Tensor x = in[0], w = in[1], scores = in[2];
  const Tensor expert = argmax(scores, 1), order = argsort(expert);
  const Tensor counts = sum(one_hot(expert, 3), {0});
  return {grouped_mm(index_select(x, 0, order), w, to(cumsum(counts, 0), DType::i32))};
}
TEST(grouped_mm, runs_in_a_program_of_any_number_of_rows) {
  const Dim rows = Dim::symbol("rows", 1, 40);
  const auto inputs_of = [](int64_t n) {
    return std::vector<Tensor>{random_tensor({n, 6}, n), random_tensor({3, 6, 5}, 2),
                               random_tensor({n, 3}, n + 1)};
  };
  expect_same_bits_in_program(
      routed, {input("x", {rows, 6}), input("w", {3, 6, 5}), input("scores", {rows, 3})},
      {inputs_of(1), inputs_of(2), inputs_of(17), inputs_of(40), inputs_of(3)});
}
TEST(grouped_mm, stops_a_program_at_wrong_offs) {
  const Dim rows = Dim::symbol("rows", 1, 40);
  const InProgram program(
      [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
        return {grouped_mm(in[0], in[1], in[2])};
      },
      {input("x", {rows, 2}), input("w", {2, 2, 3}), input("offs", {2}, DType::i32)});
  const Tensor x = random_tensor({5, 2}), w = random_tensor({2, 2, 3}, 2);
  expect_same_bits(program.run({x, w, ends({3, 5})})[0], grouped_mm(x, w, ends({3, 5})));
  EXPECT_EXPORT_ERROR(program.run({x, w, ends({3, 6})}), "6 is outside [3, 5]");
  EXPECT_EXPORT_ERROR(program.run({x, w, ends({-7, 5})}), "-7 is outside [0, 5]");
}

}  // namespace
}  // namespace taper::eager
