// Eigenvalues, singular values and what is made of them, in programs.
#include "taper/tests/kernels/program_check.h"
#include "taper/tests/kernels/some_matrices.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using Values = std::vector<Tensor>;

TEST(matrices, have_the_same_bits_in_programs) {
  const Dim batch = Dim::symbol("batch", 1, 8), n = Dim::symbol("n", 1, 12);
  const auto f = [](const Values& in) {
    const auto [u, s, vh] = linalg_svd(in[1], false);
    const auto [full_u, same, full_vh] = linalg_svd(in[1]);
    const auto [values, vectors] = linalg_eigh(in[0]);
    const auto [complex, right] = eig(in[0]);
    return Values{u,       s,       vh,
                  full_u,  full_vh, linalg_svdvals(in[1]),
                  values,  vectors, linalg_eigvalsh(in[0], "U"),
                  complex, right};
  };
  std::vector<Values> calls;
  for (const int64_t size : {1, 2, 5, 12})
    calls.push_back({random_tensor({size / 2 + 1, size, size}), random_tensor({size, 4}, 2)});
  expect_same_bits_in_program(f, {input("a", {batch, n, n}), input("b", {n, 4})}, calls);
}
TEST(linalg_eig, has_the_same_bits_in_programs) {
  const Dim n = Dim::symbol("n", 1, 9);
  const auto f = [](const Values& in) {
    const auto [values, vectors] = linalg_eig(in[0]);
    return Values{values, view_as_real(vectors), abs(linalg_eigvals(in[0]))};
  };
  std::vector<Values> calls;
  for (const int64_t size : {1, 4, 9}) calls.push_back({random_tensor({2, size, size})});
  expect_same_bits_in_program(f, {input("a", {2, n, n})}, calls);
}
TEST(pseudo_inverses, have_the_same_bits_in_programs) {
  const Dim batch = Dim::symbol("batch", 1, 8), n = Dim::symbol("n", 1, 4);
  const auto f = [](const Values& in) {
    const Tensor &a = in[0], &b = in[1];
    const auto [p, l, u] = linalg_lu(a);
    const auto [x, residuals, rank, values] = linalg_lstsq(a, b, std::nullopt, "gelsd");
    return Values{linalg_pinv(a),
                  linalg_pinv(matmul(a, mT(a)), 0.1, std::nullopt, true),
                  linalg_matrix_rank(a),
                  x,
                  residuals,
                  rank,
                  values,
                  std::get<0>(linalg_lstsq(a, b, std::nullopt, "gels")),
                  linalg_matrix_norm(a, 2),
                  linalg_matrix_norm(a, "nuc"),
                  linalg_cond(a),
                  linalg_cond(matmul(mT(a), a), Scalar(1)),
                  p,
                  l,
                  u};
  };
  std::vector<Values> calls;
  for (const int64_t size : {1, 2, 4})
    calls.push_back({random_tensor({size * 2, 5, size}), random_tensor({size * 2, 5, 3}, 2)});
  expect_same_bits_in_program(f, {input("a", {batch, 5, n}), input("b", {batch, 5, 3})}, calls);
}
TEST(linalg_lstsq, must_know_whether_there_are_residuals) {
  const Dim m = Dim::symbol("m", 1, 9);
  const auto solution = [](const char* driver) {
    return [driver](const Values& in) {
      return Values{std::get<0>(linalg_lstsq(in[0], in[1], std::nullopt, driver))};
    };
  };
  const std::vector<InputSpec> inputs{input("a", {m, 3}), input("b", {m, 2})};
  EXPECT_THROW_MESSAGE(InProgram(solution("gelsd"), inputs), "use the driver \"gelsy\"");
  std::vector<Values> calls;
  for (const int64_t size : {1, 3, 9})
    calls.push_back({random_tensor({size, 3}), random_tensor({size, 2}, 2)});
  expect_same_bits_in_program(solution("gelsy"), inputs, calls);
}
TEST(linalg_lstsq, computes_residuals_in_programs_whatever_the_rank_is) {
  const auto f = [](const Values& in) {
    const auto [x, residuals, rank, values] = linalg_lstsq(in[0], in[1], std::nullopt, "gelsd");
    return Values{residuals};
  };
  const InProgram program(f, {input("a", {4, 3}), input("b", {4, 2})});
  const Tensor a = some_deficient().to(DType::f32),
               b = matrix({1, 2, 0, 1, -1, 3, 2, 0.5}, 4).to(DType::f32);
  const Tensor rest = matmul(a, std::get<0>(linalg_lstsq(a, b))) - b;
  EXPECT_LE(distance(program.run({a, b})[0], sum(rest * rest, {0})), 1e-5);
}

}  // namespace
}  // namespace taper::eager
