#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

Tensor classes(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())});
}

// The numbers are PyTorch's.
TEST(losses, of_mixed_precision_have_the_dtype_of_pytorch) {
  const Tensor f = Tensor::from<float>({0.1f, 0.7f, 1.3f, 2.1f, 0.45f, 0.9f}, {2, 3}),
               g = Tensor::from<float>({0.3f, 0.2f, 0.9f, 0.6f, 0.85f, 0.15f}, {2, 3});
  const Tensor fh = f.to(DType::f16), gh = g.to(DType::f16);
  const Tensor signs = Tensor::from<float>({1, -1}, {2});
  const struct {
    const char* name;
    Tensor loss;
    DType dtype;
    double value;
  } cases[] = {
      // both arguments
      {"smooth_l1_loss", smooth_l1_loss(fh, g), DType::f32, 0.264305025},
      {"smooth_l1_loss", smooth_l1_loss(f, gh), DType::f32, 0.264374375},
      {"mse_loss", mse_loss(fh, g), DType::f32, 0.570211649},
      {"mse_loss", mse_loss(f, gh), DType::f32, 0.570399106},
      {"mse_loss", mse_loss(fh, g.to(DType::bf16)), DType::f32, 0.569770396},
      {"mse_loss", mse_loss(fh, full({}, 0.3, DType::f32)), DType::f16, 0.803710938},
      {"l1_loss", l1_loss(fh, g), DType::f32, 0.624930859},
      {"l1_loss", l1_loss(f, gh), DType::f32, 0.625028431},
      {"kl_div", kl_div(fh, g), DType::f32, -0.770695686},
      {"kl_div", kl_div(f, gh), DType::f32, -0.770751953},
      {"poisson_nll_loss", poisson_nll_loss(fh, g), DType::f32, 2.64357495},
      {"margin_ranking_loss", margin_ranking_loss(fh[0], fh[1], g[0], 0.5), DType::f32,
       0.563346386},
      {"pairwise_distance", pairwise_distance(fh, g)[0], DType::f32, 0.670857906},
      // the first
      {"huber_loss", huber_loss(fh, g), DType::f16, 0.264404297},
      {"huber_loss", huber_loss(f, gh), DType::f32, 0.264374375},
      {"huber_loss", huber_loss(f, g.to(DType::f64)), DType::f32, 0.264375},
      {"soft_margin_loss", soft_margin_loss(fh, g), DType::f16, 0.495361328},
      {"soft_margin_loss", soft_margin_loss(f, gh), DType::f32, 0.495306969},
      {"hinge_embedding_loss", hinge_embedding_loss(fh, g), DType::f16, 1.23339844},
      {"hinge_embedding_loss", hinge_embedding_loss(f, gh), DType::f32, 1.23333335},
      {"binary_cross_entropy", binary_cross_entropy(gh, gh, f), DType::f16, 0.469482422},
      // the inputs, not the target
      {"cosine_embedding_loss", cosine_embedding_loss(fh, gh, signs), DType::f16, 0.395996094},
      {"cosine_embedding_loss", cosine_embedding_loss(fh, g, signs.to(DType::f16)), DType::f32,
       0.396060556},
      // the target
      {"binary_cross_entropy_with_logits", binary_cross_entropy_with_logits(fh, g), DType::f32,
       0.7784729},
      {"binary_cross_entropy_with_logits", binary_cross_entropy_with_logits(f, gh), DType::f16,
       0.778320312},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.loss.dtype(), c.dtype) << c.name;
    // some are several operators in PyTorch, and those of halves alone round on their way
    EXPECT_NEAR(c.loss.to(DType::f64).item(), c.value, c.dtype == DType::f16 ? 5e-4 : 1e-4)
        << c.name;
  }
}

