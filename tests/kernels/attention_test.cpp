#include <gmock/gmock.h>

#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/eager_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using Tensors = std::vector<Tensor>;

void expect_near(const Tensor& got, const Tensor& want, double tolerance) {
  const std::vector<double> a = got.to(DType::f64).contiguous().to_vector<double>(),
                            b = want.to(DType::f64).contiguous().to_vector<double>();
  ASSERT_EQ(to_string(got.sizes()), to_string(want.sizes()));
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "at " << i;
}

std::tuple<Tensor, Tensor> flash_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                           bool is_causal = false, const Tensor& mask = {}) {
  return call<ops::_scaled_dot_product_flash_attention_for_cpu>(Location::current(), q, k, v, 0.0,
                                                                is_causal, mask, std::nullopt);
}
/// The same with the matrix of scores.
Tensor attention_in_parts(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal,
                          const Tensor& mask) {
  const double scale = 1 / std::sqrt(static_cast<double>(q.size(-1).value()));
  Tensor scores = matmul(q, k.transpose(-2, -1)) * scale;
  if (is_causal)
    scores = masked_fill(scores, triu(ones({q.size(-2), k.size(-2)}, DType::boolean), 1),
                         Scalar(-INFINITY));
  if (mask.defined() && mask.dtype() == DType::boolean)
    scores = masked_fill(scores, logical_not(mask), Scalar(-INFINITY));
  else if (mask.defined())
    scores = scores + mask;
  return matmul(call<ops::_safe_softmax>(Location::current(), scores, -1, std::nullopt), v);
}

TEST(attention, is_a_softmax_of_scores_times_values) {
  const Tensor q = random_tensor({2, 5, 4}, 1, DType::f64),
               k = random_tensor({2, 7, 4}, 2, DType::f64),
               v = random_tensor({2, 7, 3}, 3, DType::f64);
  expect_near(scaled_dot_product_attention(q, k, v),
              matmul(softmax(matmul(q, k.transpose(1, 2)) * 0.5, -1), v), 1e-12);
}

TEST(attention, to_nothing_gives_zeros_and_a_finite_gradient) {
  const Tensor q = random_tensor({2, 4}, 1), k = random_tensor({3, 4}, 2),
               v = random_tensor({3, 4}, 3);
  q.set_requires_grad();
  const Tensor mask = zeros({2, 3}, DType::boolean);
  const Tensor y = scaled_dot_product_attention(q, k, v, mask);
  for (const float x : y.to_vector<float>()) EXPECT_EQ(x, 0);
  for (const float g : grad({sum(y)}, {q})[0].to_vector<float>()) EXPECT_EQ(g, 0);
}

TEST(attention, drops_weights_with_and_without_gradients) {
  const Tensor q = randn({1, 2, 64, 8}), k = randn({1, 2, 64, 8}), v = ones({1, 2, 64, 4});
  for (const bool wanted : {false, true}) {
    q.set_requires_grad(wanted);
    manual_seed(1);
    const Tensor y = scaled_dot_product_attention(q, k, v, {}, 0.5);
    // each row of weights sums to 1 on average, and no row keeps all of them
    EXPECT_NEAR(mean(y).item(), 1, 0.1);
    EXPECT_GT(amax(abs(y - 1), {0, 1, 2, 3}).item(), 0.01);
    EXPECT_EQ(amax(scaled_dot_product_attention(q, k, v, {}, 1.0), {0, 1, 2, 3}).item(), 0);
  }
}
TEST(attention, refuses_a_mask_of_other_sizes_than_the_scores) {
  const Tensor q = ones({2, 3, 5, 4}), k = ones({2, 3, 7, 4});
  const std::tuple<Ints, const char*> masks[] = {
      {{5, 6}, "size 6 does not broadcast to 7 (dimension 1 from the end)"},
      {{4, 7}, "size 4 does not broadcast to 5 (dimension 2 from the end)"},
      {{2, 5, 7}, "size 2 does not broadcast to 3 (dimension 3 from the end)"},
      {{3, 1, 1, 1}, "size 3 does not broadcast to 2 (dimension 4 from the end)"}};
  for (const auto& [sizes, message] : masks)
    for (const DType dtype : {DType::f32, DType::boolean}) {
      const Tensor mask = ones(Dims(sizes.begin(), sizes.end()), dtype);
      EXPECT_THROW_MESSAGE(flash_attention(q, k, k, false, mask), message);
    }
  expect_near(std::get<0>(flash_attention(q, k, k, false, zeros({5, 1}))), ones({2, 3, 5, 4}),
              1e-6);
}
TEST(attention, causal_hides_later_keys) {
  const Tensor q = random_tensor({4, 2}, 1), k = random_tensor({4, 2}, 2),
               v = random_tensor({4, 2}, 3);
  const Tensor y = scaled_dot_product_attention(q, k, v, {}, 0, true);
  expect_near(y[0], v[0], 1e-6);
}

