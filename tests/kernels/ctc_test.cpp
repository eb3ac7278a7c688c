#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/eager_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

Tensor classes(const std::vector<int64_t>& values) {
  return Tensor::from<int64_t>(values, {static_cast<int64_t>(values.size())});
}

/// -log of the sum over all paths of `time` classes that, with repetitions and then blanks (0) left
/// out, are `target`.
double sum_over_paths(const std::vector<double>& logs, int64_t time, int64_t count,
                      const std::vector<int64_t>& target) {
  double total = 0;
  std::vector<int64_t> path(static_cast<size_t>(time));
  for (int64_t code = 0; code < std::pow(count, time); ++code) {
    double log_probability = 0;
    std::vector<int64_t> read;
    int64_t rest = code, before = -1;
    for (int64_t t = 0; t < time; ++t, rest /= count) {
      const int64_t k = rest % count;
      log_probability += logs[static_cast<size_t>(t * count + k)];
      if (k != before && k != 0) read.push_back(k);
      before = k;
    }
    if (read == target) total += std::exp(log_probability);
  }
  return -std::log(total);
}

TEST(ctc_loss, is_the_sum_over_all_paths) {
  const Tensor logs = log_softmax(random_tensor({5, 3}, 1, DType::f64), 1);
  for (const std::vector<int64_t>& target :
       {std::vector<int64_t>{1, 2}, {1, 1}, {2}, {2, 1, 2}, {}})
    for (const int64_t time : {5, 4}) {
      const double expected = sum_over_paths(logs.to_vector<double>(), time, 3, target);
      const double loss = ctc_loss(logs, classes(target), Ints{time},
                                   Ints{static_cast<int64_t>(target.size())}, 0, Reduction::sum)
                              .item();
      EXPECT_NEAR(loss, expected, 1e-12) << "time " << time;
    }
}

TEST(ctc_loss, has_the_gradient_of_the_softmax_input) {
  const Tensor x = random_tensor({6, 2, 4}, 2, DType::f64);
  const Tensor targets = classes({1, 2, 2, 3, 1});
  for (const Reduction reduction : {Reduction::mean, Reduction::sum}) {
    x.set_requires_grad();
    EXPECT_EQ(
        gradcheck(
            [&](const std::vector<Tensor>& v) {
              return ctc_loss(log_softmax(v[0], 2), targets, Ints{6, 5}, Ints{3, 2}, 0, reduction);
            },
            {x}),
        "");
  }
}

TEST(ctc_loss, of_a_target_too_long_is_infinite_or_zero) {
  const Tensor x = random_tensor({2, 1, 3}, 3), targets = classes({1, 1});
  x.set_requires_grad();
  EXPECT_EQ(ctc_loss(log_softmax(x, 2), targets, Ints{2}, Ints{2}).item(), INFINITY);
  const Tensor loss =
      ctc_loss(log_softmax(x, 2), targets, Ints{2}, Ints{2}, 0, Reduction::mean, true);
  EXPECT_EQ(loss.item(), 0);
  loss.backward();
  for (const float g : x.grad().to_vector<float>()) EXPECT_EQ(g, 0);
}

TEST(ctc_loss, takes_targets_as_rows_and_lengths_as_tensors) {
  const Tensor logs = log_softmax(random_tensor({6, 2, 4}, 4), 2);
  const Tensor joined = classes({1, 2, 2, 3, 1}),
               rows = Tensor::from<int64_t>({1, 2, 2, 3, 1, 0}, {2, 3});
  const Tensor one = ctc_loss(logs, joined, Ints{6, 5}, Ints{3, 2}, 0, Reduction::none);
  expect_same_bits(one, ctc_loss(logs, rows, classes({6, 5}), classes({3, 2}), 0, Reduction::none));
}

TEST(ctc_loss, refuses_lengths_and_targets_outside) {
  const Tensor logs = zeros({4, 1, 3});
  EXPECT_THROW(ctc_loss(logs, classes({3}), Ints{4}, Ints{1}), EagerError);
  EXPECT_THROW(ctc_loss(logs, classes({-1}), Ints{4}, Ints{1}), EagerError);
  EXPECT_THROW(ctc_loss(logs, classes({1}), Ints{5}, Ints{1}), EagerError);
  EXPECT_THROW(ctc_loss(logs, classes({1}), Ints{4}, Ints{2}), EagerError);
  EXPECT_THROW(ctc_loss(logs, classes({1}), Ints{4, 4}, Ints{1}), EagerError);
  EXPECT_THROW(ctc_loss(logs, classes({1}), Ints{4}, Ints{1}, 3), EagerError);
}

TEST(ctc_loss, refuses_states_that_are_too_few_for_a_target) {
  const Tensor logs = zeros({4, 1, 3}, DType::f64), rows = Tensor::from<int64_t>({1, 2, 1}, {1, 3});
  const auto gradient = [&](int64_t length, int64_t states) {
    const Tensor one = ones({1}, DType::f64);
    return call<ops::_ctc_loss_backward_Tensor>(Location::current(), one, logs, rows, classes({4}),
                                                classes({length}), one,
                                                zeros({1, 4, states}, DType::f64), 0, false);
  };
  EXPECT_NO_THROW(gradient(2, 5));
  EXPECT_THROW_MESSAGE(gradient(3, 5), "a target of length 3 needs 7 states, log_alpha has 5");
  EXPECT_THROW_MESSAGE(gradient(3, 9), "the longest target has 7 states, log_alpha has 9");
}

}  // namespace
}  // namespace taper::eager