TEST(cross_entropy, is_the_negative_log_probability_of_the_target) {
  const Tensor x = random_tensor({3, 4}, 1, DType::f64), logs = log_softmax(x, 1);
  const std::vector<double> l = logs.to_vector<double>();
  EXPECT_NEAR(cross_entropy(x, classes({2, 0, 3})).item(), -(l[2] + l[4] + l[11]) / 3, 1e-14);
  EXPECT_NEAR(cross_entropy(x, classes({2, -100, 3}), {}, Reduction::sum).item(), -(l[2] + l[11]),
              1e-14);
  const Tensor weight = Tensor::from<double>({1, 2, 3, 4}, {4});
  EXPECT_NEAR(cross_entropy(x, classes({2, 0, 3}), weight).item(),
              -(3 * l[2] + l[4] + 4 * l[11]) / 8, 1e-14);
}

TEST(cross_entropy, of_probabilities_equals_that_of_their_classes) {
  const Tensor x = random_tensor({3, 4, 2}, 1, DType::f64),
               target = Tensor::from<int64_t>({2, 0, 3, 1, 1, 0}, {3, 2});
  const Tensor probabilities = permute(one_hot(target, 4), {0, 2, 1}).to(DType::f64);
  for (const double smoothing : {0.0, 0.3}) {
    EXPECT_NEAR(cross_entropy(x, target, {}, Reduction::sum, -100, smoothing).item(),
                cross_entropy(x, probabilities, {}, Reduction::sum, -100, smoothing).item(), 1e-12);
  }
}

TEST(cross_entropy, is_differentiable_twice) {
  const Tensor target = classes({2, -100, 3}), weight = Tensor::from<double>({1, 2, 3, 4}, {4});
  const auto f = [&](const std::vector<Tensor>& v) {
    return cross_entropy(v[0], target, weight, Reduction::mean, -100, 0.1);
  };
  expect_right_derivatives(f, {random_tensor({3, 4}, 1, DType::f64)});
}

TEST(cross_entropy, refuses_targets_that_are_no_classes) {
  const Tensor x = ones({2, 3});
  try {
    cross_entropy(x, classes({0, 3}));
    FAIL();
  } catch (const EagerError& e) {
    EXPECT_NE(std::string(e.what()).find("target 3 is outside [0, 3)"), std::string::npos)
        << e.what();
  }
  EXPECT_THROW(cross_entropy(x, classes({0, 1, 2})), EagerError);
}

TEST(losses, follow_their_formulas) {
  const Tensor a = Tensor::from<double>({1, 2, 5}, {3}), b = Tensor::from<double>({1.5, 2, 2}, {3});
  EXPECT_NEAR(mse_loss(a, b).item(), (0.25 + 0 + 9) / 3, 1e-15);
  EXPECT_NEAR(l1_loss(a, b, Reduction::sum).item(), 3.5, 1e-15);
  EXPECT_NEAR(smooth_l1_loss(a, b, Reduction::sum, 2).item(), 0.25 / 4 + (3 - 1), 1e-15);
  EXPECT_NEAR(huber_loss(a, b, Reduction::sum, 2).item(), 0.125 + 2 * (3 - 1), 1e-15);
}

TEST(margin_losses, follow_their_formulas) {
  const Tensor x = Tensor::from<double>({0.5, 2, -1}, {3}),
               sign = Tensor::from<double>({1, -1, -1}, {3});
  EXPECT_NEAR(hinge_embedding_loss(x, sign, 1, Reduction::sum).item(), 0.5 + 0 + 2, 1e-15);
  EXPECT_NEAR(soft_margin_loss(x, sign, Reduction::sum).item(),
              std::log1p(std::exp(-0.5)) + std::log1p(std::exp(2.0)) + std::log1p(std::exp(-1.0)),
              1e-14);
  EXPECT_NEAR(margin_ranking_loss(x, zeros({3}, DType::f64), sign, 1, Reduction::sum).item(),
              0.5 + 3 + 0, 1e-15);
  const Tensor t = Tensor::from<double>({0, 2, 3}, {3});
  EXPECT_NEAR(poisson_nll_loss(x, t, true, true, 1e-8, Reduction::sum).item(),
              std::exp(0.5) + std::exp(2.0) - 4 + std::exp(-1.0) + 3 +
                  (2 * std::log(2.0) - 2 + 0.5 * std::log(4 * M_PI)) +
                  (3 * std::log(3.0) - 3 + 0.5 * std::log(6 * M_PI)),
              1e-14);
}

