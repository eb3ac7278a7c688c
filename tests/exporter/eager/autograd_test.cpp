#include "taper/exporter/eager/autograd.h"

#include <gmock/gmock.h>

#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor leaf(std::vector<float> values, const Ints& sizes) {
  return Tensor::from(values, sizes).set_requires_grad();
}
std::vector<float> values(const Tensor& t) { return t.to_vector<float>(); }

TEST(autograd, computes_gradients_of_halves_in_float_and_rounds_once) {
  const Tensor points = arange(-32, 32, 1, DType::f32) * 0.1;
  for (const DType half : {DType::f16, DType::bf16}) {
    const Tensor x = points.to(half), wide = x.to(DType::f32);
    const Tensor a = x.detach().set_requires_grad(), b = wide.detach().set_requires_grad();
    sum(asinh(a)).backward();
    sum(asinh(b)).backward();
    EXPECT_EQ(a.grad().dtype(), half);
    EXPECT_EQ(values(a.grad().to(DType::f32)), values(b.grad().to(half).to(DType::f32)));
  }
}
TEST(autograd, gives_the_gradient_of_a_product) {
  const Tensor a = leaf({2, 3}, {2}), b = leaf({5, 7}, {2});
  sum(a * b).backward();
  EXPECT_THAT(values(a.grad()), ElementsAre(5, 7));
  EXPECT_THAT(values(b.grad()), ElementsAre(2, 3));
}
TEST(autograd, sums_gradients_of_a_broadcast_argument) {
  const Tensor a = leaf({1, 2, 3, 4, 5, 6}, {2, 3}), b = leaf({1, 1, 1}, {3}), c = leaf({2}, {});
  sum(a * b * c).backward();
  EXPECT_THAT(values(b.grad()), ElementsAre(10, 14, 18));
  EXPECT_THAT(values(c.grad()), ElementsAre(21));
}
TEST(autograd, adds_up_where_a_tensor_is_used_twice_and_over_calls) {
  const Tensor a = leaf({3}, {1});
  sum(a * a).backward();
  EXPECT_THAT(values(a.grad()), ElementsAre(6));
  sum(a * a).backward();
  EXPECT_THAT(values(a.grad()), ElementsAre(12));
}
TEST(autograd, does_not_share_one_gradient_between_leaves) {
  const Tensor a = leaf({1}, {1}), b = leaf({1}, {1});
  sum(a + b).backward();
  sum(a * 2).backward();
  EXPECT_THAT(values(a.grad()), ElementsAre(3));
  EXPECT_THAT(values(b.grad()), ElementsAre(1));
}
TEST(autograd, differentiates_gradients_again) {
  const Tensor x = leaf({2}, {1});
  const Tensor first = grad({sum(x * x * x)}, {x}, {}, /*create_graph=*/true)[0];
  EXPECT_THAT(values(first), ElementsAre(12));
  EXPECT_THAT(values(grad({sum(first)}, {x})[0]), ElementsAre(12));
}
TEST(autograd, leaves_grad_alone_when_asked_for_gradients) {
  const Tensor x = leaf({2}, {1}), w = leaf({3}, {1});
  grad({sum(x * w)}, {x});
  EXPECT_FALSE(w.grad().defined());
  EXPECT_FALSE(x.grad().defined());
}
TEST(autograd, gives_the_gradient_of_a_tensor_in_the_middle) {
  const Tensor x = leaf({2}, {1});
  const Tensor y = x * 3;
  EXPECT_THAT(values(grad({sum(y * y)}, {y})[0]), ElementsAre(12));
}
TEST(autograd, says_which_input_is_unused) {
  const Tensor x = leaf({2}, {1}), other = leaf({2}, {1});
  EXPECT_THROW_MESSAGE(grad({sum(x * 2)}, {x, other}), "do not depend on input 1");
  EXPECT_FALSE(grad({sum(x * 2)}, {x, other}, {}, false, false, true)[1].defined());
}
TEST(autograd, needs_one_element_to_start_from) {
  const Tensor x = leaf({1, 2}, {2});
  EXPECT_THROW_MESSAGE((x * 2).backward(), "a tensor of size (2) needs a gradient to start from");
  (x * 2).backward(Tensor::from<float>({1, 10}, {2}));
  EXPECT_THAT(values(x.grad()), ElementsAre(2, 20));
}
TEST(autograd, says_when_there_is_no_history) {
  EXPECT_THROW_MESSAGE(Tensor::from<float>({1}, {1}).backward(),
                       "does not require a gradient and has no history");
}
TEST(autograd, records_nothing_inside_no_grad) {
  const Tensor x = leaf({2}, {1});
  NoGrad guard;
  EXPECT_FALSE((x * 2).requires_grad());
}
TEST(autograd, frees_saved_values_and_says_so) {
  const Tensor x = leaf({2}, {1});
  const Tensor y = sum(x * x);
  y.backward();
  EXPECT_THROW_MESSAGE(y.backward(), "retain_graph = true");
}
TEST(autograd, keeps_the_graph_when_asked) {
  const Tensor x = leaf({2}, {1});
  const Tensor y = sum(x * x);
  y.backward({}, /*retain_graph=*/true);
  y.backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(8));
}
TEST(autograd, calls_hooks_which_may_replace_a_gradient) {
  const Tensor x = leaf({2}, {1});
  const Tensor y = x * 3;
  y.register_hook([](const Tensor& g) { return g * 10; });
  float seen = 0;
  x.register_hook([&](const Tensor& g) {
    seen = g.item<float>();
    return Tensor();
  });
  sum(y).backward();
  EXPECT_EQ(seen, 30);
  EXPECT_THAT(values(x.grad()), ElementsAre(30));
}
TEST(autograd, retains_the_gradient_of_a_tensor_in_the_middle) {
  const Tensor x = leaf({2}, {1});
  const Tensor y = x * 3;
  y.retain_grad();
  sum(y * y).backward();
  EXPECT_THAT(values(y.grad()), ElementsAre(12));
}
TEST(autograd, detaches) {
  const Tensor x = leaf({2}, {1});
  const Tensor y = (x * 3).detach();
  EXPECT_FALSE(y.requires_grad());
  EXPECT_THAT(values(grad({sum(x * y)}, {x})[0]), ElementsAre(6));
}
TEST(autograd, names_the_forward_line_of_the_first_nan) {
  const Tensor x = leaf({0}, {1});
  DetectAnomaly guard;
  const int line = __LINE__ + 1;
  const Tensor y = sqrt(x * 0);
  try {
    sum(y * 0).backward();
    FAIL();
  } catch (const EagerError& e) {
    EXPECT_EQ(e.where().line, line);
    EXPECT_THAT(e.what(), HasSubstr("the derivative of sqrt gave NaN"));
  }
}
TEST(autograd, runs_custom_functions) {
  const CustomFunction twice{
      "twice", [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2}; },
      [](const std::vector<Tensor>&, const std::vector<Tensor>&, const Gradients& dy) {
        return Gradients{dy[0] * 100};
      }};
  const Tensor x = leaf({2}, {1});
  const Tensor y = apply(twice, {x})[0];
  EXPECT_THAT(values(y), ElementsAre(4));
  sum(y).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(100));
}
TEST(autograd, gives_an_input_that_a_custom_function_hands_through_a_history_of_its_own) {
  const CustomFunction reversed{
      "reversed", [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0]}; },
      [](const std::vector<Tensor>&, const std::vector<Tensor>&, const Gradients& dy) {
        return Gradients{-dy[0]};
      }};
  const Tensor x = leaf({2}, {1});
  const Tensor y = apply(reversed, {x})[0];
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE(y.is_leaf());
  sum(y * 3 + x).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(-2));
}
TEST(autograd, refuses_what_a_custom_function_must_not_give) {
  const auto forward = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2}; };
  const Tensor x = leaf({2, 3, 4}, {3});
  const CustomFunction shape{"shape", forward,
                             [](const std::vector<Tensor>&, const std::vector<Tensor>&,
                                const Gradients&) { return Gradients{ones({7})}; }};
  EXPECT_THROW_MESSAGE(sum(apply(shape, {x})[0]).backward(), "gradient of size (7) for input 0");
  const CustomFunction nothing{"nothing", nullptr, nullptr};
  EXPECT_THROW_MESSAGE(apply(nothing, {x}), "needs both forward and backward");
  const CustomFunction empty{
      "empty", [](const std::vector<Tensor>&) { return std::vector<Tensor>(1); }, shape.backward};
  EXPECT_THROW_MESSAGE(apply(empty, {x}), "undefined");
}
TEST(autograd, notices_that_a_custom_functions_result_was_overwritten) {
  const CustomFunction exponential{
      "exponential", [](const std::vector<Tensor>& in) { return std::vector<Tensor>{exp(in[0])}; },
      [](const std::vector<Tensor>&, const std::vector<Tensor>& out, const Gradients& dy) {
        return Gradients{dy[0] * out[0]};
      }};
  const Tensor x = leaf({1}, {1});
  Tensor y = apply(exponential, {x})[0];
  const Tensor total = sum(y * 1.0);
  no_grad([&] { return y.mul_(Scalar(100)); });
  EXPECT_THROW_MESSAGE(total.backward(), "result 0 of exponential was overwritten");

  const Tensor again = sum(apply(exponential, {x})[0]);
  again.backward();
  EXPECT_THROW_MESSAGE(again.backward(), "retain_graph");
}
TEST(autograd, gives_a_custom_function_zeros_for_a_result_that_nobody_used) {
  const CustomFunction both{"both",
                            [](const std::vector<Tensor>& in) {
                              return std::vector<Tensor>{in[0] * 2, in[0] * 3};
                            },
                            [](const std::vector<Tensor>&, const std::vector<Tensor>&,
                               const Gradients& dy) { return Gradients{dy[0] * 2 + dy[1] * 3}; }};
  const Tensor x = leaf({1}, {1});
  sum(apply(both, {x})[0]).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(2));
}
TEST(autograd, refuses_a_hook_that_changes_a_gradients_size) {
  const Tensor x = leaf({1, 2, 3}, {3});
  x.register_hook([](const Tensor&) { return ones({2}); });
  EXPECT_THROW_MESSAGE(sum(x * 2).backward(), "a hook gave a gradient of f32 (2)");
  EXPECT_THROW_MESSAGE(x.register_hook(nullptr), "empty");
}
TEST(autograd, names_an_undefined_tensor) {
  const Tensor none;
  EXPECT_THROW(none.set_name("x"), EagerError);
  EXPECT_THROW(none.detach(), EagerError);
  EXPECT_THROW(none.register_hook([](const Tensor& g) { return g; }), EagerError);
  EXPECT_EQ(graph_of(none), "undefined\n");
}
TEST(autograd, says_that_gradcheck_needs_an_input_that_requires_a_gradient) {
  EXPECT_THAT([] { gradcheck([](const std::vector<Tensor>& in) { return in[0]; }, {ones({2})}); },
              ThrowsMessage<EagerError>(HasSubstr("set_requires_grad")));
}
TEST(autograd, survives_a_very_long_chain) {
  const Tensor x = leaf({1}, {1});
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) y = y + 0.0;
  sum(y).backward();
  EXPECT_THAT(values(x.grad()), ElementsAre(1));
}
TEST(autograd, checks_gradients_against_differences) {
  const Tensor x = leaf({0.5f, -1.5f, 2}, {3});
  const auto right = [](const std::vector<Tensor>& in) { return in[0] * in[0] * in[0]; };
  EXPECT_EQ(gradcheck(right, {x}), "");
  EXPECT_EQ(gradgradcheck(right, {x}), "");
  const CustomFunction wrong{
      "wrong", [](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * in[0]}; },
      [](const std::vector<Tensor>& in, const std::vector<Tensor>&, const Gradients& dy) {
        return Gradients{dy[0] * in[0]};
      }};
  EXPECT_THAT(gradcheck([&](const std::vector<Tensor>& in) { return apply(wrong, in)[0]; }, {x}),
              HasSubstr("central difference"));
}
TEST(autograd, shows_the_graph_behind_a_tensor) {
  const Tensor x = leaf({2}, {1});
  x.set_name("w");
  EXPECT_THAT(graph_of(sum(x * x)),
              testing::AllOf(HasSubstr("mul.Tensor(%2, %2)"), HasSubstr("leaf w"),
                             HasSubstr("autograd_test.cpp:")));
}

}  // namespace
}  // namespace taper::eager
