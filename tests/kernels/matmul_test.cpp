#include "taper/exporter/eager/ops/matmul.h"

#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const EagerError& e) {
    return e.what();
  }
  return "no error";
}

/// (m, k) (k, n), every element summed in double.
std::vector<double> product(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = a.to_vector<float>(), y = b.to_vector<float>();
  const int64_t m = a.size(0).value(), k = a.size(1).value(), n = b.size(1).value();
  std::vector<double> out(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t p = 0; p < k; ++p)
        out[static_cast<size_t>(i * n + j)] +=
            double{x[static_cast<size_t>(i * k + p)]} * y[static_cast<size_t>(p * n + j)];
  return out;
}
void expect_near(const Tensor& got, const std::vector<double>& want, double tolerance) {
  const std::vector<float> x = got.to_vector<float>();
  ASSERT_EQ(x.size(), want.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], want[i], tolerance) << "at " << i;
}

TEST(mm, multiplies_matrices_of_every_size) {
  for (const Ints& s : std::vector<Ints>{{1, 1, 1},
                                         {2, 3, 4},
                                         {1, 37, 33},
                                         {5, 8, 16},
                                         {33, 17, 65},
                                         {64, 100, 70},
                                         {3, 0, 2},
                                         {0, 3, 2}}) {
    const Tensor a = random_tensor({s[0], s[1]}, 1), b = random_tensor({s[1], s[2]}, 2);
    expect_near(mm(a, b), product(a, b), 1e-4);
  }
}

TEST(mm, gives_the_same_bits_however_the_operands_lie_in_memory) {
  const Tensor a = random_tensor({19, 41}, 1), b = random_tensor({41, 35}, 2), expected = mm(a, b);
  const auto transposed = [](const Tensor& t) { return contiguous(t.t()).t(); };
  expect_same_bits(mm(transposed(a), b), expected);
  expect_same_bits(mm(a, transposed(b)), expected);
  expect_same_bits(mm(transposed(a), transposed(b)), expected);
  expect_same_bits(mm(scattered(a), scattered(b)), expected);
}

TEST(mm, gives_the_same_bits_with_any_number_of_threads) {
  const Tensor a = random_tensor({70, 41}, 1), b = random_tensor({41, 135}, 2);
  expect_same_bits_with_two_threads([&] { return mm(a, b); });
}

TEST(mm, wraps_integers_at_their_width) {
  const auto check = [](auto zero) {
    using T = decltype(zero);
    const Tensor a =
        full({3, 5}, Scalar(int64_t{std::numeric_limits<T>::max()}), dtypes_of<T>::dtype);
    // 5 (2^k - 1)² = 5 modulo 2^(k + 1), or, of unsigned ones, modulo 2^k
    EXPECT_EQ(mm(a, a.t()).template to_vector<T>(), std::vector<T>(9, T(5)));
    EXPECT_EQ(addmm(a, a, ones({5, 5}, a.dtype()), -1, 3).template to_vector<T>()[0],
              static_cast<T>(T(0) - T(14)));
  };
  check(int64_t{}), check(int32_t{}), check(int16_t{}), check(int8_t{}), check(uint8_t{});
}

TEST(linear, computes_each_row_as_if_it_were_alone) {
  const Tensor x = random_tensor({9, 50}, 1), w = random_tensor({31, 50}, 2),
               bias = random_tensor({31}, 3);
  const Tensor all = linear(x, w, bias);
  for (int64_t i = 0; i < 9; ++i) expect_same_bits(linear(x[i], w, bias), all[i]);
}

TEST(linear, is_differentiable) {
  const std::vector<Tensor> inputs{random_tensor({2, 3, 5}, 1, DType::f64),
                                   random_tensor({4, 5}, 2, DType::f64),
                                   random_tensor({4}, 3, DType::f64)};
  const auto f = [](const std::vector<Tensor>& v) {
    return sum(linear(v[0], v[1], v[2]) * linear(v[0], v[1], v[2]));
  };
  expect_right_derivatives(f, inputs);
}

TEST(linear, says_what_does_not_fit) {
  const std::string message = message_of([] { linear(ones({64, 784}), ones({120, 400})); });
  EXPECT_NE(message.find("linear: input does not fit weight: the last dimension is 784 and must be "
                         "400 for input (64, 784), weight (120, 400)"),
            std::string::npos)
      << message;
}

TEST(addmm, ignores_self_when_beta_is_zero) {
  const Tensor nan = full({3}, std::numeric_limits<double>::quiet_NaN()),
               a = random_tensor({2, 4}, 1), b = random_tensor({4, 3}, 2);
  expect_same_bits(addmm(nan, a, b, 0), mm(a, b));
}

TEST(matmul, follows_the_ranks) {
  const auto shape = [](const Ints& a, const Ints& b) {
    return to_string(matmul(random_tensor(a), random_tensor(b)).sizes());
  };
  EXPECT_EQ(shape({4}, {4}), "()");
  EXPECT_EQ(shape({3, 4}, {4}), "(3)");
  EXPECT_EQ(shape({4}, {4, 5}), "(5)");
  EXPECT_EQ(shape({2, 3, 4}, {4}), "(2, 3)");
  EXPECT_EQ(shape({2, 3, 4}, {4, 5}), "(2, 3, 5)");
  EXPECT_EQ(shape({4}, {2, 4, 5}), "(2, 5)");
  EXPECT_EQ(shape({7, 1, 3, 4}, {2, 4, 5}), "(7, 2, 3, 5)");
}

TEST(matmul, multiplies_batches_that_broadcast) {
  const Tensor a = random_tensor({2, 1, 3, 4}, 1), b = random_tensor({5, 4, 6}, 2),
               out = matmul(a, b);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 5; ++j) expect_same_bits(out[i][j], mm(a[i][0], b[j]));
}

TEST(bmm, refuses_batches_that_differ) {
  EXPECT_NE(message_of([] {
              bmm(ones({2, 3, 4}), ones({3, 4, 5}));
            }).find("batch sizes 2 and 3"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              bmm(ones({1, 3, 4}), ones({3, 4, 5}));
            }).find("batch sizes 1 and 3"),
            std::string::npos);
}

}  // namespace
}  // namespace taper::eager
