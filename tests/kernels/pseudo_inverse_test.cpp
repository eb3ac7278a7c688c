// What is made of singular values, eigenvalues and factors. Results with decimals are PyTorch's, in
// f64.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/some_matrices.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Tensor some_right_of_tall() { return matrix({1, 2, 0, 1, -1, 3, 2, 0.5}, 4); }
std::string sizes_of(const Tensor& t) { return to_string(t.sizes()); }

// ---- pseudo-inverses and ranks

TEST(linalg_pinv, gives_the_results_of_pytorch) {
  expect_values(
      linalg_pinv(some_tall()),
      {0.09865470852017942, 0.2152466367713004, -0.08968609865470854, 0.12556053811659185,
       -0.35874439461883395, 0.06576980568011957, 0.08370702541106124, 0.14947683109118082,
       0.20627802690582953, -0.004484304932735448, 0.08520179372197308, 0.08071748878923762});
  expect_values(linalg_pinv(some_deficient()),
                {0.045454545454545206, 0.090909090909091, 0.4393939393939397, -0.3939393939393942,
                 0, 0, -0.33333333333333354, 0.3333333333333335, 0.045454545454545414,
                 0.09090909090909093, 0.10606060606060613, -0.06060606060606066});
  const Tensor symmetric = some_square() + mT(some_square());
  expect_values(linalg_pinv(symmetric, std::nullopt, std::nullopt, true),
                {-0.23605150214592263, 0.8240343347639486, -0.07725321888412018, 0.8240343347639486,
                 -0.5493562231759659, 0.051502145922746795, -0.07725321888412018,
                 0.05150214592274679, 0.12017167381974256});
  expect_values(linalg_pinv(some_square(), std::nullopt, 0.5),
                {-0.01948056544643509, 0.04677768059532752, -0.09057277835799106,
                 0.007348031860827193, -0.01764445125246431, 0.03416387799051024,
                 0.0279974447560791, -0.06722882515326886, 0.13017108591919746});
  // No value is below the tolerance
  expect_values(linalg_pinv(some_square(), 2.0), linalg_inv(some_square()).to_vector<double>());
}
TEST(linalg_pinv, has_the_four_properties_of_penrose) {
  for (const int64_t n : {1, 3, 10})
    for (const auto& [name, a] : hard_matrices(n)) {
      // Where singular values fall without a gap, products of the inverse lose their digits
      if (name == "Hilbert" || name == "near singular" || name.starts_with("graded")) continue;
      SCOPED_TRACE(name + " " + std::to_string(n));
      const double size = largest(a);
      if (size > 0 && (size < 1e-200 || size > 1e200)) continue;
      const Tensor p = linalg_pinv(a), ap = matmul(a, p), pa = matmul(p, a);
      const double bound = 1e-11 * std::max(1.0, size * largest(p));
      EXPECT_LE(distance(matmul(ap, a), a), bound * std::max(1.0, size));
      EXPECT_LE(distance(matmul(pa, p), p), bound * std::max(1.0, largest(p)));
      EXPECT_LE(distance(ap, mT(ap)), bound);
      EXPECT_LE(distance(pa, mT(pa)), bound);
    }
}
TEST(linalg_pinv, has_tolerances_for_each_matrix) {
  const Tensor a = clone(expand(diag_embed(matrix({4, 2, 1}, 1)[0]), {2, 3, 3}));
  const Tensor tolerances = matrix({0.3, 0.6}, 1)[0];
  const std::vector<double> first{0.25, 0, 0, 0, 0.5, 0, 0, 0, 0},
      second{0.25, 0, 0, 0, 0, 0, 0, 0, 0};
  const auto expect_both = [&](const Tensor& got) {
    expect_values(got[0], first);
    expect_values(got[1], second);
  };
  expect_both(linalg_pinv(a, Tensor(), tolerances));
  expect_both(linalg_pinv(a, tolerances * 4, Tensor()));
  expect_both(linalg_pinv(a, tolerances.to(DType::f32) * 4, Tensor()));
  expect_both(call<ops::linalg_pinv_rcond_tensor>(a, tolerances, false));
  expect_values(call<ops::linalg_pinv>(a[0], 0.3, false), first);
  expect_values(pinverse(a[0], 0.6), second);
  EXPECT_EQ(sizes_of(linalg_pinv(ones({2, 0, 3}))), "(2, 3, 0)");
  EXPECT_EQ(sizes_of(linalg_pinv(ones({0, 2, 3}))), "(0, 3, 2)");
  EXPECT_THROW_MESSAGE(linalg_pinv(ones({3})), "linalg_pinv: self must be a matrix");
  EXPECT_THROW_MESSAGE(linalg_pinv(ones({2, 3}), std::nullopt, std::nullopt, true),
                       "self must be square if it is hermitian, got f32 (2, 3)");
}
TEST(linalg_matrix_rank, counts_singular_values) {
  EXPECT_EQ(linalg_matrix_rank(some_deficient()).item(), 2);
  EXPECT_EQ(linalg_matrix_rank(some_square()).item(), 3);
  EXPECT_EQ(linalg_matrix_rank(some_square(), 2.1).item(), 2);
  EXPECT_EQ(linalg_matrix_rank(some_square(), std::nullopt, 0.45).item(), 2);
  EXPECT_EQ(linalg_matrix_rank(some_square(), 5.0, 0.45).item(), 1);
  EXPECT_EQ(linalg_matrix_rank(zeros({3, 2})).item(), 0);
  const Tensor signs = diag_embed(matrix({-3, 2, -1}, 1)[0]);
  EXPECT_EQ(linalg_matrix_rank(signs, 1.5, std::nullopt, true).item(), 2);
  const Tensor both =
      linalg_matrix_rank(expand(eye(2), {2, 2, 2}), matrix({0.1, 2}, 1)[0], Tensor());
  EXPECT_EQ(both.to_vector<int64_t>(), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(call<ops::linalg_matrix_rank>(signs, 1.5, false).item(), 2);
  EXPECT_EQ(call<ops::linalg_matrix_rank_tol_tensor>(signs, full({}, 2.5), true).item(), 1);
  EXPECT_EQ(linalg_matrix_rank(ones({2, 0, 3})).to_vector<int64_t>(), (std::vector<int64_t>{0, 0}));
  EXPECT_THROW_MESSAGE(linalg_matrix_rank(ones({3})), "linalg_matrix_rank: self must be a matrix");
}

// ---- least squares

struct Solved {
  Tensor x, residuals, rank, values;
};
Solved solved(const Tensor& a, const Tensor& b, const char* driver) {
  const auto [x, residuals, rank, values] = linalg_lstsq(a, b, std::nullopt, driver);
  return {x, residuals, rank, values};
}

TEST(linalg_lstsq, gives_the_results_of_pytorch) {
  for (const char* driver : {"gels", "gelsy", "gelsd", "gelss"}) {
    SCOPED_TRACE(driver);
    const bool values = std::string(driver) == "gelsd" || std::string(driver) == "gelss";
    const bool full = std::string(driver) == "gels";
    const Solved tall = solved(some_tall(), some_right_of_tall(), driver);
    expect_values(tall.x, {0.43946188340807185, 0.2062780269058297, -0.1434977578475337,
                           -0.3258594917787742, 0.28251121076233193, 0.704035874439462});
    expect_values(tall.residuals, values || full
                                      ? std::vector{2.9999999999999987, 4.083333333333334}
                                      : std::vector<double>{});
    expect_values(tall.rank, full ? std::vector<double>{} : std::vector<double>{3});
    expect_values(tall.values,
                  values ? std::vector{6.013188370434016, 3.4883779417028755, 2.3016917598840037}
                         : std::vector<double>{});
    const Solved wide = solved(some_wide(), some_right(), driver);
    expect_values(
        wide.x, {-0.30503983099967924, 0.10809697399368645, -0.33910814966683756,
                 0.026037929267042625, 0.13531905516940756, 0.46641022816001376, 0.6024890183323197,
                 -0.1146347188357758, -0.11463471883577564, 0.5834113347097343});
    EXPECT_EQ(sizes_of(wide.residuals), "(0)");
    if (full) continue;
    const Solved deficient = solved(some_deficient(), some_right_of_tall(), driver);
    expect_values(deficient.x, {-1.1818181818181834, 1.3030303030303034, 1, -0.8333333333333331,
                                -0.1818181818181822, 0.46969696969696995});
    EXPECT_EQ(sizes_of(deficient.residuals), "(0)");
    EXPECT_EQ(deficient.rank.item(), 2);
  }
}
TEST(linalg_lstsq, takes_vectors_batches_and_matrices_without_elements) {
  const Tensor a = random_tensor({2, 5, 3}, 1, DType::f64),
               b = random_tensor({2, 5}, 2, DType::f64);
  for (const char* driver : {"gels", "gelsy", "gelsd", "gelss"}) {
    SCOPED_TRACE(driver);
    const bool full = std::string(driver) == "gels";
    const Solved batch = solved(a, b, driver);
    EXPECT_EQ(sizes_of(batch.x), "(2, 3)");
    EXPECT_EQ(sizes_of(batch.rank), full ? "(0)" : "(2)");
    // The rest is orthogonal to the columns
    const Tensor rest = unsqueeze(b, -1) - matmul(a, unsqueeze(batch.x, -1));
    EXPECT_LE(largest(matmul(mT(a), rest)), 1e-13);
    EXPECT_LE(distance(solved(a[1], b[1], driver).x, batch.x[1]), 1e-15);
    const Tensor shared = solved(a, random_tensor({1, 5, 2}, 4, DType::f64), driver).x;
    EXPECT_EQ(sizes_of(shared), "(2, 3, 2)");
    EXPECT_EQ(sizes_of(solved(zeros({5, 0}), ones({5}), driver).x), "(0)");
    expect_same_bits(solved(zeros({0, 3}), zeros({0, 2}), driver).x, zeros({3, 2}));
    EXPECT_EQ(sizes_of(solved(zeros({0, 5, 3}), zeros({0, 5, 2}), driver).x), "(0, 3, 2)");
  }
}
TEST(linalg_lstsq, solves_nearly_singular_systems_backward_stably) {
  // For x = V diag(1 / S) U^T b the rest is as small as b, however large x is
  const int64_t n = 10;
  for (const auto& [name, a] : hard_matrices(n)) {
    if (name != "Hilbert" && name != "near singular") continue;
    const Tensor exact = ones({n, 1}, DType::f64), b = matmul(a, exact);
    const Tensor x = solved(a, b, "gelsd").x;
    EXPECT_LE(distance(matmul(a, x), b), 1e-14) << name;
  }
}
TEST(linalg_lstsq, says_what_does_not_fit) {
  EXPECT_THROW_MESSAGE(solved(ones({3, 2}), ones({3}), "svd"),
                       "driver must be \"gels\", \"gelsy\", \"gelsd\" or \"gelss\", got \"svd\"");
  EXPECT_THROW_MESSAGE(solved(ones({3, 2}), ones({2}), "gelsd"),
                       "b must have as many rows as self (3, 2), got f32 (2)");
  EXPECT_THROW_MESSAGE(solved(ones({3, 2}), ones({3}, DType::f64), "gelsd"),
                       "b must have the dtype of self, f32, got f64 (3)");
  EXPECT_THROW_MESSAGE(solved(ones({3}), ones({3}), "gelsd"), "self must be a matrix");
  EXPECT_THROW_MESSAGE(solved(ones({1, 1, 3, 2}), ones({3, 2}), "gelsd"),
                       "b must have as many dimensions as self, or one less");
  EXPECT_THROW_MESSAGE(solved(zeros({3, 2}), ones({3}), "gels"),
                       "self does not have full rank, which the driver \"gels\" needs");
}

// ---- factors

TEST(linalg_lu, gives_the_results_of_pytorch) {
  const auto [p, l, u] = linalg_lu(some_tall());
  expect_values(p, {0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1});
  expect_values(l, {1, 0, 0, -0.6666666666666666, 1, 0, 0.16666666666666666, -0.8043478260869565, 1,
                    0.3333333333333333, 1, 0});
  expect_values(u,
                {3, 0.25, -1, 0, 1.9166666666666667, 3.3333333333333335, 0, 0, 4.8478260869565215});
}
TEST(linalg_lu, multiplies_back) {
  for (const auto& [m, n] : {std::pair{1, 1}, {5, 3}, {3, 5}, {40, 33}, {4, 0}, {0, 4}}) {
    const Tensor a = random_tensor({2, m, n}, m, DType::f64);
    const auto [p, l, u] = linalg_lu(a);
    EXPECT_LE(distance(matmul(matmul(p, l), u), a), 1e-14 * (m + n));
    expect_same_bits(u, triu(u));
    expect_same_bits(l, tril(l));
  }
}
TEST(lu_unpack, leaves_out_what_is_not_wanted) {
  const auto [lu, pivots] = linalg_lu_factor(some_square());
  const auto [p, l, u] = linalg_lu(some_square());
  const auto [only_p, no_l, no_u] = lu_unpack(lu, pivots, false, true);
  expect_same_bits(only_p, p);
  EXPECT_EQ(sizes_of(no_l), "(0)");
  EXPECT_EQ(sizes_of(no_u), "(0)");
  const auto [no_p, same_l, same_u] = lu_unpack(lu, pivots, true, false);
  EXPECT_EQ(sizes_of(no_p), "(0)");
  expect_same_bits(same_l, l);
  expect_same_bits(same_u, u);
  expect_same_bits(lu_solve(some_right(), lu, pivots), linalg_lu_solve(lu, pivots, some_right()));
  EXPECT_THROW_MESSAGE(lu_unpack(some_square(), ones({2}, DType::i32)),
                       "lu_unpack: LU_pivots must be i32 (3), got i32 (2)");
  EXPECT_THROW_MESSAGE(lu_unpack(some_square(), ones({3}, DType::i64)),
                       "LU_pivots must be i32 (3)");
  EXPECT_THROW_MESSAGE(lu_unpack(some_square(), zeros({3}, DType::i32)),
                       "pivot 0 is outside [1, 3]");
}

// ---- norms and condition numbers

TEST(linalg_matrix_norm, of_orders_of_singular_values_gives_the_results_of_pytorch) {
  expect_values(linalg_matrix_norm(some_square(), 2), {5.379793769786646});
  expect_values(linalg_matrix_norm(some_wide(), -2), {2.5669903047496567});
  expect_values(linalg_matrix_norm(some_wide(), "nuc"), {13.474328404144416});
  expect_values(linalg_norm(some_tall(), 2, Ints{0, 1}), {6.0131883704340146});
  expect_values(linalg_norm(some_tall(), -2), {2.301691759884003});
  expect_values(call<ops::linalg_norm_ord_str>(some_tall(), std::string_view("nuc"), std::nullopt,
                                               false, std::nullopt),
                {11.803258072020894});
  expect_values(nuclear_norm(some_tall()), {11.803258072020894});
  const Tensor cube = random_tensor({2, 3, 4}, 1, DType::f64);
  const Tensor kept = linalg_matrix_norm(cube, 2, {0, 2}, true);
  EXPECT_EQ(sizes_of(kept), "(1, 3, 1)");
  EXPECT_NEAR(kept[0][1][0].item(), linalg_matrix_norm(select(cube, 1, 1), 2).item(), 1e-14);
  EXPECT_EQ(sizes_of(nuclear_norm(cube, {2, 0}, true)), "(1, 3, 1)");
  expect_values(nuclear_norm(cube, {2, 0}), nuclear_norm(cube, {0, 2}).to_vector<double>());
  EXPECT_EQ(linalg_matrix_norm(ones({2, 2}), 2, {-2, -1}, false, DType::f64).dtype(), DType::f64);
  for (const double order : {2.0, -2.0})
    expect_values(linalg_matrix_norm(zeros({0, 3}), order), {0});
  expect_values(linalg_matrix_norm(zeros({2, 3, 0}), "nuc"), {0, 0});
  EXPECT_THROW_MESSAGE(linalg_matrix_norm(ones({2, 2}), 3),
                       "ord must be 1, -1, 2, -2, inf or -inf, got 3");
  EXPECT_THROW_MESSAGE(linalg_matrix_norm(ones({2, 2}), "two"),
                       "ord must be \"fro\", \"nuc\" or a number, got \"two\"");
}
TEST(linalg_cond, gives_the_results_of_pytorch) {
  const Tensor a = some_square();
  expect_values(linalg_cond(a), {2.675250804155622});
  expect_values(linalg_cond(a, Scalar(-2)), {0.3737967290568204});
  expect_values(linalg_cond(a, Scalar(1)), {4.645739910313901});
  expect_values(linalg_cond(a, Scalar(-1)), {1.5224215246636772});
  expect_values(linalg_cond(a, Scalar(infinity)), {6.255605381165919});
  expect_values(linalg_cond(a, Scalar(-infinity)), {1.7937219730941707});
  expect_values(linalg_cond(a, "fro"), {4.139611600425441});
  expect_values(linalg_cond(a, "nuc"), {10.677679541694888});
  expect_values(linalg_cond(some_wide()), {2.665947716877405});
  EXPECT_EQ(linalg_cond(zeros({2, 2}), Scalar(1)).item(), infinity);
  EXPECT_EQ(linalg_cond(zeros({2, 2}), "fro").item(), infinity);
  EXPECT_TRUE(std::isnan(linalg_cond(zeros({2, 2})).item()));
  expect_values(linalg_cond(zeros({2, 0, 0})), {0, 0});
  expect_values(linalg_cond(zeros({2, 0, 0}), "nuc"), {0, 0});
  EXPECT_THROW_MESSAGE(linalg_cond(ones({2, 3}), "fro"), "self must be a square matrix");
  EXPECT_THROW_MESSAGE(linalg_cond(ones({2, 3}), Scalar(1)), "self must be a square matrix");
  EXPECT_THROW_MESSAGE(linalg_cond(a, Scalar(3)), "p must be 2, -2, 1, -1, inf, -inf");
  EXPECT_THROW_MESSAGE(linalg_cond(a, "two"),
                       "p must be \"fro\", \"nuc\" or a number, got \"two\"");
}

}  // namespace
}  // namespace taper::eager