TEST(multi_margin_loss, counts_every_class_but_the_target) {
  const Tensor x = Tensor::from<double>({0.1, 0.2, 0.4, 0.8}, {4});
  EXPECT_NEAR(multi_margin_loss(x, classes({3})).item(), (0.3 + 0.4 + 0.6) / 4, 1e-15);
  EXPECT_NEAR(multi_margin_loss(x, classes({3}), 2).item(), (0.09 + 0.16 + 0.36) / 4, 1e-15);
  EXPECT_THROW(multi_margin_loss(x, classes({4})), EagerError);
  EXPECT_THROW(multi_margin_loss(x, classes({3}), 3), EagerError);
}

TEST(multilabel_margin_loss, stops_at_the_first_minus_one) {
  const Tensor x = Tensor::from<double>({0.1, 0.2, 0.4, 0.8}, {4});
  // targets 3 and 0; the 1 behind -1 does not count
  EXPECT_NEAR(multilabel_margin_loss(x, classes({3, 0, -1, 1})).item(),
              ((1 - (0.8 - 0.2)) + (1 - (0.8 - 0.4)) + (1 - (0.1 - 0.2)) + (1 - (0.1 - 0.4))) / 4,
              1e-15);
  EXPECT_EQ(multilabel_margin_loss(x, classes({-1, 0, 1, 2})).item(), 0);
  EXPECT_THROW(multilabel_margin_loss(x, classes({4, 0, 1, 2})), EagerError);
}

TEST(margin_losses, are_differentiable_twice) {
  const Tensor a = random_tensor({3, 4}, 1, DType::f64), b = random_tensor({3, 4}, 2, DType::f64),
               c = random_tensor({3, 4}, 3, DType::f64),
               sign = Tensor::from<double>({1, -1, 1}, {3});
  expect_right_derivatives(
      [&](const std::vector<Tensor>& v) {
        return triplet_margin_loss(v[0], v[1], v[2], 1, 2, 1e-6, true) +
               cosine_embedding_loss(v[0], v[1], sign, -0.9) +
               multi_margin_loss(v[2], classes({1, 0, 3}), 2);
      },
      {a, b, c});
}

TEST(losses, of_logits_equal_those_of_their_probabilities) {
  const Tensor x = random_tensor({5}, 1, DType::f64),
               t = Tensor::from<double>({0, 1, 0.3, 0.5, 1}, {5});
  EXPECT_NEAR(binary_cross_entropy_with_logits(x, t).item(),
              binary_cross_entropy(sigmoid(x), t).item(), 1e-12);
}

