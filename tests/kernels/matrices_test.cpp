// Eigenvalues and singular values. Results with decimals are PyTorch's, in f64.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/some_matrices.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();
/// Errors are below this, times the size of the matrix and its number of rows.
constexpr double rounding = 1e-14;
/// The rounding of sums of numbers that are not normal.
constexpr double denormal = 1e-321;

void expect_orthogonal_columns(const Tensor& q) {
  const Dim n = q.size(-1);
  Dims sizes = q.sizes();
  sizes[sizes.size() - 2] = n;
  EXPECT_LE(distance(matmul(mT(q), q), expand(eye(n, q.dtype()), sizes)),
            rounding * static_cast<double>(q.size(-2).value()));
}
void expect_order(const Tensor& values, bool ascending) {
  const int64_t n = values.size(-1).value();
  if (n < 2 || values.numel().value() == 0) return;
  const Tensor steps = narrow(values, -1, 1, n - 1) - narrow(values, -1, 0, n - 1);
  EXPECT_TRUE(all(ascending ? ge(steps, 0) : le(steps, 0)).item() != 0);
}

// ---- symmetric matrices

void expect_eigh(const Tensor& a) {
  const auto [values, vectors] = linalg_eigh(a);
  const double bound = rounding * size_of(a) * static_cast<double>(a.size(-1).value()) + denormal;
  EXPECT_LE(distance(matmul(a, vectors), vectors * unsqueeze(values, -2)), bound);
  expect_orthogonal_columns(vectors);
  expect_order(values, true);
  expect_same_bits(linalg_eigvalsh(a), values);
}

TEST(linalg_eigh, gives_the_results_of_pytorch) {
  const Tensor a = some_square(), symmetric = a + mT(a);
  const auto [values, vectors] = linalg_eigh(symmetric);
  expect_values(values, {-0.8081954742718197, 2.230711591972433, 8.077483882299386});
  expect_values(abs(vectors), {0.6371005997185775, 0.7704730262011075, 0.021774795859818202,
                               0.7680016140446626, 0.6321533897651889, 0.10274051115881516,
                               0.06539378153175186, 0.08217911964050771, 0.9944698314338596});
  // each half alone
  expect_values(linalg_eigvalsh(a), {-3.5561105853287516, 3.3481202092391227, 4.957990376089629});
  expect_values(linalg_eigvalsh(a, "U"),
                {-1.2321958799433712, 0.6035406589368554, 5.3786552210065155});
  expect_same_bits(linalg_eigvalsh(a, "u"), linalg_eigvalsh(mT(a)));
  const Tensor half = tril(symmetric) + triu(full({3, 3}, nan, DType::f64), 1);
  expect_same_bits(std::get<1>(linalg_eigh(half)), vectors);
}
TEST(linalg_eigh, decomposes_hard_matrices) {
  for (const int64_t n : {1, 2, 3, 6, 17, 40})
    for (const auto& [name, a] : hard_matrices(n)) {
      SCOPED_TRACE(name + " " + std::to_string(n));
      expect_eigh(a * 0.5 + mT(a) * 0.5);
    }
}
TEST(linalg_eigh, decomposes_large_and_empty_matrices) {
  const Tensor large = random_tensor({200, 200}, 1, DType::f64);
  expect_eigh(large + mT(large));
  EXPECT_EQ(to_string(linalg_eigvalsh(ones({0, 0})).sizes()), "(0)");
  const auto [values, vectors] = linalg_eigh(ones({0, 3, 3}));
  EXPECT_EQ(to_string(values.sizes()), "(0, 3)");
  EXPECT_EQ(to_string(vectors.sizes()), "(0, 3, 3)");
  const auto [none, nobody] = linalg_eigh(ones({2, 0, 0}));
  EXPECT_EQ(to_string(none.sizes()), "(2, 0)");
  EXPECT_EQ(to_string(nobody.sizes()), "(2, 0, 0)");
}
TEST(linalg_eigh, keeps_the_digits_of_f32) {
  const Tensor x = random_tensor({20, 20}), symmetric = x + mT(x);
  const Tensor exact = linalg_eigvalsh(symmetric.to(DType::f64));
  expect_same_bits(linalg_eigvalsh(symmetric), exact.to(DType::f32));
}
TEST(linalg_eigh, says_what_does_not_fit) {
  EXPECT_THROW_MESSAGE(linalg_eigh(ones({2, 3})), "A must be square, it is (2, 3)");
  EXPECT_THROW_MESSAGE(linalg_eigh(ones({2})),
                       "A must be a matrix or a batch of them, it has 1 dimensions");
  EXPECT_THROW_MESSAGE(linalg_eigh(eye(2), "X"), "UPLO must be \"L\" or \"U\"");
  EXPECT_THROW_MESSAGE(linalg_eigh(eye(2).to(DType::i64)), "A must have a floating dtype");
  EXPECT_THROW_MESSAGE(linalg_eigh(eye(2).to(DType::f16)), "f16");
}

