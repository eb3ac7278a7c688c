#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

using Tensors = std::vector<Tensor>;

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

/// Small f64 arguments of a scan: gates, states and weight, for `count` gates.
struct Arguments {
  Tensor gates, hx, cx, weight, bias_hn;
  explicit Arguments(int64_t count, DType dtype = DType::f64, int64_t time = 4, int64_t batch = 2,
                     int64_t hidden = 3)
      : gates(random_tensor({time, batch, count * hidden}, 1, dtype)),
        hx(random_tensor({batch, hidden}, 2, dtype)),
        cx(random_tensor({batch, hidden}, 3, dtype)),
        weight(random_tensor({count * hidden, hidden}, 4, dtype)),
        bias_hn(random_tensor({hidden}, 5, dtype)) {}
};

TEST(rnn_scan, is_the_recurrence_written_out) {
  const Arguments a(1);
  for (const bool relu : {false, true})
    for (const bool reverse : {false, true}) {
      const Tensor y = rnn_scan(a.gates, a.hx, a.weight, relu, reverse);
      Tensor h = a.hx;
      for (int64_t i = 0; i < 4; ++i) {
        const int64_t t = reverse ? 3 - i : i;
        const Tensor x = a.gates[t] + linear(h, a.weight);
        h = relu ? eager::relu(x) : tanh(x);
        const std::vector<double> difference = (y[t] - h).to_vector<double>();
        for (const double d : difference) EXPECT_NEAR(d, 0, 1e-14);
      }
    }
}

TEST(lstm_scan, is_the_cell_of_hochreiter_and_schmidhuber) {
  const Arguments a(4, DType::f64, 1, 1, 1);
  const auto [y, cells, activations] = lstm_scan(a.gates, a.hx, a.cx, a.weight, false);
  const std::vector<double> x = a.gates.to_vector<double>(), w = a.weight.to_vector<double>();
  const double h = a.hx.item(), c = a.cx.item();
  const double i = sigmoid_of(x[0] + w[0] * h), f = sigmoid_of(x[1] + w[1] * h),
               g = std::tanh(x[2] + w[2] * h), o = sigmoid_of(x[3] + w[3] * h);
  EXPECT_NEAR(cells.item(), f * c + i * g, 1e-15);
  EXPECT_NEAR(y.item(), o * std::tanh(f * c + i * g), 1e-15);
}

TEST(gru_scan, is_the_cell_with_the_reset_gate_after_the_product) {
  const Arguments a(3, DType::f64, 1, 1, 1);
  const Tensor y = std::get<0>(gru_scan(a.gates, a.hx, a.weight, a.bias_hn, false));
  const std::vector<double> x = a.gates.to_vector<double>(), w = a.weight.to_vector<double>();
  const double h = a.hx.item();
  const double r = sigmoid_of(x[0] + w[0] * h), z = sigmoid_of(x[1] + w[1] * h),
               n = std::tanh(x[2] + r * (w[2] * h + a.bias_hn.item()));
  EXPECT_NEAR(y.item(), (1 - z) * n + z * h, 1e-15);
}

TEST(scans, are_differentiable_twice) {
  for (const bool reverse : {false, true}) {
    const Arguments r(1), l(4), g(3);
    expect_right_derivatives(
        [=](const Tensors& v) { return rnn_scan(v[0], v[1], v[2], false, reverse); },
        {r.gates, r.hx, r.weight});
    expect_right_derivatives(
        [=](const Tensors& v) {
          const auto [y, cells, activations] = lstm_scan(v[0], v[1], v[2], v[3], reverse);
          return y + cells * 0.5;
        },
        {l.gates, l.hx, l.cx, l.weight});
    expect_right_derivatives(
        [=](const Tensors& v) { return std::get<0>(gru_scan(v[0], v[1], v[2], v[3], reverse)); },
        {g.gates, g.hx, g.weight, g.bias_hn});
  }
}

TEST(scans, give_the_same_bits_with_two_threads) {
  const Arguments r(1, DType::f32, 3, 37, 129), l(4, DType::f32, 3, 37, 129),
      g(3, DType::f32, 3, 37, 129);
  const auto with_gradient = [](const Tensor& gates, const auto& scan) {
    const Tensor x = gates.detach();
    x.set_requires_grad();
    const Tensor y = scan(x);
    sum(y).backward();
    return cat({y.detach(), x.grad()}, 2);
  };
  expect_same_bits_with_two_threads([&] {
    return with_gradient(r.gates,
                         [&](const Tensor& x) { return rnn_scan(x, r.hx, r.weight, true, true); });
  });
  expect_same_bits_with_two_threads([&] {
    return with_gradient(l.gates, [&](const Tensor& x) {
      return std::get<0>(lstm_scan(x, l.hx, l.cx, l.weight, false));
    });
  });
  expect_same_bits_with_two_threads([&] {
    return with_gradient(g.gates, [&](const Tensor& x) {
      return std::get<0>(gru_scan(x, g.hx, g.weight, {}, false));
    });
  });
}

TEST(scans, refuse_shapes_that_do_not_fit) {
  const Arguments a(4);
  EXPECT_THROW(lstm_scan(a.gates, a.hx, a.cx, a.weight.t(), false), EagerError);
  EXPECT_THROW(rnn_scan(a.gates, a.hx, a.weight, false, false), EagerError);
  EXPECT_THROW(lstm_scan(slice(a.gates, 0, 0, 0), a.hx, a.cx, a.weight, false), EagerError);
}

TEST(lstm, refuses_parameters_and_states_that_do_not_fit) {
  const Tensor x = ones({5, 2, 3}), h = ones({1, 2, 4}), w_ih = ones({16, 3}), w_hh = ones({16, 4});
  const auto run = [&](const Tensors& hx, const Tensors& params, int64_t layers) {
    return lstm(x, hx, params, false, layers, 0, false, false, false);
  };
  EXPECT_EQ(to_string(std::get<0>(run({h, h}, {w_ih, w_hh}, 1)).sizes()), "(5, 2, 4)");
  EXPECT_THROW(run({h}, {w_ih, w_hh}, 1), EagerError);
  EXPECT_THROW(run({h, h}, {w_ih}, 1), EagerError);
  EXPECT_THROW(run({h, h}, {w_ih, w_hh, w_ih, w_hh}, 2), EagerError);
}

TEST(lstm, drops_outputs_between_layers_only_while_training) {
  const Tensor x = random_tensor({5, 2, 4}), h = zeros({2, 2, 4});
  Tensors params;
  for (int i = 0; i < 4; ++i) params.push_back(random_tensor({16, 4}, 10 + i));
  const auto run = [&](double p, bool train) {
    return std::get<0>(lstm(x, {h, h}, params, false, 2, p, train, false, false));
  };
  expect_same_bits(run(0.5, false), run(0, true));
  EXPECT_FALSE(bytes_of(run(0.5, true)) == bytes_of(run(0, true)));
}

}  // namespace
}  // namespace taper::eager