TEST(attention, gives_the_logarithm_of_each_query_s_sum) {
  const Tensor q = random_tensor({2, 3, 5, 4}, 1), k = random_tensor({2, 3, 7, 4}, 2),
               v = random_tensor({2, 3, 7, 6}, 3);
  const auto [y, sums] = flash_attention(q, k, v);
  expect_near(sums, logsumexp(matmul(q, k.transpose(2, 3)) * 0.5, {-1}), 1e-5);
  expect_same_bits(y, scaled_dot_product_attention(q, k, v));
  const Tensor nothing = zeros({5, 7}, DType::boolean);
  for (const float x : std::get<1>(flash_attention(q, k, v, false, nothing)).to_vector<float>())
    EXPECT_EQ(x, -INFINITY);
  for (const DType half : {DType::f16, DType::bf16}) {
    const auto [narrow, wide] = flash_attention(q.to(half), k.to(half), v.to(half));
    EXPECT_EQ(narrow.dtype(), half);
    EXPECT_EQ(wide.dtype(), DType::f32);
  }
}

TEST(attention, takes_another_scale) {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const double scale : {0.3, 2.0}) {
      const Tensor q = random_tensor({2, 2, 5, 4}, 1, dtype),
                   k = random_tensor({2, 2, 7, 4}, 2, dtype),
                   v = random_tensor({2, 2, 7, 3}, 3, dtype);
      for (const Tensor& t : {q, k, v}) t.set_requires_grad();
      const Tensor dy = random_tensor({2, 2, 5, 3}, 4, dtype),
                   y = scaled_dot_product_attention(q, k, v, {}, 0, false, scale),
                   want = matmul(softmax(matmul(q, k.transpose(-2, -1)) * scale, -1), v);
      expect_near(y, want, 1e-6);
      const Tensors got = grad({y}, {q, k, v}, {dy}), of_parts = grad({want}, {q, k, v}, {dy});
      for (size_t i = 0; i < 3; ++i) expect_near(got[i], of_parts[i], 2e-6);
    }
}

TEST(attention, has_the_gradient_of_its_parts) {
  const Tensor added = random_tensor({2, 1, 150, 40}, 5);
  const Tensor shown = gt(random_tensor({150, 40}, 6), 0);
  shown.select(0, 7).fill_(0);  // one query sees nothing
  struct Case {
    bool is_causal;
    Tensor mask;
  };
  for (const Case& c : {Case{false, {}}, Case{true, {}}, Case{false, added}, Case{false, shown}}) {
    Tensors gradients[2];
    for (const bool whole : {true, false}) {
      // (batch, length, heads, features) in memory, as a linear layer leaves them
      const Tensor q = random_tensor({2, 150, 3, 24}, 1), k = random_tensor({2, 40, 3, 24}, 2),
                   v = random_tensor({2, 40, 3, 10}, 3);
      for (const Tensor& t : {q, k, v}) t.set_requires_grad();
      const auto heads = [](const Tensor& t) { return t.transpose(1, 2); };
      const Tensor y =
          whole ? scaled_dot_product_attention(heads(q), heads(k), heads(v), c.mask, 0, c.is_causal)
                : attention_in_parts(heads(q), heads(k), heads(v), c.is_causal, c.mask);
      const Tensor dy = random_tensor({2, 150, 3, 10}, 4);
      gradients[whole] = grad({y}, {q, k, v}, {heads(dy)});
    }
    for (int i = 0; i < 3; ++i) expect_near(gradients[1][i], gradients[0][i], 2e-5);
  }
}

