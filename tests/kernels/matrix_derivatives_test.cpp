// Derivatives of eigenvalues, singular values and what is made of them, against differences.
// Vectors enter in ways that do not depend on their signs.
#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/some_matrices.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using Values = std::vector<Tensor>;

Tensor random_leaf(const Ints& sizes, int64_t seed = 3) {
  return random_tensor(sizes, seed, DType::f64);
}
/// 1, 2, … as a row: factors that are not the same for all columns.
Tensor weights(const Tensor& like) {
  return arange(1.0, static_cast<double>(like.size(-1).value()) + 1, 1, DType::f64);
}
Tensor symmetric(const Tensor& x) { return x + mT(x); }

TEST(linalg_eigh, is_differentiable_twice) {
  const Values input{random_leaf({2, 3, 3})};
  expect_right_derivatives(
      [](const Values& v) { return std::get<0>(linalg_eigh(symmetric(v[0]))); }, input);
  expect_right_derivatives([](const Values& v) { return linalg_eigvalsh(symmetric(v[0]), "U"); },
                           input);
  expect_right_derivatives(
      [](const Values& v) { return pow(std::get<1>(linalg_eigh(symmetric(v[0]))), 2); }, input);
  expect_right_derivatives(
      [](const Values& v) {  // the exponential
        const auto [values, vectors] = linalg_eigh(symmetric(v[0]));
        return matmul(vectors * unsqueeze(exp(values), -2), mT(vectors));
      },
      input);
}
TEST(linalg_svd, is_differentiable_twice) {
  for (const auto& [m, n] : {std::pair{3, 2}, {2, 3}, {3, 3}}) {
    const Values input{random_leaf({2, m, n})};
    expect_right_derivatives([](const Values& v) { return linalg_svdvals(v[0]); }, input);
    expect_right_derivatives(
        [](const Values& v) { return pow(std::get<0>(linalg_svd(v[0], false)), 2); }, input);
    expect_right_derivatives(
        [](const Values& v) { return pow(std::get<2>(linalg_svd(v[0], false)), 2); }, input);
    expect_right_derivatives(
        [](const Values& v) {  // a function of singular values
          const auto [u, s, vh] = linalg_svd(v[0], false);
          return matmul(u * unsqueeze(sin(s), -2), vh);
        },
        input);
    expect_right_derivatives(
        [](const Values& v) {  // full matrices, but only the first vectors
          const auto [u, s, vh] = linalg_svd(v[0]);
          return matmul(narrow(u, -1, 0, s.size(-1)) * unsqueeze(s * weights(s), -2),
                        narrow(vh, -2, 0, s.size(-1)));
        },
        input);
    expect_right_derivatives([](const Values& v) { return std::get<1>(svd(v[0], true, false)); },
                             input);
  }
}
TEST(linalg_svd, of_a_singular_matrix_has_a_gradient_of_its_values) {
  const Tensor a = some_deficient().set_requires_grad();
  narrow(linalg_svdvals(a), -1, 0, 1).backward();
  const auto [u, s, vh] = linalg_svd(a.detach(), false);
  EXPECT_LE(distance(a.grad(), matmul(narrow(u, -1, 0, 1), narrow(vh, -2, 0, 1))), 1e-14);
}
TEST(eig, is_differentiable_twice) {
  const auto squares = [](const Tensor& pairs) { return sum(pairs * pairs, {-1}); };
  for (const int64_t seed : {3, 4}) {  // with and without a pair of complex eigenvalues
    const Values input{random_leaf({2, 3, 3}, seed)};
    expect_right_derivatives([](const Values& v) { return std::get<0>(eig(v[0])); }, input);
    expect_right_derivatives([&](const Values& v) { return squares(std::get<1>(eig(v[0]))); },
                             input);
    expect_right_derivatives(
        [&](const Values& v) {
          const auto [values, vectors] = eig(v[0]);
          return squares(vectors) * unsqueeze(select(values, -1, 0), -2);
        },
        input);
  }
}
TEST(eig, of_a_triangular_matrix_has_the_gradient_of_its_diagonal) {
  const Tensor a = matrix({1, 5, 0, 3}, 2).set_requires_grad();
  const Tensor values = select(std::get<0>(eig(a)), -1, 0);
  const bool first = values[0].item() == 1;  // eigenvalues have no order
  values[first ? 0 : 1].backward();
  // x y^T / (y^T x) for the right eigenvector x = (1, 0) and the left one y = (1, -5/2)
  expect_values(a.grad(), {1, 0, -2.5, 0});
}
TEST(derivatives_of_values, need_the_vectors) {
  const Tensor a = some_square().set_requires_grad();
  const auto refused = [](const Tensor& values) { sum(values).backward(); };
  EXPECT_THROW_MESSAGE(refused(std::get<1>(call<ops::_linalg_svd>(a, false, false, std::nullopt))),
                       "there are no vectors, which the derivative needs: use linalg_svdvals");
  EXPECT_THROW_MESSAGE(
      refused(std::get<0>(call<ops::_linalg_eigh>(a, std::string_view("L"), false))),
      "there are no vectors, which the derivative needs: use linalg_eigvalsh");
  EXPECT_THROW_MESSAGE(refused(std::get<0>(eig(a, false))),
                       "there are no vectors, which the derivative needs: use compute_v=True");
}
TEST(linalg_pinv, is_differentiable_twice) {
  for (const auto& [m, n] : {std::pair{3, 2}, {2, 3}, {3, 3}}) {
    const Values input{random_leaf({2, m, n})};
    expect_right_derivatives([](const Values& v) { return linalg_pinv(v[0]); }, input);
    expect_right_derivatives(
        [](const Values& v) { return linalg_pinv(v[0], full({2}, 1e-8, DType::f64), Tensor()); },
        input);
  }
  expect_right_derivatives(
      [](const Values& v) {
        return linalg_pinv(symmetric(v[0]), std::nullopt, std::nullopt, true);
      },
      {random_leaf({3, 3})});
  // A matrix of rank 2 that stays one
  expect_right_derivatives([](const Values& v) { return linalg_pinv(matmul(v[0], v[1])); },
                           {random_leaf({4, 2}), random_leaf({2, 3}, 5)});
}
TEST(linalg_lstsq, is_differentiable_twice) {
  for (const char* driver : {"gels", "gelsy", "gelsd"})
    for (const auto& [m, n] : {std::pair{4, 2}, {2, 3}, {3, 3}})
      for (const Ints& right : {Ints{2, m, 2}, Ints{2, m}})
        expect_right_derivatives(
            [&](const Values& v) {
              return std::get<0>(linalg_lstsq(v[0], v[1], std::nullopt, driver));
            },
            {random_leaf({2, m, n}), random_leaf(right, 5)});
  for (const Ints& right : {Ints{4, 2}, Ints{4}})
    expect_right_derivatives(
        [](const Values& v) {
          return std::get<1>(linalg_lstsq(v[0], v[1], std::nullopt, "gelsd"));
        },
        {random_leaf({4, 2}), random_leaf(right, 5)});
}
TEST(linalg_lstsq, gives_singular_values_a_gradient) {
  expect_right_derivatives(
      [](const Values& v) { return std::get<3>(linalg_lstsq(v[0], v[1], std::nullopt, "gelsd")); },
      {random_leaf({4, 2}), random_leaf({4})});
}
TEST(linalg_lu, is_differentiable_twice) {
  for (const auto& [m, n] : {std::pair{3, 2}, {2, 3}, {3, 3}}) {
    const Values input{random_leaf({2, m, n})};
    expect_right_derivatives([](const Values& v) { return std::get<1>(linalg_lu(v[0])); }, input);
    expect_right_derivatives([](const Values& v) { return std::get<2>(linalg_lu(v[0])); }, input);
  }
}
TEST(linalg_matrix_norm, of_orders_of_singular_values_is_differentiable_twice) {
  const Values input{random_leaf({2, 3, 2})};
  for (const double order : {2.0, -2.0})
    expect_right_derivatives([&](const Values& v) { return linalg_matrix_norm(v[0], order); },
                             input);
  expect_right_derivatives([](const Values& v) { return linalg_matrix_norm(v[0], "nuc"); }, input);
  const Values square{random_leaf({2, 3, 3})};
  for (const double order : {2.0, -2.0, 1.0})
    expect_right_derivatives([&](const Values& v) { return linalg_cond(v[0], Scalar(order)); },
                             square);
  for (const char* order : {"fro", "nuc"})
    expect_right_derivatives([&](const Values& v) { return linalg_cond(v[0], order); }, square);
}

}  // namespace
}  // namespace taper::eager