// ---- singular values

void expect_svd(const Tensor& a) {
  const auto [u, s, vh] = linalg_svd(a, false);
  const double sizes = static_cast<double>(a.size(-1).value() + a.size(-2).value());
  EXPECT_LE(distance(matmul(u * unsqueeze(s, -2), vh), a),
            rounding * size_of(a) * sizes + denormal);
  expect_orthogonal_columns(u);
  expect_orthogonal_columns(mT(vh));
  expect_order(s, false);
  EXPECT_TRUE(all(ge(s, 0)).item() != 0);
  expect_same_bits(linalg_svdvals(a), s);
  const auto [full_u, same, full_vh] = linalg_svd(a);
  EXPECT_EQ(full_u.size(-1).value(), a.size(-2).value());
  EXPECT_EQ(full_vh.size(-2).value(), a.size(-1).value());
  expect_orthogonal_columns(full_u);
  expect_orthogonal_columns(mT(full_vh));
  expect_same_bits(same, s);
  expect_same_bits(narrow(full_u, -1, 0, s.size(-1)), u);
  expect_same_bits(narrow(full_vh, -2, 0, s.size(-1)), vh);
}

TEST(linalg_svd, gives_the_results_of_pytorch) {
  expect_values(linalg_svdvals(some_square()),
                {5.379793769786646, 2.5766066542059693, 2.0109493141465093});
  expect_values(linalg_svdvals(some_tall()),
                {6.0131883704340146, 3.488377941702877, 2.301691759884003});
  const auto [u, s, vh] = linalg_svd(some_wide(), false);
  expect_values(s, {6.843461942193781, 4.063876157200977, 2.5669903047496567});
  expect_values(abs(u), {0.3423852966080207, 0.13940925242542615, 0.9291594959988417,
                         0.30426715594007026, 0.9520909223576197, 0.03073065863853147,
                         0.8889284597102167, 0.272190991589363, 0.3683995895964334});
  expect_values(abs(vh),
                {0.368156608485351, 0.14115371412238312, 0.6641012438421021, 0.2158876445628592,
                 0.5974097450414528, 0.5860403511280192, 0.12432541437991079, 0.10224020929241528,
                 0.6517953954026201, 0.4536624299242736, 0.43209627602581335, 0.7970895669787894,
                 0.16184373251499218, 0.36200042236075075, 0.14388652096163868});
}
TEST(linalg_svd, decomposes_hard_matrices) {
  for (const int64_t n : {1, 2, 3, 6, 17, 40})
    for (const auto& [name, a] : hard_matrices(n)) {
      SCOPED_TRACE(name + " " + std::to_string(n));
      expect_svd(a);
    }
}
TEST(linalg_svd, decomposes_every_shape) {
  for (const auto& [m, n] :
       {std::pair{5, 3}, {3, 5}, {1, 7}, {7, 1}, {90, 40}, {40, 90}, {130, 130}})
    for (const int64_t rank : {0, 1, 3}) {
      SCOPED_TRACE(std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(rank));
      expect_svd(random_tensor({2, m, n}, m, DType::f64));
      expect_svd(
          matmul(random_tensor({m, rank}, 1, DType::f64), random_tensor({rank, n}, 2, DType::f64)));
    }
}
TEST(linalg_svd, takes_matrices_without_elements) {
  const auto [u, s, vh] = linalg_svd(ones({3, 0}));
  expect_same_bits(u, eye(3));
  EXPECT_EQ(to_string(s.sizes()), "(0)");
  EXPECT_EQ(to_string(vh.sizes()), "(0, 0)");
  const auto [wide_u, none, wide_vh] = linalg_svd(ones({2, 0, 3}));
  EXPECT_EQ(to_string(wide_u.sizes()), "(2, 0, 0)");
  expect_same_bits(wide_vh, clone(expand(eye(3), {2, 3, 3})));
  EXPECT_EQ(to_string(std::get<0>(linalg_svd(ones({0, 2, 3}))).sizes()), "(0, 2, 2)");
  EXPECT_EQ(to_string(linalg_svdvals(ones({0, 0})).sizes()), "(0)");
}
TEST(linalg_svd, finds_small_singular_values_exactly) {
  const Tensor exact = matrix({1e150, 1e40, 1, 1e-40, 1e-60}, 1)[0];
  expect_same_bits(linalg_svdvals(diag_embed(exact)), exact);
  // Columns of very different sizes, which are orthogonal
  const Tensor q = matrix({0.6, -0.8, 0.8, 0.6}, 2);
  const Tensor got = linalg_svdvals(q * matrix({1e30, 1e-30}, 1));
  EXPECT_NEAR(got[0].item() / 1e30, 1, 1e-15);
  EXPECT_NEAR(got[1].item() / 1e-30, 1, 1e-15);
}
TEST(linalg_svd, keeps_the_digits_of_f32) {
  const Tensor x = random_tensor({20, 12});
  expect_same_bits(linalg_svdvals(x), linalg_svdvals(x.to(DType::f64)).to(DType::f32));
}
TEST(linalg_svd, says_what_does_not_fit) {
  EXPECT_THROW_MESSAGE(linalg_svd(ones({2})), "A must be a matrix or a batch of them");
  EXPECT_THROW_MESSAGE(linalg_svdvals(ones({2, 2}, DType::i64)), "A must have a floating dtype");
  EXPECT_THROW_MESSAGE(linalg_svdvals(ones({2, 2}, DType::bf16)), "bf16");
  EXPECT_THROW_MESSAGE(call<ops::linalg_svd>(eye(2), true, std::string_view("gesvd")),
                       "driver must be None");
}
TEST(svd, has_its_own_names_for_the_options) {
  const Tensor a = some_wide();
  const auto [u, s, v] = svd(a);
  const auto [want_u, want_s, want_vh] = linalg_svd(a, false);
  expect_same_bits(u, want_u);
  expect_same_bits(s, want_s);
  expect_same_bits(contiguous(mT(v)), want_vh);
  EXPECT_EQ(to_string(std::get<2>(svd(a, false)).sizes()), "(5, 5)");
  const auto [zero_u, values, zero_v] = svd(a, true, false);
  expect_same_bits(zero_u, zeros({3, 3}, DType::f64));
  expect_same_bits(zero_v, zeros({5, 5}, DType::f64));
  expect_same_bits(values, s);
}

