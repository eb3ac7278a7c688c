// Gradients of programs whose batch and time are symbols: those of eager at every size. Eager knows
// the extents, a trace does not, so a derivative that counts or compares extents has two ways to
// come to its result.
#include <cmath>

#include "taper/exporter/exporter.h"
#include "taper/tests/kernels/program_check.h"

namespace taper::eager {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensor&)>;

struct Case {
  const char* name;
  Function of;
};

/// {y, dx} where dx is the gradient of the sum of y · y at x.
Tensors with_gradient(const Function& f, const Tensor& input) {
  const Tensor x = input.detach().set_requires_grad();
  const Tensor y = f(x);
  return {y.detach(), grad({sum(y * y)}, {x})[0].detach()};
}

void expect_near(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(to_string(got.sizes()), to_string(want.sizes()));
  const std::vector<float> a = contiguous(got).to_vector<float>(),
                           b = contiguous(want).to_vector<float>();
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i])) {
      ASSERT_TRUE(std::isnan(a[i])) << "at " << i;
      continue;
    }
    ASSERT_NEAR(a[i], b[i], 2e-5 * (1 + std::fabs(b[i]))) << "at " << i;
  }
}

/// Of x (batch, time, 4) with both symbolic, at several sizes.
void expect_gradients_of_eager(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Dim batch = Dim::symbol("batch", 1, 6), time = Dim::symbol("time", 2, 9);
    const auto function = [&](const Tensors& in) { return with_gradient(c.of, in[0]); };
    const InProgram program(function, {input("x", {batch, time, 4})});
    for (const Ints& sizes : {Ints{1, 2, 4}, Ints{2, 3, 4}, Ints{5, 2, 4}, Ints{6, 9, 4}}) {
      SCOPED_TRACE(to_string(Dims(sizes.begin(), sizes.end())));
      const Tensor x = random_tensor(sizes, 3);
      const Tensors got = program.run({x}), want = function({x});
      for (size_t i = 0; i < want.size(); ++i) expect_near(got[i], want[i]);
    }
  }
}

TEST(symbolic_gradients, of_means_and_variances_count_every_symbol) {
  expect_gradients_of_eager({
      {"mean", [](const Tensor& x) { return mean(x); }},
      {"mean over batch", [](const Tensor& x) { return mean(x, {0}); }},
      {"mean over time", [](const Tensor& x) { return mean(x, {1}, true); }},
      {"mean over batch and time",
       [](const Tensor& x) {
         return mean(x, {0, 1});
       }},
      {"mean over batch and features",
       [](const Tensor& x) {
         return mean(x, {-1, 0});
       }},
      {"var", [](const Tensor& x) { return var(x); }},
      {"var over time", [](const Tensor& x) { return var(x, Ints{1}); }},
      {"var over batch and time",
       [](const Tensor& x) {
         return var(x, Ints{0, 1});
       }},
      {"var over all, named",
       [](const Tensor& x) {
         return var(x, Ints{0, 1, 2}, 0.0);
       }},
      {"var over time and features",
       [](const Tensor& x) {
         return var(x, Ints{1, 2}, 2.0);
       }},
      {"std over batch and time",
       [](const Tensor& x) {
         return std(x, Ints{0, 1});
       }},
  });
}

TEST(symbolic_gradients, of_reductions_are_those_of_eager) {
  expect_gradients_of_eager({
      {"sum",
       [](const Tensor& x) {
         return sum(x, {0, 1});
       }},
      {"amax",
       [](const Tensor& x) {
         return amax(x, {0, 1});
       }},
      {"amin", [](const Tensor& x) { return amin(x, {1}); }},
      {"max", [](const Tensor& x) { return std::get<0>(max(x, 1)); }},
      {"max of all", [](const Tensor& x) { return max(x); }},
      {"prod", [](const Tensor& x) { return prod(x, 1); }},
      {"norm",
       [](const Tensor& x) {
         return norm(x, 2, {0, 1});
       }},
      {"cumsum", [](const Tensor& x) { return cumsum(x, 1); }},
      {"cumprod", [](const Tensor& x) { return cumprod(x, 0); }},
      {"logcumsumexp", [](const Tensor& x) { return logcumsumexp(x, 1); }},
      {"logsumexp",
       [](const Tensor& x) {
         return logsumexp(x, {0, 1});
       }},
      {"median", [](const Tensor& x) { return std::get<0>(median(x, 1)); }},
      {"sort", [](const Tensor& x) { return std::get<0>(sort(x, 1)); }},
      {"topk", [](const Tensor& x) { return std::get<0>(topk(x, 2, 1)); }},
  });
}