TEST(attention, is_differentiable_twice) {
  const Tensor q = random_tensor({1, 4, 3, 2}, 1, DType::f64),
               k = random_tensor({1, 4, 2, 2}, 2, DType::f64),
               v = random_tensor({1, 4, 2, 3}, 3, DType::f64),
               added = random_tensor({3, 2}, 4, DType::f64),
               shown =
                   Tensor::from(std::vector<float>{1, 0, 0, 0, 1, 1}, {3, 2}).to(DType::boolean);
  for (const bool is_causal : {false, true})
    expect_right_derivatives(
        [=](const Tensors& t) {
          return scaled_dot_product_attention(t[0], t[1], t[2], {}, 0, is_causal);
        },
        {q, k, v});
  for (const Tensor& mask : {added, shown})
    expect_right_derivatives(
        [=](const Tensors& t) { return scaled_dot_product_attention(t[0], t[1], t[2], mask); },
        {q, k, v});
  // a mask that is learnt
  expect_right_derivatives(
      [=](const Tensors& t) { return scaled_dot_product_attention(t[0], t[1], t[2], t[3]); },
      {q, k, v, added});
}

TEST(attention, shares_heads_and_repeats_leading_dimensions_with_gradients) {
  const Tensor q = random_tensor({2, 4, 3, 2}, 1, DType::f64);
  const auto differentiate_with = [&](const Ints& k, const Ints& v, bool shares) {
    expect_right_derivatives(
        [=](const Tensors& t) {
          return scaled_dot_product_attention(t[0], t[1], t[2], {}, 0, false, {}, shares);
        },
        {q, random_tensor(k, 2, DType::f64), random_tensor(v, 3, DType::f64)});
  };
  differentiate_with({2, 2, 3, 2}, {2, 2, 3, 1}, true);
  differentiate_with({2, 1, 3, 2}, {2, 2, 3, 1}, true);
  differentiate_with({2, 1, 3, 2}, {2, 1, 3, 1}, false);
  differentiate_with({4, 3, 2}, {2, 1, 3, 1}, false);
  EXPECT_THROW(differentiate_with({2, 2, 3, 2}, {2, 2, 3, 1}, false), EagerError);
  EXPECT_THROW(differentiate_with({2, 3, 3, 2}, {2, 3, 3, 1}, true), EagerError);
}

TEST(attention, to_no_key_and_of_no_query_has_gradients_of_zero) {
  for (const Ints& lengths : {Ints{3, 0}, Ints{0, 3}, Ints{0, 0}}) {
    const Tensor q = random_tensor({2, lengths[0], 4}, 1), k = random_tensor({2, lengths[1], 4}, 2),
                 v = random_tensor({2, lengths[1], 4}, 3);
    for (const Tensor& t : {q, k, v}) t.set_requires_grad();
    for (const Tensor& g : grad({sum(scaled_dot_product_attention(q, k, v))}, {q, k, v}))
      for (const float x : g.to_vector<float>()) EXPECT_EQ(x, 0);
  }
}

TEST(attention, has_the_same_gradient_with_two_threads) {
  for (const int64_t heads : {1, 3})  // fewer than threads: its blocks run in parallel
    for (const bool is_causal : {false, true})
      expect_same_bits_with_two_threads([=] {
        const Tensor q = random_tensor({heads, 300, 16}, 1), k = random_tensor({heads, 600, 16}, 2),
                     v = random_tensor({heads, 600, 24}, 3);
        for (const Tensor& t : {q, k, v}) t.set_requires_grad();
        const Tensor y = scaled_dot_product_attention(q, k, v, {}, 0, is_causal);
        Tensors rows;
        for (const Tensor& g : grad({sum(y * y)}, {q, k, v})) rows.push_back(g.reshape({-1}));
        return cat(rows, 0);
      });
}

}  // namespace
}  // namespace taper::eager
