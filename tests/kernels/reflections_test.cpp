// Factors Q R as reflections, and older names of linear algebra. PyTorch's results stand in
// tests/golden/function_cases.jsonl; these are the properties that define them.
#include <array>
#include <tuple>

#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using Values = std::vector<Tensor>;

double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(to_string(a.sizes()), to_string(b.sizes()));
  return a.numel().value() == 0 ? 0 : max(abs(a - b)).item();
}

TEST(geqrf, gives_reflections_whose_product_is_q) {
  for (const auto& [m, n] : {std::pair{5, 3}, {3, 3}, {1, 1}, {6, 1}, {40, 33}, {4, 0}}) {
    const Tensor a = random_tensor({2, m, n}, m, DType::f64);
    const auto [factors, tau] = geqrf(a);
    const auto [q, r] = linalg_qr(a);
    EXPECT_LE(distance(linalg_householder_product(factors, tau), q), 1e-13 * (m + n));
    EXPECT_EQ(distance(triu(narrow(factors, -2, 0, n)), r), 0);
  }
  EXPECT_EQ(to_string(std::get<1>(geqrf(ones({2, 3, 5}))).sizes()), "(2, 3)");
  EXPECT_THROW_MESSAGE(geqrf(ones({3})), "geqrf: self must be a matrix or a batch of them");
  EXPECT_THROW_MESSAGE(geqrf(ones({3, 3}, DType::i64)), "geqrf: self must have a floating dtype");
}
TEST(geqrf, gives_the_same_bits_with_two_threads) {
  for (const Tensor& a : {random_tensor({300, 200}), random_tensor({7, 9, 8}, 2)}) {
    expect_same_bits_with_two_threads([&] { return std::get<0>(geqrf(a)); });
    expect_same_bits_with_two_threads([&] { return std::get<1>(geqrf(a)); });
  }
}

TEST(linalg_householder_product, is_differentiable_twice) {
  for (const auto& [m, n, k] : {std::array{4, 3, 3}, {3, 3, 2}, {4, 1, 1}})
    expect_right_derivatives(
        [](const Values& v) { return pow(linalg_householder_product(v[0], v[1]), 2); },
        {random_tensor({2, m, n}, 3, DType::f64), random_tensor({2, k}, 4, DType::f64)});
}
TEST(ormqr, multiplies_with_q_from_both_sides) {
  const Tensor a = random_tensor({5, 3}, 1, DType::f64), x = random_tensor({5, 5}, 2, DType::f64);
  Tensor factors, tau;
  std::tie(factors, tau) = geqrf(a);
  const Tensor q = std::get<0>(linalg_qr(a, "complete"));
  EXPECT_LE(distance(ormqr(factors, tau, x), matmul(q, x)), 1e-13);
  EXPECT_LE(distance(ormqr(factors, tau, x, true, true), matmul(mT(q), x)), 1e-13);
  EXPECT_LE(distance(ormqr(factors, tau, x, false), matmul(x, q)), 1e-13);
  EXPECT_LE(distance(ormqr(factors, tau, x, false, true), matmul(x, mT(q))), 1e-13);
  EXPECT_THROW_MESSAGE(ormqr(factors, tau, ones({4, 5}, DType::f64)), "input3 must have 5 rows");
  EXPECT_THROW_MESSAGE(linalg_householder_product(factors, ones({4}, DType::f64)),
                       "tau must have the dtype and the batch of the reflections (5, 3)");
  EXPECT_THROW_MESSAGE(linalg_householder_product(ones({2, 3}), ones({2})),
                       "must not have more columns than rows");
}

TEST(triangular_solve, copies_the_matrix_for_each_system) {
  const Tensor a = random_tensor({3, 3}, 1, DType::f64) + eye(3, DType::f64) * 4,
               b = random_tensor({2, 3, 2}, 2, DType::f64);
  const auto [x, copy] = triangular_solve(b, a, /*upper=*/false, /*transpose=*/true);
  EXPECT_LE(distance(matmul(mT(tril(a)), x), b), 1e-14);
  expect_same_bits(copy, contiguous(expand(a, {2, 3, 3})));
}

TEST(linalg_tensorsolve, undoes_tensordot) {
  const Tensor a = random_tensor({2, 3, 6}, 1, DType::f64), x = random_tensor({6}, 2, DType::f64);
  const Tensor b = tensordot(a, x, {2}, {0});
  EXPECT_LE(distance(linalg_tensorsolve(a, b), x), 1e-12);
  EXPECT_LE(distance(linalg_tensorsolve(permute(a, {0, 2, 1}), reshape(b, {2, 3}), Ints{1}), x),
            1e-12);
  EXPECT_LE(distance(tensordot(linalg_tensorinv(a), b, {1, 2}, {0, 1}), x), 1e-12);
  EXPECT_THROW_MESSAGE(linalg_tensorinv(a, 0), "ind must be 1 or more, got 0");
  EXPECT_THROW_MESSAGE(linalg_tensorinv(a, 1), "must have the same product");
  EXPECT_THROW_MESSAGE(linalg_tensorsolve(a, ones({3}, DType::f64)), "behind them sizes");
}

TEST(reflections, have_the_same_bits_in_programs) {
  const Dim batch = Dim::symbol("batch", 1, 8), n = Dim::symbol("n", 1, 6);
  const auto f = [](const Values& in) {
    const auto [factors, tau] = geqrf(in[0]);
    return Values{factors, tau, linalg_householder_product(factors, tau),
                  ormqr(factors, tau, in[0], true, true),
                  std::get<0>(triangular_solve(mT(in[0]), matmul(mT(in[0]), in[0])))};
  };
  std::vector<Values> calls;
  for (const int64_t size : {1, 4, 6}) calls.push_back({random_tensor({size / 2 + 1, 8, size})});
  expect_same_bits_in_program(f, {input("a", {batch, 8, n})}, calls);
}

}  // namespace
}  // namespace taper::eager