TEST(symbolic_gradients, of_layers_and_losses_are_those_of_eager) {
  const Tensor w = random_tensor({5, 4}, 7), taps = random_tensor({3, 4, 2}, 8);
  const auto classes = [](const Tensor& x) {  // (batch, time)
    return to(sum(x.detach(), {2}) > 0, DType::i64);
  };
  expect_gradients_of_eager({
      {"softmax over time", [](const Tensor& x) { return softmax(x, 1); }},
      {"log_softmax over batch", [](const Tensor& x) { return log_softmax(x, 0); }},
      {"layer_norm", [](const Tensor& x) { return layer_norm(x, {4}); }},
      {"batch_norm", [](const Tensor& x) { return batch_norm(x, {}, {}, {}, {}, true); }},
      {"group_norm", [](const Tensor& x) { return group_norm(x.transpose(1, 2), 2); }},
      {"linear", [=](const Tensor& x) { return linear(x, w); }},
      {"matmul", [](const Tensor& x) { return matmul(x, x.transpose(1, 2)); }},
      {"attention",
       [](const Tensor& x) { return scaled_dot_product_attention(x, x, x, {}, 0, true); }},
      {"mse_loss", [](const Tensor& x) { return mse_loss(x, zeros_like(x)); }},
      {"smooth_l1_loss", [](const Tensor& x) { return smooth_l1_loss(x, zeros_like(x)); }},
      {"cross_entropy",
       [=](const Tensor& x) { return cross_entropy(x.transpose(1, 2), classes(x)); }},
      {"cross_entropy with smoothing",
       [=](const Tensor& x) {
         return cross_entropy(x.transpose(1, 2), classes(x), {}, Reduction::mean, -100, 0.1);
       }},
      {"conv1d over time",
       [=](const Tensor& x) { return conv1d(x.transpose(1, 2), taps, {}, 1, 1); }},
      {"max_pool2d", [](const Tensor& x) { return max_pool2d(x, 2, 1); }},
      {"avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, 2, 1, 1); }},
      {"adaptive_avg_pool2d",
       [](const Tensor& x) {
         return adaptive_avg_pool2d(x, {1, 2});
       }},
  });
}

TEST(symbolic_gradients, of_moved_elements_are_those_of_eager) {
  const Tensor rows = Tensor::from<int64_t>({1, 0, 1}, {3});
  expect_gradients_of_eager({
      {"flatten",
       [](const Tensor& x) {
         return reshape(x, {-1, 4}) * 2;
       }},
      {"transpose", [](const Tensor& x) { return x.transpose(0, 1) * x.transpose(0, 1); }},
      {"broadcast over batch", [](const Tensor& x) { return x * x[0]; }},
      {"broadcast over both",
       [](const Tensor& x) {
         return x * mean(x, {0, 1}, true);
       }},
      {"expand", [](const Tensor& x) { return expand(sum(x, {0}, true), x.sizes()); }},
      {"flip",
       [](const Tensor& x) {
         return flip(x, {0, 1}) * x;
       }},
      {"roll", [](const Tensor& x) { return roll(x, {1}, {1}) * x; }},
      {"cat",
       [](const Tensor& x) {
         return cat({x, x * x}, 1);
       }},
      {"slice", [](const Tensor& x) { return x.slice(1, 1); }},
      {"select", [](const Tensor& x) { return x.select(1, 1); }},
      {"pad",
       [](const Tensor& x) {
         return constant_pad_nd(x, {1, 1, 2, 0});
       }},
      {"tril", [](const Tensor& x) { return tril(x); }},
      {"repeat",
       [](const Tensor& x) {
         return repeat(x, {2, 1, 1});
       }},
      {"index_select", [=](const Tensor& x) { return index_select(x, 1, rows); }},
      {"where", [](const Tensor& x) { return where(x > 0, x, x * 3); }},
      {"masked_fill", [](const Tensor& x) { return masked_fill(x, x > 0, 0); }},
  });
}

}  // namespace
}  // namespace taper::eager