// ---- any square matrices

void expect_eig(const Tensor& a) {
  const auto [values, vectors] = eig(a);
  const double n = static_cast<double>(a.size(-1).value());
  const auto part = [](const Tensor& pairs, int64_t k) { return select(pairs, -1, k); };
  const Tensor re = unsqueeze(part(values, 0), -2), im = unsqueeze(part(values, 1), -2);
  const Tensor x = part(vectors, 0), y = part(vectors, 1);
  const double bound = rounding * size_of(a) * n + denormal;
  EXPECT_LE(distance(matmul(a, x), x * re - y * im), bound);
  EXPECT_LE(distance(matmul(a, y), x * im + y * re), bound);
  const Tensor lengths = sum(x * x + y * y, {-2});
  EXPECT_LE(distance(lengths, ones_like(lengths)), 1e-14 * n);
  EXPECT_LE(std::fabs((sum(re) - trace(a)).item()), bound * n);
  EXPECT_LE(std::fabs(sum(im).item()), bound);  // pairs
}

TEST(eig, gives_the_results_of_pytorch) {
  const auto [values, vectors] = eig(some_square());
  expect_values(values, {0.7412436595940104, 2.8251569376800765, 0.7412436595940104,
                         -2.8251569376800765, 3.2675126808119783, 0});
  const Tensor sizes = sqrt(sum(vectors * vectors, {-1}));
  expect_values(sizes, {0.63377552352092, 0.63377552352092, 0.4943004935351055, 0.6587100340960458,
                        0.6587100340960458, 0.2120523821138469, 0.4054992931769055,
                        0.4054992931769055, 0.8430307285803966});
  const auto [same, none] = eig(some_square(), false);
  expect_values(same, values.to_vector<double>());
  EXPECT_EQ(to_string(none.sizes()), "(0)");
}
TEST(eig, decomposes_hard_matrices) {
  for (const int64_t n : {1, 2, 3, 6, 17, 40})
    for (const auto& [name, a] : hard_matrices(n)) {
      SCOPED_TRACE(name + " " + std::to_string(n));
      expect_eig(a);
    }
}
TEST(eig, decomposes_large_and_empty_matrices) {
  expect_eig(random_tensor({200, 200}, 1, DType::f64));
  EXPECT_EQ(to_string(std::get<1>(eig(ones({0, 0}))).sizes()), "(0, 0, 2)");
  EXPECT_EQ(to_string(std::get<0>(eig(ones({0, 3, 3}))).sizes()), "(0, 3, 2)");
  EXPECT_EQ(to_string(std::get<0>(eig(ones({3, 0, 0}))).sizes()), "(3, 0, 2)");
}
TEST(eig, finds_the_roots_of_polynomials) {
  // (x - 1) (x - 2) (x - 3) (x - 4), in a companion matrix
  const Tensor companion = matrix({10, -35, 50, -24, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0}, 4);
  const Tensor roots = std::get<0>(sort(select(std::get<0>(eig(companion)), -1, 0)));
  expect_values(roots, {1, 2, 3, 4}, 1e-12);
  // x^5 = 1: a step with the usual shifts does not change this matrix
  const Tensor unit = std::get<0>(eig(roll(eye(5, DType::f64), {1}, {0})));
  expect_values(sum(unit * unit, {-1}), {1, 1, 1, 1, 1});
}
TEST(eig, does_not_depend_on_the_units_of_rows) {
  const Tensor a = some_square(), units = matrix({1, 1e-6, 1e7}, 1);
  const Tensor scaled = a * units / mT(units);
  const auto by_size = [](const Tensor& pairs) { return std::get<0>(sort(reshape(pairs, {-1}))); };
  EXPECT_LE(distance(by_size(std::get<0>(eig(scaled))), by_size(std::get<0>(eig(a)))), 1e-13);
}
TEST(eig, says_what_does_not_fit) {
  EXPECT_THROW_MESSAGE(eig(ones({2, 3})), "A must be square, it is (2, 3)");
  EXPECT_THROW_MESSAGE(eig(ones({1, 1, 1, 1, 1, 1, 1, 1})), "pairs need one more");
  EXPECT_THROW_MESSAGE(linalg_eig(eye(2, DType::f64)), "cast self to f32, or call taper::eig");
  EXPECT_THROW_MESSAGE(linalg_eigvals(eye(2, DType::f64)), "cast self to f32, or call taper::eig");
}

