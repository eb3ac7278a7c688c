#include "taper/exporter/eager/ops/loss.h"

#include "taper/exporter/eager/ops/softmax.h"
#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

Tensor classes(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())});
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

TEST(losses, of_logits_equal_those_of_their_probabilities) {
  const Tensor x = random_tensor({5}, 1, DType::f64),
               t = Tensor::from<double>({0, 1, 0.3, 0.5, 1}, {5});
  EXPECT_NEAR(binary_cross_entropy_with_logits(x, t).item(),
              binary_cross_entropy(sigmoid(x), t).item(), 1e-12);
}

}  // namespace
}  // namespace taper::eager
