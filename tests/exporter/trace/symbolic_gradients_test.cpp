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

void expect_gradients_of_eager(const std::vector<Case>& cases, const Dims& symbolic,
                               const std::vector<Ints>& sizes) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const auto function = [&](const Tensors& in) { return with_gradient(c.of, in[0]); };
    const InProgram program(function, {input("x", symbolic)});
    for (const Ints& size : sizes) {
      const Tensor x = random_tensor(size, 3);
      SCOPED_TRACE(to_string(x.sizes()));
      const Tensors got = program.run({x}), want = function({x});
      for (size_t i = 0; i < want.size(); ++i) expect_near(got[i], want[i]);
    }
  }
}
/// Of x (batch, time, 4) with both symbolic.
void expect_gradients_of_eager(const std::vector<Case>& cases) {
  const Dim batch = Dim::symbol("batch", 1, 6), time = Dim::symbol("time", 2, 9);
  expect_gradients_of_eager(cases, {batch, time, 4}, {{1, 2, 4}, {2, 3, 4}, {5, 2, 4}, {6, 9, 4}});
}
/// Of images (batch, 4, height, width) with three symbols.
void expect_gradients_of_images(const std::vector<Case>& cases) {
  const Dim batch = Dim::symbol("batch", 1, 4), height = Dim::symbol("height", 3, 9),
            width = Dim::symbol("width", 3, 12);
  expect_gradients_of_eager(cases, {batch, 4, height, width},
                            {{1, 4, 3, 3}, {2, 4, 5, 8}, {3, 4, 9, 4}, {2, 4, 4, 11}});
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

TEST(symbolic_gradients, of_images_are_those_of_eager) {
  const Tensor w = random_tensor({6, 4, 3, 2}, 7), grouped = random_tensor({4, 1, 3, 3}, 8),
               turned = random_tensor({4, 3, 2, 3}, 9);
  expect_gradients_of_images({
      {"conv2d",
       [=](const Tensor& x) {
         return conv2d(x, w, {}, {2, 1}, 1);
       }},
      {"conv2d, depthwise", [=](const Tensor& x) { return conv2d(x, grouped, {}, 1, 1, 1, 4); }},
      {"conv_transpose2d", [=](const Tensor& x) { return conv_transpose2d(x, turned, {}, 2); }},
      {"max_pool2d", [](const Tensor& x) { return max_pool2d(x, 3, 2, 1); }},
      {"avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, 3, 2, 1, false, false); }},
      {"batch_norm", [](const Tensor& x) { return batch_norm(x, {}, {}, {}, {}, true); }},
      {"group_norm", [](const Tensor& x) { return group_norm(x, 2); }},
      {"global mean",
       [](const Tensor& x) {
         return mean(x, {2, 3});
       }},
      {"variance of each channel",
       [](const Tensor& x) {
         return var(x, Ints{0, 2, 3});
       }},
      {"variance of each image",
       [](const Tensor& x) {
         return var(x, Ints{1, 2, 3}, 0.0);
       }},
      {"pad, reflected",
       [](const Tensor& x) {
         return pad(x, {1, 2, 2, 1}, "reflect");
       }},
      {"pad, replicated",
       [](const Tensor& x) {
         return pad(x, {1, 2, 3, 0}, "replicate");
       }},
      {"interpolate, nearest",
       [](const Tensor& x) {
         return interpolate(x, {x.size(2) * 2, x.size(3) * 2});
       }},
      {"interpolate, bilinear",
       [](const Tensor& x) {
         return interpolate(x, {x.size(2) * 2, x.size(3) * 3}, "bilinear");
       }},
      {"interpolate, bicubic",
       [](const Tensor& x) {
         return interpolate(x, {7, 5}, "bicubic");
       }},
      {"pixel_shuffle", [](const Tensor& x) { return pixel_shuffle(x, 2); }},
      {"channels last",
       [](const Tensor& x) {
         return layer_norm(x.permute({0, 2, 3, 1}), {4});
       }},
      {"attention over pixels",
       [](const Tensor& x) {
         const Tensor pixels = reshape(x, {x.size(0), 4, -1}).transpose(1, 2);
         return scaled_dot_product_attention(pixels, pixels, pixels);
       }},
  });
}

TEST(symbolic_gradients, of_picked_and_scattered_elements_are_those_of_eager) {
  const Tensor pair = Tensor::from<int64_t>({1, 0}, {2});
  expect_gradients_of_eager({
      {"gather", [](const Tensor& x) { return gather(x, 1, to(x.detach() > 0, DType::i64)); }},
      {"scatter_add",
       [](const Tensor& x) {
         return scatter_add(zeros_like(x), 1, to(x.detach() > 0, DType::i64), x);
       }},
      {"index_add", [=](const Tensor& x) { return index_add(x * 2, 1, pair, x.slice(1, 0, 2)); }},
      {"index_copy", [=](const Tensor& x) { return index_copy(x * 2, 1, pair, x.slice(1, 0, 2)); }},
      {"cdist", [](const Tensor& x) { return cdist(x, x.slice(1, 0, 1) + 1); }},
      {"bmm", [](const Tensor& x) { return bmm(x.transpose(1, 2), x); }},
      {"diagonal", [](const Tensor& x) { return diagonal(x, 0, 0, 1); }},
      {"stack",
       [](const Tensor& x) {
         return stack({x, x * x}, 1);
       }},
      {"clamp", [](const Tensor& x) { return clamp(x, -0.5, 0.5); }},
      {"written in place",
       [](const Tensor& x) {
         Tensor y = x * 2;
         y.select(1, 0).mul_(3);
         return y;
       }},
  });
}

}  // namespace
}  // namespace taper::eager
