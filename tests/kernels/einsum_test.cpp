#include "taper/exporter/eager/ops/matmul.h"
#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

Tensor r(const Ints& sizes, int64_t seed = 1) { return random_tensor(sizes, seed, DType::f64); }

void expect_near(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(to_string(got.sizes()), to_string(want.sizes()));
  EXPECT_LE(max(abs(got - want)).item(), 1e-12);
}
std::string message_of(const std::string& equation, const std::vector<Tensor>& tensors) {
  try {
    einsum(equation, tensors);
  } catch (const EagerError& e) {
    return e.what();
  }
  return "no error";
}

TEST(einsum, multiplies_sums_and_permutes) {
  const Tensor a = r({2, 3}, 1), b = r({3, 4}, 2), c = r({4, 5}, 3), v = r({3}, 4);
  expect_near(einsum("ij,jk->ik", {a, b}), mm(a, b));
  expect_near(einsum("ij,jk", {a, b}), mm(a, b));
  expect_near(einsum("ij,jk->ki", {a, b}), mm(a, b).t());
  expect_near(einsum("ij, jk, kl -> il", {a, b, c}), mm(mm(a, b), c));
  expect_near(einsum("ij->ji", {a}), a.t());
  expect_near(einsum("ij->", {a}), sum(a));
  expect_near(einsum("i,j->ij", {v, v}), outer(v, v));
  expect_near(einsum("i,i", {v, v}), dot(v, v));
  expect_near(einsum("ij,ij->ij", {a, a}), a * a);
  expect_near(einsum(",ij->ij", {sum(v), a}), sum(v) * a);
}
TEST(einsum, takes_diagonals_of_repeated_letters) {
  const Tensor a = r({4, 4}), b = r({3, 4, 3, 2});
  expect_near(einsum("ii->i", {a}), diagonal(a));
  expect_near(einsum("ii", {a}), sum(diagonal(a)));
  expect_near(einsum("ijik->jk", {b}), sum(diagonal(b, 0, 0, 2), {-1}));
  expect_near(einsum("iii->i", {r({2, 2, 2})}), diagonal(diagonal(r({2, 2, 2}), 0, 0, 1), 0, 0, 1));
}
TEST(einsum, broadcasts_what_the_ellipsis_stands_for) {
  const Tensor a = r({2, 1, 3, 4}, 1), b = r({5, 4, 6}, 2);
  expect_near(einsum("...ij,...jk->...ik", {a, b}), matmul(a, b));
  expect_near(einsum("...ij,...jk", {a, b}), matmul(a, b));
  expect_near(einsum("i...->...", {a}), sum(a, Ints{0}));
  expect_near(einsum("...ij->ij", {a}), sum(a, Ints{0, 1}));
  // a size of 1 is repeated, whether its letter is summed or kept
  expect_near(einsum("ij,jk->ik", {r({3, 1}), r({4, 2}, 2)}),
              mm(expand(r({3, 1}), {3, 4}), r({4, 2}, 2)));
  expect_near(einsum("bij,bjk->bik", {r({1, 2, 3}), r({4, 3, 2}, 2)}),
              matmul(r({1, 2, 3}), r({4, 3, 2}, 2)));
}
TEST(einsum, is_the_same_along_every_path) {
  const Tensor a = r({2, 3}, 1), b = r({4, 3, 5}, 2), c = r({2, 5}, 3);
  const Tensor want = einsum("bn,anm,bm->ba", {a, b, c});
  for (const Ints& path : {Ints{0, 1, 0, 1}, Ints{1, 2, 0, 1}, Ints{2, 0, 1, 0}})
    expect_near(einsum("bn,anm,bm->ba", {a, b, c}, path), want);
  EXPECT_THROW(einsum("ij,jk", {a, a.t()}, Ints{0, 2}), EagerError);
}
TEST(einsum, is_differentiable_twice) {
  expect_right_derivatives(
      [](const std::vector<Tensor>& v) {
        return sum(pow(einsum("bij,bjk,...k->...bi", {v[0], v[1], v[2]}), 2));
      },
      {r({2, 3, 2}, 1), r({1, 2, 3}, 2), r({2, 3}, 3)});
}
TEST(einsum, says_what_is_wrong_with_an_equation) {
  const Tensor a = ones({2, 3});
  const auto expect = [&](const std::string& equation, const std::vector<Tensor>& tensors,
                          const char* text) {
    const std::string message = message_of(equation, tensors);
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  expect("ij,jk", {a}, "the equation has 2 operands, 1 are given");
  expect("ijk", {a}, "names 3 dimensions, its tensor has 2");
  expect("ij->q", {a}, "the output names 'q', which no operand has");
  expect("ij->ii", {a}, "the output names 'i' more than once");
  expect("i..j", {a}, "dots that are not one ellipsis");
  expect("i1", {a}, "dimensions are letters");
  expect("ii", {a}, "'i' is repeated in term \"ii\"");
  expect("ij,jk", {a, a}, "sizes 3 and 2 of one subscript differ");
  expect("", {}, "at least one operand");
}

}  // namespace
}  // namespace taper::eager