// ---- complex results

TEST(linalg_eig, gives_the_pairs_of_eig_as_complex_numbers) {
  const Tensor a = random_tensor({2, 5, 5});
  const auto [values, vectors] = linalg_eig(a);
  const auto [pairs, pairs_of_vectors] = eig(a);
  EXPECT_EQ(values.dtype(), DType::c64);
  EXPECT_EQ(to_string(vectors.sizes()), "(2, 5, 5)");
  expect_same_bits(view_as_real(values), pairs);
  expect_same_bits(view_as_real(vectors), pairs_of_vectors);
  expect_same_bits(view_as_real(linalg_eigvals(a)), pairs);
  const Tensor complex_a = complex(a, zeros_like(a));
  const Tensor rest = sub(matmul(complex_a, vectors), mul(vectors, unsqueeze(values, -2)));
  EXPECT_LE(largest(view_as_real(rest)), 1e-5);
}
TEST(linalg_eig, has_the_gradient_of_its_pairs) {
  const Tensor a = random_tensor({3, 3}, 3).set_requires_grad(), b = a.detach().set_requires_grad();
  const Tensor factors = random_tensor({3, 2}, 5);
  const auto [values, vectors] = linalg_eig(a);
  sum(view_as_real(values) * factors + sum(pow(abs(vectors), 4), {-1}, true)).backward();
  const auto [pairs, pairs_of_vectors] = eig(b);
  const Tensor squares = sum(pairs_of_vectors * pairs_of_vectors, {-1});
  sum(pairs * factors + sum(squares * squares, {-1}, true)).backward();
  EXPECT_LE(distance(a.grad(), b.grad()), 1e-5 * largest(b.grad()));
  const Tensor c = a.detach().set_requires_grad(), d = a.detach().set_requires_grad();
  sum(view_as_real(linalg_eigvals(c)) * factors).backward();
  sum(std::get<0>(eig(d)) * factors).backward();
  expect_same_bits(c.grad(), d.grad());
}
// ---- infinities, threads, strides

