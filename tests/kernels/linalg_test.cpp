// Linear algebra. Results with decimals are PyTorch's, in f64.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/program_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Tensor matrix(const std::vector<double>& elements, int64_t rows) {
  return Tensor::from<double>(elements, {rows, static_cast<int64_t>(elements.size()) / rows});
}
Tensor some_a() { return matrix({0.5, -1.5, 2, 3, 0.25, -1, -2, 1.75, 4}, 3); }
Tensor some_b() { return matrix({1, 2, -3, 0.5, 0.25, 4}, 3); }
/// Far from singular: its diagonal outweighs the rest.
Tensor solvable(Ints sizes, int64_t seed = 1, DType dtype = DType::f64) {
  const int64_t n = sizes.back();
  return random_tensor(sizes, seed, dtype) + eye(n, dtype) * (2.0 * std::sqrt(n) + 1);
}
Tensor positive(const Ints& sizes, int64_t seed = 1, DType dtype = DType::f64) {
  const Tensor x = solvable(sizes, seed, dtype);
  return matmul(x, mT(x));
}
double distance(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(to_string(a.sizes()), to_string(b.sizes()));
  EXPECT_EQ(a.dtype(), b.dtype());
  return a.numel().value() == 0 ? 0 : max(abs(a - b)).item();
}
template <class Call>
void expect_refusal(const Call& call, const std::string& message) {
  EXPECT_THAT(call, ThrowsMessage<EagerError>(HasSubstr(message)));
}
void expect_values(const Tensor& got, const std::vector<double>& want, double tolerance = 1e-12) {
  const std::vector<double> elements = contiguous(got).to_vector<double>();
  ASSERT_EQ(elements.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(elements[i], want[i], tolerance * (1 + std::fabs(want[i]))) << i;
}

// ---- systems, inverses, determinants

TEST(linalg_solve, gives_the_results_of_pytorch) {
  expect_values(linalg_solve(some_a(), some_b()),
                {-0.9147982062780269, 0.5112107623318387, -0.9461883408071748, 0.32286995515695,
                 0.019058295964125577, 1.1143497757847536});
  expect_values(linalg_inv(some_a()),
                {0.09865470852017938, 0.34080717488789236, 0.03587443946188341, -0.3587443946188341,
                 0.21524663677130043, 0.23318385650224213, 0.2062780269058296, 0.07623318385650224,
                 0.16591928251121077});
  const auto [lu, pivots, info] = linalg_lu_factor_ex(some_a());
  expect_values(lu, {3, 0.25, -1, -2.0 / 3, 1.9166666666666667, 10.0 / 3, 1.0 / 6,
                     -0.8043478260869565, 4.8478260869565215});
  EXPECT_EQ(pivots.to_vector<int32_t>(), (std::vector<int32_t>{2, 3, 3}));
  EXPECT_EQ(info.to_vector<int32_t>(), std::vector<int32_t>{0});
}
TEST(linalg_solve, solves_systems_of_every_size) {
  for (const int64_t n : {0, 1, 2, 5, 16, 31, 32, 33, 70, 131})
    for (const int64_t k : {0, 1, 3, 16, 37}) {
      const Tensor a = solvable({n, n}, n + 1), b = random_tensor({n, k}, 2, DType::f64);
      EXPECT_LE(distance(matmul(a, linalg_solve(a, b)), b), 1e-11) << n << " " << k;
      EXPECT_LE(distance(matmul(linalg_solve(a, mT(b), false), a), mT(b)), 1e-11) << n << " " << k;
    }
}
TEST(linalg_solve, broadcasts_batches_and_takes_vectors) {
  const Tensor a = solvable({2, 1, 4, 4}), b = random_tensor({3, 4, 2}, 2, DType::f64);
  const Tensor x = linalg_solve(a, b);
  EXPECT_EQ(to_string(x.sizes()), "(2, 3, 4, 2)");
  EXPECT_LE(distance(matmul(a, x), expand(b, {2, 3, 4, 2})), 1e-12);
  const Tensor v = random_tensor({4}, 3, DType::f64);
  EXPECT_EQ(to_string(linalg_solve(a, v).sizes()), "(2, 1, 4)");
  EXPECT_LE(distance(linalg_solve(a[1][0], v), squeeze(linalg_solve(a, v), 1)[1]), 0);
  const Tensor vectors = random_tensor({2, 1, 4}, 4, DType::f64);
  EXPECT_LE(distance(linalg_solve(a, vectors)[1][0], linalg_solve(a[1][0], vectors[1][0])), 0);
  EXPECT_EQ(to_string(linalg_solve(zeros({2, 0, 0}), zeros({0, 3})).sizes()), "(2, 0, 3)");
}
TEST(linalg_solve, exchanges_rows_where_a_pivot_is_zero) {
  const Tensor swap = matrix({0, 1, 1, 0}, 2);
  expect_values(linalg_inv(swap), {0, 1, 1, 0});
  EXPECT_EQ(linalg_det(swap).item(), -1);
  const Tensor around = matrix({0, 0, 1, 1, 0, 0, 0, 1, 0}, 3);
  expect_values(linalg_inv(around), {0, 1, 0, 0, 0, 1, 1, 0, 0});
  EXPECT_EQ(linalg_det(around).item(), 1);
}
TEST(linalg_solve, refuses_a_singular_matrix) {
  const Tensor singular = stack({eye(2, DType::f64), ones({2, 2}, DType::f64)});
  const std::string why =
      "the input matrix is singular: element 2 of the diagonal of U is zero "
      "(matrix 1 of 2)";
  EXPECT_THROW_MESSAGE(linalg_inv(singular), "linalg_inv_ex: in ");
  EXPECT_THROW_MESSAGE(linalg_inv(singular), why);
  EXPECT_THROW_MESSAGE(linalg_solve(singular, ones({2, 2}, DType::f64)), "linalg_solve: in ");
  EXPECT_THROW_MESSAGE(linalg_solve(singular, ones({2, 2}, DType::f64)), why);
  EXPECT_THROW_MESSAGE(linalg_lu_factor(singular), why);
  const auto [inverse, info] = linalg_inv_ex(singular);
  EXPECT_EQ(info.to_vector<int32_t>(), (std::vector<int32_t>{0, 2}));
  expect_values(inverse[0], {1, 0, 0, 1});
  EXPECT_THROW_MESSAGE(linalg_solve_ex(singular, singular, true, true), why);
  EXPECT_EQ(std::get<1>(linalg_solve_ex(singular, singular)).to_vector<int32_t>(),
            (std::vector<int32_t>{0, 2}));
}
TEST(linalg_solve, says_what_does_not_fit) {
  EXPECT_THROW_MESSAGE(linalg_inv(ones({2, 3})), "A must be a square matrix");
  EXPECT_THROW_MESSAGE(linalg_det(ones({3})), "A must be a square matrix");
  EXPECT_THROW_MESSAGE(linalg_inv(ones({2, 2}, DType::i64)), "A must have a floating dtype");
  EXPECT_THROW_MESSAGE(linalg_solve(eye(2), ones({3, 1})),
                       "a matrix of 2 rows does not fit B, which has 3");
  EXPECT_THROW_MESSAGE(linalg_solve(ones({2, 2}), ones({2}), false),
                       "with left=False B must be a matrix");
  EXPECT_THROW_MESSAGE(linalg_solve(ones({2, 2}), ones({2, 2}, DType::f64)),
                       "B must have the dtype of A, f32, got f64 (2, 2)");
  EXPECT_THROW_MESSAGE(linalg_solve(eye(2), ones({})), "B must be a vector or a matrix");
  EXPECT_THROW_MESSAGE(linalg_lu_solve(eye(2), ones({2}, DType::i32) * 3, ones({2, 1})),
                       "linalg_lu_solve: pivot 3 is outside [1, 2]");
  EXPECT_THROW_MESSAGE(linalg_lu_solve(eye(2), ones({3}, DType::i32), ones({2, 1})),
                       "pivots have extent 3, LU asks for 2");
}
TEST(linalg_solve, gives_nan_for_nan) {
  const Tensor a = matrix({nan, 1, 2, 3}, 2);
  EXPECT_TRUE(all(isnan(linalg_inv(a))).item() != 0);
  EXPECT_TRUE(std::isnan(linalg_det(a).item()));
  EXPECT_TRUE(std::isnan(linalg_det(matrix({2, 1, nan, 3}, 2)).item()));
}
TEST(linalg_lu_solve, solves_for_the_transpose_too) {
  const Tensor a = solvable({3, 5, 5}), b = random_tensor({5, 2}, 2, DType::f64);
  const auto [lu, pivots] = linalg_lu_factor(a);
  EXPECT_LE(distance(linalg_lu_solve(lu, pivots, b, true, true), linalg_solve(mT(a), b)), 1e-12);
  EXPECT_LE(
      distance(linalg_lu_solve(lu, pivots, mT(b), false, true), linalg_solve(mT(a), mT(b), false)),
      1e-12);
}
TEST(linalg_lu_factor, takes_matrices_that_are_not_square) {
  for (const auto& [m, n] : {std::pair{3, 7}, {7, 3}, {80, 40}, {40, 80}, {0, 3}, {3, 0}}) {
    const Tensor a = random_tensor({m, n}, 1, DType::f64);
    const auto [lu, pivots, info] = linalg_lu_factor_ex(a);
    const int64_t k = std::min(m, n);
    EXPECT_EQ(to_string(pivots.sizes()), "(" + std::to_string(k) + ")");
    const Tensor l = tril(narrow(lu, 1, 0, k), -1) + tril(triu(ones({m, k}, DType::f64)));
    Tensor product = matmul(l, triu(narrow(lu, 0, 0, k)));
    // undo the exchanges
    const std::vector<int32_t> p = pivots.to_vector<int32_t>();
    std::vector<int64_t> order;
    for (int64_t i = 0; i < m; ++i) order.push_back(i);
    for (size_t i = 0; i < p.size(); ++i) std::swap(order[i], order[static_cast<size_t>(p[i] - 1)]);
    for (int64_t i = 0; i < m && n > 0; ++i)
      EXPECT_LE(distance(product[i], a[order[static_cast<size_t>(i)]]), 1e-13) << m << " " << i;
  }
}

TEST(linalg_det, gives_the_results_of_pytorch) {
  const Tensor a = some_a();
  EXPECT_NEAR(linalg_det(a).item(), 27.875, 1e-12);
  const auto [sign, logarithm] = linalg_slogdet(stack({a, a}));
  expect_values(sign, {1, 1});
  EXPECT_NEAR(logdet(a).item(), 3.3277302297802827, 1e-13);
  const Tensor negative = cat({narrow(a, 0, 1, 1), narrow(a, 0, 0, 1), narrow(a, 0, 2, 1)});
  EXPECT_NEAR(linalg_det(negative).item(), -27.875, 1e-12);
  EXPECT_TRUE(std::isnan(logdet(negative).item()));
  EXPECT_EQ(std::get<0>(linalg_slogdet(negative)).item(), -1);
  EXPECT_EQ(linalg_det(ones({0, 0})).item(), 1);
  EXPECT_EQ(to_string(linalg_det(ones({0, 2, 2})).sizes()), "(0)");
  const auto [none, minus_infinity] = linalg_slogdet(ones({2, 2}));
  EXPECT_EQ(none.item(), 0);
  EXPECT_EQ(minus_infinity.item(), -infinity);
  EXPECT_EQ(linalg_det(ones({2, 2})).item(), 0);
}
TEST(linalg_det, of_a_singular_matrix_has_the_cofactors_as_gradient) {
  const Tensor x = ones({2, 2}, DType::f64).set_requires_grad();
  linalg_det(x).backward();
  expect_values(x.grad(), {1, -1, -1, 1});
}

// ---- triangular systems and Cholesky's factor

TEST(linalg_solve_triangular, gives_the_results_of_pytorch) {
  expect_values(linalg_solve_triangular(some_a(), some_b(), true),
                {-33.5, 18, -11.75, 6, 0.0625, 1});
  expect_values(linalg_solve_triangular(some_a(), mT(some_b()), false, false, true),
                {11.8125, -3.4375, 0.25, 29.5, -6.5, 4});
}
TEST(linalg_solve_triangular, reads_one_half) {
  const Tensor a = solvable({2, 19, 19}), b = random_tensor({19, 21}, 2, DType::f64);
  for (const bool upper : {false, true})
    for (const bool unit : {false, true}) {
      Tensor half = upper ? triu(a, unit ? 1 : 0) : tril(a, unit ? -1 : 0);
      Tensor scaled = unit ? a * 0.1 : a;
      half = unit ? half * 0.1 + eye(19, DType::f64) : half;
      const Tensor x = linalg_solve_triangular(scaled, b, upper, true, unit);
      EXPECT_LE(distance(matmul(half, x), expand(b, {2, 19, 21})), 1e-11);
      const Tensor y = linalg_solve_triangular(scaled, mT(b), upper, false, unit);
      EXPECT_LE(distance(matmul(y, half), expand(mT(b), {2, 21, 19})), 1e-11);
    }
  EXPECT_THROW_MESSAGE(linalg_solve_triangular(ones({2, 3}), ones({3, 1}), true),
                       "linalg_solve_triangular: self must be square, it is (2, 3)");
  EXPECT_THROW_MESSAGE(linalg_solve_triangular(ones({2}), ones({2, 1}), true),
                       "self must be a matrix or a batch of them, it has 1 dimensions");
}
TEST(linalg_cholesky, gives_the_results_of_pytorch) {
  const Tensor a = some_a(), square = matmul(a, mT(a));
  const std::vector<double> upper{2.5495097567963922,
                                  -0.34320323649182205,
                                  1.7160161824591105,
                                  0,
                                  3.15352367019205,
                                  -2.845565351904018,
                                  0,
                                  0,
                                  3.467065948259684};
  expect_values(linalg_cholesky(square, true), upper);
  expect_values(mT(linalg_cholesky(square)), upper);
  // each reads its half alone
  expect_values(linalg_cholesky(triu(square), true), upper);
  expect_values(mT(linalg_cholesky(tril(square))), upper);
  expect_values(cholesky_solve(some_b(), linalg_cholesky(square)),
                {0.25312192081079454, 0.1644714351786684, -0.5139807758048623, 0.32867139898248504,
                 -0.25029158036558147, 0.2785195761024754});
  EXPECT_LE(distance(cholesky_solve(some_b(), linalg_cholesky(square, true), true),
                     linalg_solve(square, some_b())),
            1e-12);
  for (const bool half : {false, true})
    EXPECT_LE(distance(cholesky_inverse(linalg_cholesky(square, half), half), linalg_inv(square)),
              1e-12);
}
TEST(linalg_cholesky, factors_every_size) {
  for (const int64_t n : {0, 1, 2, 9, 33, 140}) {
    const Tensor a = positive({2, n, n}, n + 1), l = linalg_cholesky(a);
    EXPECT_LE(distance(matmul(l, mT(l)), a), 1e-11 * static_cast<double>(n + 1)) << n;
    expect_same_bits(l, tril(l));
  }
}
TEST(linalg_cholesky, refuses_what_is_not_positive_definite) {
  const Tensor a = matrix({4, 0, 0, -1}, 2);
  EXPECT_THROW_MESSAGE(linalg_cholesky(a),
                       "the input is not positive-definite: its leading minor of order 2 is not");
  EXPECT_EQ(std::get<1>(linalg_cholesky_ex(a)).item(), 2);
  EXPECT_EQ(std::get<1>(linalg_cholesky_ex(a * nan)).item(), 1);
  EXPECT_THROW_MESSAGE(linalg_cholesky(ones({2, 3})), "self must be square, it is (2, 3)");
}

// ---- Q R

TEST(linalg_qr, gives_the_results_of_pytorch) {
  const auto [q, r] = linalg_qr(cat({some_a(), matrix({1, 2, 3}, 1)}));
  expect_values(
      q, {-0.13245323570650447, 0.47674024925703007, -0.8690079833288195, -0.7947194142390263,
          -0.186362097436839, 0.01889147789845269, 0.5298129428260175, -0.507078265118841,
          -0.3589380800705996, -0.26490647141300877, -0.6934403625556801, -0.3400466021721469});
  expect_values(r, {-3.7749172176353745, 0.3973597071195134, 1.8543452998910612, 0,
                    -3.0359685873140876, -2.968791552191505, 0, 0, -4.21279957135493});
  const auto [wide_q, wide_r] = linalg_qr(cat({some_a(), some_b()}, 1));
  expect_values(wide_q, {-0.137360563948689, 0.648424051132814, 0.7487845654019638,
                         -0.824163383692134, -0.4941438458632826, 0.27672473069202996,
                         0.549442255794756, -0.5791097560117202, 0.6022832373885361});
  expect_values(wide_r, {-3.6400549446402595, 0.9615239476408233, 2.74721127897378,
                         2.4724901510764026, 1.5109662034355793, 0, -2.109614111185552,
                         -0.5254470759179702, 1.9860781497197317, -1.266662844712894, 0, 0,
                         3.629977349666042, 0.06918118267300777, 4.045064445704086});
}
TEST(linalg_qr, factors_every_shape_in_every_mode) {
  for (const auto& [m, n] :
       {std::pair{1, 1}, {5, 3}, {3, 5}, {40, 33}, {33, 90}, {4, 0}, {0, 4}, {1, 6}, {6, 1}}) {
    const Tensor a = random_tensor({2, m, n}, m, DType::f64);
    const int64_t k = std::min(m, n);
    for (const bool complete : {false, true}) {
      const auto [q, r] = linalg_qr(a, complete ? "complete" : "reduced");
      const int64_t kept = complete ? m : k;
      EXPECT_EQ(to_string(q.sizes()), to_string(Dims{2, m, kept}));
      EXPECT_EQ(to_string(r.sizes()), to_string(Dims{2, kept, n}));
      EXPECT_LE(distance(matmul(q, r), a), 1e-13 * (m + n));
      EXPECT_LE(distance(matmul(mT(q), q), expand(eye(kept, DType::f64), {2, kept, kept})),
                1e-13 * (m + n));
      expect_same_bits(r, triu(r));
      if (complete) continue;
      const auto [none, only_r] = linalg_qr(a, "r");
      EXPECT_EQ(to_string(none.sizes()), "(0)");
      expect_same_bits(only_r, r);
    }
  }
  EXPECT_THROW_MESSAGE(linalg_qr(ones({2, 2}), "full"),
                       "linalg_qr: mode must be \"reduced\", \"complete\" or \"r\"");
  EXPECT_THROW_MESSAGE(linalg_qr(ones({2})), "A must be a matrix or a batch of them");
}
TEST(linalg_qr, takes_columns_of_zeros_and_large_numbers) {
  const auto [q, r] = linalg_qr(zeros({3, 2}));
  EXPECT_EQ(distance(matmul(q, r), zeros({3, 2})), 0);
  EXPECT_LE(distance(matmul(mT(q), q), eye(2)), 0);
  const auto [big_q, big_r] = linalg_qr(matrix({3e200, 0, 4e200, 5}, 2));
  EXPECT_NEAR(big_r[0][0].item() / -5e200, 1, 1e-15);
}

// ---- the exponential, powers and products

TEST(linalg_matrix_exp, gives_the_results_of_pytorch) {
  expect_values(linalg_matrix_exp(some_a()),
                {-2.9363831727561447, 8.507936540436452, 14.970659891067125, 0.313237468261837,
                 1.6907007967859946, 5.992867148237908, -1.9738269792160663, 15.506148314285781,
                 23.50295372757154});
}
TEST(linalg_matrix_exp, has_its_closed_forms) {
  const Tensor turn = matrix({0, -3, 3, 0}, 2);
  expect_values(linalg_matrix_exp(turn), {std::cos(3), -std::sin(3), std::sin(3), std::cos(3)});
  expect_values(linalg_matrix_exp(matrix({0, 1, 5, 0, 0, 2, 0, 0, 0}, 3)),
                {1, 1, 6, 0, 1, 2, 0, 0, 1});
  expect_values(linalg_matrix_exp(matrix({-1000, 0, 0, 2}, 2)), {0, 0, 0, std::exp(2)});
  expect_values(linalg_matrix_exp(zeros({2, 2}, DType::f64)), {1, 0, 0, 1}, 0);
  expect_values(linalg_matrix_exp(ones({3, 1, 1}, DType::f64)),
                {std::exp(1), std::exp(1), std::exp(1)}, 0);
  EXPECT_EQ(to_string(linalg_matrix_exp(ones({2, 0, 0})).sizes()), "(2, 0, 0)");
  EXPECT_TRUE(all(isnan(linalg_matrix_exp(matrix({nan, 1, 0, 1}, 2)))).item() != 0);
  const Tensor x = random_tensor({20, 40, 40}, 1, DType::f64);
  EXPECT_LE(distance(matmul(linalg_matrix_exp(x * 0.1), linalg_matrix_exp(x * -0.1)),
                     expand(eye(40, DType::f64), x.sizes())),
            1e-12);
}
TEST(linalg_matrix_exp, keeps_the_digits_of_f32) {
  const Tensor x = random_tensor({12, 12}, 1) * 3;
  const Tensor exact = linalg_matrix_exp(x.to(DType::f64));
  EXPECT_LE(distance(linalg_matrix_exp(x).to(DType::f64), exact) / max(abs(exact)).item(), 1e-7);
}
TEST(linalg_matrix_power, gives_the_results_of_pytorch) {
  expect_values(linalg_matrix_power(some_a(), 5),
                {194.9921875, 4.677734375, 102.8828125, 62.50390625, 209.0791015625, 4.44921875,
                 -48.98828125, 100.0029296875, 376.03515625});
  expect_values(linalg_matrix_power(some_a(), -3),
                {-0.031380125121206276, -0.005431411343653009, 0.03657275347179921,
                 0.030178274769429688, -0.028708424774384792, -0.0032632473386923107,
                 -0.02208616441020647, 0.03468386096589705, 0.032890463622249635});
  expect_same_bits(linalg_matrix_power(some_a(), 1), some_a());
  expect_same_bits(linalg_matrix_power(ones({2, 3, 3}), 0), clone(expand(eye(3), {2, 3, 3})));
  EXPECT_THROW_MESSAGE(linalg_matrix_power(ones({2, 3}), 2), "self must be a square matrix");
}
TEST(linalg_multi_dot, multiplies_in_any_order) {
  const Tensor a = random_tensor({2, 30}, 1, DType::f64), b = random_tensor({30, 3}, 2, DType::f64),
               c = random_tensor({3, 40}, 3, DType::f64), d = random_tensor({40, 1}, 4, DType::f64);
  const Tensor want = matmul(matmul(matmul(a, b), c), d);
  EXPECT_LE(distance(linalg_multi_dot({a, b, c, d}), want), 1e-11);
  EXPECT_LE(distance(chain_matmul({a, b, c, d}), want), 1e-11);
  EXPECT_LE(distance(linalg_multi_dot({a[0], b, c, squeeze(d, 1)}), want[0][0]), 1e-11);
  expect_same_bits(linalg_multi_dot({a, b}), matmul(a, b));
  expect_same_bits(chain_matmul({a}), a);
  // (d d^T) c^T would be the long way
  expect_same_bits(linalg_multi_dot({d, mT(d), mT(c)}), matmul(d, matmul(mT(d), mT(c))));
  EXPECT_THROW_MESSAGE(linalg_multi_dot({a}), "linalg_multi_dot: tensors must be two or more");
  EXPECT_THROW_MESSAGE(linalg_multi_dot({a, b[0], c}), "element 1 is not");
  EXPECT_THROW_MESSAGE(linalg_multi_dot({a, c}), "30 columns do not fit 3 rows");
  EXPECT_THROW_MESSAGE(chain_matmul({a[0], b}), "matrices must have 2 dimensions each");
}
TEST(linalg_vecdot, sums_products_along_a_dimension) {
  expect_values(linalg_vecdot(some_a(), expand(mT(some_b())[0], {3, 3})), {5.5, 2, -6.25});
  expect_values(linalg_vecdot(some_b(), some_b() * 2, 0), {20.125, 40.5});
  EXPECT_THROW_MESSAGE(linalg_vecdot(ones({2}), ones({2}), 1), "dim 1 is outside [-1, 1)");
  EXPECT_THROW_MESSAGE(linalg_vecdot(ones({2}, DType::i64), ones({2}, DType::i64)),
                       "linalg_vecdot: x must have a floating dtype");
}
TEST(linalg_matrix_norm, gives_the_results_of_pytorch) {
  const Tensor a = some_a();
  EXPECT_EQ(linalg_matrix_norm(a, 1).item(), 7);
  EXPECT_EQ(linalg_matrix_norm(a, -infinity).item(), 4);
  EXPECT_NEAR(linalg_matrix_norm(a).item(), 6.294839156007086, 1e-14);
  EXPECT_EQ(to_string(linalg_matrix_norm(ones({2, 3, 4}), infinity, {0, 2}, true).sizes()),
            "(1, 3, 1)");
  EXPECT_THROW_MESSAGE(linalg_matrix_norm(a, 1, {0, 0}), "two different dimensions");
  EXPECT_THROW_MESSAGE(linalg_matrix_norm(ones({3}), 1), "self must have 2 dimensions or more");
}

// ---- derivatives

using Values = std::vector<Tensor>;

TEST(linalg_solve, is_differentiable_twice) {
  for (const bool left : {true, false})
    expect_right_derivatives(
        [&](const Values& v) { return sum(pow(linalg_solve(v[0], v[1], left), 2)); },
        {solvable({2, 1, 3, 3}), random_tensor({2, 3, 3}, 2, DType::f64)});
  expect_right_derivatives([](const Values& v) { return sum(pow(linalg_solve(v[0], v[1]), 2)); },
                           {solvable({2, 3, 3}), random_tensor({2, 3}, 2, DType::f64)});
  expect_right_derivatives([](const Values& v) { return sum(pow(linalg_solve(v[0], v[1]), 2)); },
                           {solvable({2, 3, 3}), random_tensor({3}, 2, DType::f64)});
  expect_right_derivatives([](const Values& v) { return sum(pow(linalg_inv(v[0]), 2)); },
                           {solvable({2, 3, 3})});
}
TEST(linalg_det, is_differentiable_twice) {
  const Values input{solvable({2, 3, 3})};
  expect_right_derivatives([](const Values& v) { return linalg_det(v[0]); }, input);
  expect_right_derivatives([](const Values& v) { return std::get<1>(linalg_slogdet(v[0])); },
                           input);
  expect_right_derivatives([](const Values& v) { return logdet(v[0]); }, input);
}
TEST(linalg_lu_factor, is_differentiable_twice) {
  for (const auto& [m, n] : {std::pair{2, 4}, {4, 2}, {3, 3}})
    expect_right_derivatives([](const Values& v) { return std::get<0>(linalg_lu_factor(v[0])); },
                             {random_tensor({2, m, n}, 5, DType::f64)});
  const Tensor a = random_tensor({2, 3, 3}, 5, DType::f64);
  const auto [lu, pivots] = linalg_lu_factor(a);
  for (const bool left : {true, false})
    for (const bool adjoint : {true, false})
      expect_right_derivatives(
          [&, pivots = pivots](const Values& v) {
            return linalg_lu_solve(v[0], pivots, v[1], left, adjoint);
          },
          {lu.detach(), random_tensor({3, 3}, 2, DType::f64)});
}
TEST(linalg_solve_triangular, is_differentiable_twice) {
  for (const bool upper : {true, false})
    for (const bool left : {true, false})
      for (const bool unit : {true, false})
        expect_right_derivatives(
            [&](const Values& v) { return linalg_solve_triangular(v[0], v[1], upper, left, unit); },
            {solvable({2, 2, 2}), random_tensor({2, 2}, 2, DType::f64)});
}
TEST(linalg_cholesky, is_differentiable_twice) {
  for (const bool upper : {true, false}) {
    const auto square = [](const Tensor& x) { return matmul(x, mT(x)); };
    expect_right_derivatives([&](const Values& v) { return linalg_cholesky(square(v[0]), upper); },
                             {solvable({2, 3, 3})});
    expect_right_derivatives(
        [&](const Values& v) {
          return cholesky_solve(v[1], linalg_cholesky(square(v[0]), upper), upper);
        },
        {solvable({3, 3}), random_tensor({3, 2}, 2, DType::f64)});
  }
}
TEST(linalg_qr, is_differentiable_twice) {
  for (const auto& [m, n] : {std::pair{4, 2}, {3, 3}, {2, 4}}) {
    const Values input{random_tensor({2, m, n}, 3, DType::f64)};
    expect_right_derivatives([](const Values& v) { return std::get<0>(linalg_qr(v[0])); }, input);
    expect_right_derivatives([](const Values& v) { return std::get<1>(linalg_qr(v[0])); }, input);
    expect_right_derivatives(
        [](const Values& v) {
          const auto [q, r] = linalg_qr(v[0]);
          return cat({pow(q, 2), pow(mT(r), 2)}, -2);
        },
        input);
  }
  expect_refusal(
      [] {
        const Tensor x = ones({3, 2}).set_requires_grad();
        sum(std::get<0>(linalg_qr(x, "complete"))).backward();
      },
      "mode \"complete\" has no derivative for A (3, 2)");
}
TEST(linalg_matrix_exp, is_differentiable_twice) {
  expect_right_derivatives([](const Values& v) { return linalg_matrix_exp(v[0]); },
                           {random_tensor({2, 2, 2}, 3, DType::f64)});
}

// ---- threads, strides, dtypes, programs

TEST(linalg, does_not_depend_on_strides_or_threads) {
  const auto all_results = [](const Tensor& a, const Tensor& b, const Tensor& p) {
    Values parts{linalg_solve(a, b),
                 linalg_solve(a, mT(b), false),
                 linalg_inv(a),
                 linalg_det(a),
                 linalg_solve_triangular(a, b, true),
                 linalg_cholesky(p),
                 linalg_cholesky(p, true),
                 std::get<0>(linalg_qr(b)),
                 std::get<1>(linalg_qr(mT(b))),
                 linalg_matrix_exp(a)};
    for (Tensor& t : parts) t = reshape(t, {-1});
    return cat(parts);
  };
  for (const Ints& batch : {Ints{}, Ints{3}}) {
    const auto sizes = [&](int64_t m, int64_t n) {
      Ints all = batch;
      all.insert(all.end(), {m, n});
      return all;
    };
    const Tensor a = solvable(sizes(150, 150), 1, DType::f32),
                 p = positive(sizes(150, 150), 2, DType::f32), b = random_tensor(sizes(150, 40), 3);
    const auto call = [&] { return all_results(a, b, p); };
    expect_same_bits_with_two_threads(call);
    expect_same_bits(all_results(scattered(a), scattered(b), scattered(p)), call());
  }
}
TEST(linalg, computes_halves_in_f32) {
  const Tensor a = solvable({3, 3}, 1, DType::f32).to(DType::bf16);
  expect_same_bits(linalg_matrix_exp(a), linalg_matrix_exp(a.to(DType::f32)).to(DType::bf16));
  const Tensor square = matmul(a, mT(a));
  expect_same_bits(linalg_cholesky(square), linalg_cholesky(square.to(DType::f32)).to(DType::bf16));
}
TEST(linalg, gives_the_same_bits_in_programs) {
  const Dim batch = Dim::symbol("batch", 1, 8), n = Dim::symbol("n", 2, 12);
  const auto f = [](const Values& in) {
    const Tensor &a = in[0], &b = in[1], square = matmul(a, mT(a));
    const auto [sign, logarithm] = linalg_slogdet(a);
    const auto [q, r] = linalg_qr(b);
    return Values{linalg_solve(a, b),
                  linalg_inv(a),
                  linalg_det(a),
                  sign,
                  logarithm,
                  logdet(square),
                  linalg_cholesky(square),
                  cholesky_solve(b, linalg_cholesky(square)),
                  linalg_solve_triangular(a, b, false),
                  q,
                  r,
                  linalg_matrix_exp(a),
                  linalg_matrix_power(a, -3),
                  linalg_matrix_norm(a, 1),
                  linalg_matrix_norm(a)};
  };
  std::vector<Values> calls;
  for (const int64_t size : {2, 3, 12})
    calls.push_back(
        {solvable({size / 2, size, size}, 1, DType::f32), random_tensor({size / 2, size, 3}, 2)});
  expect_same_bits_in_program(f, {input("a", {batch, n, n}), input("b", {batch, n, 3})}, calls);
}
TEST(linalg, refuses_a_singular_matrix_in_a_program) {
  const InProgram program([](const Values& in) { return Values{linalg_inv(in[0])}; },
                          {input("a", {2, 2})});
  EXPECT_EQ(program.run({eye(2)}).size(), 1u);
  EXPECT_EXPORT_ERROR(program.run({ones({2, 2})}), "the input matrix is singular");
}
TEST(linalg_multi_dot, goes_from_the_left_where_sizes_are_symbols) {
  const Dim n = Dim::symbol("n", 1, 9);
  const auto f = [](const Values& in) { return Values{linalg_multi_dot({in[0], in[1], in[2]})}; };
  const InProgram program(f, {input("a", {n, 4}), input("b", {4, 3}), input("c", {3, n})});
  const Values call{random_tensor({5, 4}), random_tensor({4, 3}, 2), random_tensor({3, 5}, 3)};
  EXPECT_LE(distance(program.run(call)[0], f(call)[0]), 1e-5);
}

}  // namespace
}  // namespace taper::eager