TEST(losses, of_bits_refuse_targets_of_other_sizes) {
  const Tensor p = full({4, 1}, 0.5), t = ones({4});
  EXPECT_THROW(binary_cross_entropy(p, t), EagerError);
  EXPECT_THROW(binary_cross_entropy_with_logits(p, t), EagerError);
}
// The numbers are PyTorch's.
TEST(binary_cross_entropy, refuses_numbers_outside_0_and_1) {
  const Tensor inside = full({2}, 0.5), outside = full({2}, 1.5), nan = full({2}, NAN);
  EXPECT_THROW(binary_cross_entropy(outside, inside), EagerError);
  EXPECT_THROW(binary_cross_entropy(nan, inside), EagerError);
  EXPECT_THROW(binary_cross_entropy(inside, -inside), EagerError);
  EXPECT_NEAR(binary_cross_entropy(inside, inside).item(), 0.6931472, 1e-6);
}
TEST(binary_cross_entropy, has_a_gradient_where_a_sigmoid_saturates) {
  const Tensor x = Tensor::from<float>({0, 0, 0, 1, 1, 1, 0.5f, 1e-20f, 1e-6f}, {9});
  const Tensor t = Tensor::from<float>({0, 1, 0.5f, 0, 1, 0.5f, 0.5f, 1, 0.3f}, {9});
  x.set_requires_grad(), t.set_requires_grad();
  const Tensor loss = binary_cross_entropy(x, t, {}, Reduction::none);
  const auto expect_near = [](const Tensor& got, const std::vector<double>& want) {
    const std::vector<float> values = got.to_vector<float>();
    for (size_t i = 0; i < want.size(); ++i)
      if (std::isinf(want[i]))
        EXPECT_EQ(values[i], want[i]) << i;
      else
        EXPECT_NEAR(values[i], want[i], std::abs(want[i]) * 1e-6) << i;
  };
  expect_near(loss,
              {0, 100, 50, 100, 0, 50, 0.6931471824645996, 46.051700592041016, 4.144653797149658});
  const std::vector<Tensor> gradients = grad({sum(loss)}, {x, t});
  expect_near(gradients[0], {0, -1e12, -5e11, 1e12, 0, 5e11, 0, -1e12, -299999.3125});
  expect_near(gradients[1], {INFINITY, INFINITY, INFINITY, -INFINITY, -INFINITY, -INFINITY, 0,
                             46.051700592041016, 13.815509796142578});
  const Tensor weighed = binary_cross_entropy(x.slice(0, 0, 2), t.slice(0, 1, 3),
                                              full({1}, 2, DType::f32), Reduction::mean);
  expect_near(grad({weighed}, {x})[0].slice(0, 0, 2), {-1e12, -5e11});
}
TEST(binary_cross_entropy, is_differentiable_twice) {
  const Tensor weight = Tensor::from<double>({1, 2, 0.5}, {3});
  expect_right_derivatives(
      [&](const std::vector<Tensor>& v) {
        return binary_cross_entropy(sigmoid(v[0]), sigmoid(v[1]), weight);
      },
      {random_tensor({2, 3}, 1, DType::f64), random_tensor({2, 3}, 2, DType::f64)});
}
// The numbers are PyTorch's.
TEST(smooth_losses, carry_nan_into_their_gradients) {
  for (const bool huber : {false, true}) {
    const Tensor x = Tensor::from<float>({NAN, 1, INFINITY, 1, 0.5f}, {5}).set_requires_grad();
    const Tensor t = Tensor::from<float>({1, NAN, INFINITY, 0, 0}, {5}).set_requires_grad();
    const Tensor loss =
        huber ? huber_loss(x, t, Reduction::sum) : smooth_l1_loss(x, t, Reduction::sum);
    for (const Tensor& gradient : grad({loss}, {x, t})) {
      const std::vector<float> g = gradient.to_vector<float>();
      for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(g[i])) << i;
      EXPECT_EQ(std::abs(g[3]), 1);
      EXPECT_EQ(std::abs(g[4]), 0.5f);
    }
  }
}
// The numbers are PyTorch's.
TEST(smooth_losses, are_linear_beyond_their_parameter) {
  const Tensor x = Tensor::from<double>({1.5, 0.3, 1e-20, 1e20, 7}, {5}),
               t = Tensor::from<double>({0, 0, 0, 0, 0.1}, {5});
  const std::vector<double> smooth = smooth_l1_loss(x, t, Reduction::none, 0.3).to_vector<double>(),
                            huber = huber_loss(x, t, Reduction::none, 0.3).to_vector<double>();
  const double want_smooth[] = {1.35, 0.15, 1.6666666666666665e-40, 1e20, 6.75},
               want_huber[] = {0.405, 0.045, 5e-41, 3e19, 2.025};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(smooth[i], want_smooth[i], want_smooth[i] * 1e-15);
    EXPECT_NEAR(huber[i], want_huber[i], want_huber[i] * 1e-15);
  }
}
TEST(losses, have_finite_gradients_where_the_difference_is_infinite) {
  for (const bool huber : {false, true}) {
    const Tensor x = Tensor::from<float>({INFINITY, -INFINITY, 0.5f}, {3});
    x.set_requires_grad();
    const Tensor loss = huber ? huber_loss(x, zeros({3}), Reduction::sum, 2)
                              : smooth_l1_loss(x, zeros({3}), Reduction::sum, 2);
    loss.backward();
    EXPECT_EQ(x.grad().to_vector<float>(),
              huber ? (std::vector<float>{2, -2, 0.5f}) : (std::vector<float>{1, -1, 0.25f}));
  }
}

}  // namespace
}  // namespace taper::eager