TEST(matrices, that_are_not_finite_give_nan_and_leave_the_others_alone) {
  for (const double wrong : {nan, infinity, -infinity}) {
    Tensor a = clone(expand(some_square(), {3, 3, 3}));
    a[1][2].copy_(full({3}, wrong, DType::f64));
    const auto [u, s, vh] = linalg_svd(a);
    const auto [symmetric, vectors] = linalg_eigh(a);
    const auto [values, complex] = eig(a);
    for (const Tensor& t : {u, s, vh, symmetric, vectors, values, complex}) {
      EXPECT_TRUE(all_nan(t[1]));
      EXPECT_FALSE(any(isnan(t[0])).item() != 0);
      expect_same_bits(t[0], t[2]);
    }
  }
}
using Values = std::vector<Tensor>;

Tensor joined(Values parts) {
  for (Tensor& t : parts) t = reshape(t, {-1});
  return cat(parts);
}
Tensor all_results(const Tensor& a, const Tensor& b) {
  const auto [u, s, vh] = linalg_svd(b);
  const auto [values, vectors] = linalg_eigh(a);
  const auto [complex, right] = eig(a);
  return joined({u, s, vh, linalg_svdvals(mT(b)), values, vectors, complex, right});
}
TEST(matrices, do_not_depend_on_strides_or_threads) {
  for (const Ints& batch : {Ints{}, Ints{3, 7}}) {
    const auto sizes = [&](int64_t m, int64_t n) {
      Ints all = batch;
      all.insert(all.end(), {m, n});
      return all;
    };
    const Tensor a = random_tensor(sizes(25, 25)), b = random_tensor(sizes(30, 12), 3);
    const auto call = [&] { return all_results(a, b); };
    expect_same_bits_with_two_threads(call);
    expect_same_bits(all_results(scattered(a), scattered(b)), call());
  }
}

}  // namespace
}  // namespace taper::eager
