// Poisson-distributed numbers against the distribution's own formulas.
#include <cmath>
#include <map>

#include "taper/tests/kernels/program_check.h"

namespace taper::eager {
namespace {

std::vector<double> drawn(double mean, int64_t count, DType dtype = DType::f64) {
  return to(poisson(full({count}, mean, dtype)), DType::f64).to_vector<double>();
}
double probability(double k, double mean) {
  return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1));
}

/// Pearson's statistic of the counts, with the numbers at both ends put together so that each class
/// is expected 10 times or more. It is returned in standard deviations from its mean.
double chi_square(double mean, int64_t count) {
  std::map<double, double> seen;
  for (const double k : drawn(mean, count)) ++seen[k];
  const double n = static_cast<double>(count);
  double statistic = 0, rest_expected = n, rest_seen = n;
  int classes = 0;
  const double last = mean + 12 * std::sqrt(mean) + 20;
  for (double k = 0; k < last; ++k) {
    const double expected = n * probability(k, mean);
    if (expected < 10) continue;
    statistic += (seen[k] - expected) * (seen[k] - expected) / expected;
    rest_expected -= expected, rest_seen -= seen[k];
    ++classes;
  }
  statistic +=
      (rest_seen - rest_expected) * (rest_seen - rest_expected) / std::fmax(rest_expected, 10);
  return (statistic - classes) / std::sqrt(2.0 * classes);
}

TEST(poisson, has_the_distribution) {
  manual_seed(11);
  for (const double mean : {0.05, 0.7, 3.0, 9.99, 10.0, 14.5, 40.0, 250.0})
    EXPECT_LT(chi_square(mean, 200000), 4) << mean;
}
TEST(poisson, has_its_mean_and_variance_also_where_numbers_are_sparse) {
  manual_seed(12);
  constexpr int64_t n = 100000;
  for (const double mean : {1e-3, 2.0, 30.0, 1e3, 1e6, 1e12, 1e15}) {
    double sum = 0, squares = 0;
    for (const double k : drawn(mean, n)) sum += k - mean, squares += (k - mean) * (k - mean);
    EXPECT_NEAR(sum / n / std::sqrt(mean), 0, 4 / std::sqrt(n)) << mean;
    // the fourth moment of k - mean is 3 mean² + mean
    EXPECT_NEAR(squares / n / mean, 1, 4 * std::sqrt((2 + 1 / mean) / n)) << mean;
  }
}
TEST(poisson, keeps_the_dtype_and_gives_whole_numbers) {
  manual_seed(13);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(poisson(ones({3}, dtype)).dtype(), dtype);
    double sum = 0;
    for (const double k : drawn(6, 20000, dtype)) {
      ASSERT_EQ(k, std::floor(k));
      sum += k;
    }
    EXPECT_NEAR(sum / 20000, 6, 0.07) << name_of(dtype);
  }
  EXPECT_EQ(poisson(zeros({2, 2})).to_vector<float>(), std::vector<float>(4, 0));
  EXPECT_EQ(poisson(full({1}, 1e30)).to_vector<float>()[0], 1e30f);
  EXPECT_EQ(to_string(poisson(zeros({0, 3})).sizes()), "(0, 3)");
}
TEST(poisson, takes_one_group_of_the_stream_for_each_element) {
  manual_seed(5);
  const Tensor means = full({5}, 20.0);
  const Tensor all = poisson(means);
  EXPECT_EQ(default_generator().state().to_vector<int64_t>(), (std::vector<int64_t>{5, 5}));
  manual_seed(5);
  const Tensor first = poisson(slice(means, 0, 0, 2)), rest = poisson(slice(means, 0, 2, 5));
  expect_same_bits(cat({first, rest}), all);
}
TEST(poisson, does_not_depend_on_the_number_of_threads) {
  expect_same_bits_with_two_threads([] {
    manual_seed(3);
    return poisson(full({20000}, 12.0));
  });
}
TEST(poisson, refuses_means_that_are_none) {
  for (const double mean : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    EXPECT_THROW(poisson(full({2}, mean)), EagerError) << mean;
  EXPECT_THROW(poisson(ones({2}, DType::i64)), EagerError);
}
TEST(poisson, has_a_gradient_of_zeros) {
  const Tensor means = full({3}, 2.0);
  means.set_requires_grad();
  sum(poisson(means)).backward();
  EXPECT_EQ(means.grad().to_vector<float>(), std::vector<float>(3, 0));
}
TEST(poisson, of_a_program_draws_from_the_state_of_the_program) {
  const auto call = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{poisson(in[0])};
  };
  manual_seed(21);
  const InProgram program(call, {input("means", {Dim::symbol("n", 1, 8)})});
  const Tensor means = Tensor::from<float>({0.5f, 3, 12, 1e4f}, {4});
  expect_same_bits(program.run({means})[0], poisson(means));
}

}  // namespace
}  // namespace taper::eager
