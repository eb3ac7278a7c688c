// Results that a derivative keeps for the backward pass: a write in place makes backward() an
// error. The rules come from the table of derivatives, and each that keeps a result has a call
// here.
#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "taper/exporter/eager/derivatives/derivative.h"
#include "taper/exporter/eager/eager.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

using testing::IsEmpty;

std::vector<Tensor> leaves;  // all that were made

Tensor as_leaf(const Tensor& values) {
  return leaves.emplace_back(values.detach().set_requires_grad());
}
/// A leaf with elements in (0, 1), which every function here can take.
Tensor leaf(const Ints& sizes, int64_t seed = 1) {
  Generator generator(seed);
  return as_leaf(sigmoid(randn(Dims(sizes.begin(), sizes.end()), DType::f32, generator)));
}
Tensor matrix() { return as_leaf(leaf({3, 3}) + eye(3) * 3); }
Tensor integers(const std::vector<int64_t>& values, const Ints& sizes) {
  return Tensor::from(values, sizes);
}

std::vector<Tensor> listed(const Tensor& result) { return {result}; }
template <class... T>
std::vector<Tensor> listed(const std::tuple<T...>& results) {
  return std::apply([](const T&... t) { return std::vector<Tensor>{t...}; }, results);
}

/// All results of a call, in the row's order.
using Call = std::function<std::vector<Tensor>()>;
std::map<const Operator*, Call> calls_of_rules() {
  std::map<const Operator*, Call> calls;
  const Tensor x = leaf({2, 3}), y = leaf({2, 3}, 2), line = leaf({4});
  const Tensor image = leaf({1, 2, 4, 4}), volume = leaf({1, 4, 4, 4}), signal = leaf({2, 6});
  const Tensor absent, scale = ones({1}), zero = zeros({1}, DType::i32), on = integers({1}, {1}),
                       a = matrix(), b = leaf({3, 2}), index = integers({0, 1, 0, 1, 0, 1}, {2, 3});
  const Ints two{2, 2}, none;

#define RULE(name, ...) \
  calls[&ops::name] = [=] { return listed(call<ops::name>(Location::current(), __VA_ARGS__)); }
  RULE(exp, x);
  RULE(expm1, x);
  RULE(sqrt, x);
  RULE(rsqrt, x);
  RULE(reciprocal, x);
  RULE(tan, x);
  RULE(tanh, x);
  RULE(exp2, x);
  RULE(erfinv, x);
  RULE(special_i0e, x);
  RULE(special_i1, x);
  RULE(special_i1e, x);
  RULE(special_log_ndtr, x);
  RULE(special_ndtri, sigmoid(x));
  RULE(special_erfcx, x);
  RULE(frexp_Tensor, x);
  RULE(sigmoid, x);
  RULE(relu, x);
  RULE(pow_Tensor_Tensor, x, y);
  RULE(pow_Scalar, Scalar(2.5), x);
  RULE(hypot, x, y);
  RULE(copysign_Tensor, x, y);
  RULE(copysign_Scalar, x, Scalar(-1));

  RULE(amax, x, Ints{1}, false);
  RULE(amin, x, Ints{1}, false);
  RULE(max, x);
  RULE(min, x);
  RULE(max_dim, x, 1, false);
  RULE(min_dim, x, 1, false);
  RULE(prod, x, std::nullopt);
  RULE(prod_dim_int, x, 1, false, std::nullopt);
  RULE(linalg_vector_norm, x, Scalar(2.0), Dims{1}, false, std::nullopt);
  RULE(std_correction, x, Ints{1}, Scalar(1), false);
  RULE(std_mean_correction, x, Ints{1}, Scalar(1), false);
  RULE(cumprod, x, 1, std::nullopt);
  RULE(taper_linear_recurrence, x, y, 1);
  RULE(logcumsumexp, x, 1);
  RULE(cummax, x, 1);
  RULE(cummin, x, 1);
  RULE(median, x);
  RULE(nanmedian, x);
  RULE(median_dim, x, 1, false);
  RULE(kthvalue, x, Dim(2), 1, false);
  RULE(sort, x, -1, false);
  RULE(topk, x, Dim(2), -1, true, true);
  RULE(_softmax, x, 1, false);
  RULE(_log_softmax, x, 1, false);
  RULE(scatter_reduce_two, x, 0, index, y, "amax", true);
  RULE(index_reduce, x, 0, integers({0, 1}, {2}), y, "amax", true);

  RULE(_cdist_forward, x, y, 2.0, std::nullopt);
  RULE(_pdist_forward, x, 2.0);
  RULE(_scaled_dot_product_flash_attention_for_cpu, image, image, image, 0.0, false, absent,
       std::nullopt);
  RULE(_ctc_loss, leaf({4, 1, 3}), integers({1, 2}, {1, 2}), Ints{4}, Ints{2}, 0, false);
  RULE(_ctc_loss_Tensor, leaf({4, 1, 3}), integers({1, 2}, {1, 2}), integers({4}, {1}),
       integers({2}, {1}), 0, false);
  RULE(nll_loss_forward, x, integers({0, 2}, {2}), absent, 1, Dim(-100));

  RULE(fake_quantize_per_tensor_affine_cachemask, x, 0.1, 0, 0, 255);
  RULE(fake_quantize_per_channel_affine_cachemask, x, ones({2}), zeros({2}, DType::i32), 0, 0, 255);
  RULE(_fake_quantize_per_tensor_affine_cachemask_tensor_qparams, x, scale, zero, on, 0, 255);
  RULE(_fused_moving_avg_obs_fq_helper, x, on, on, zeros({1}), ones({1}), ones({1}),
       zeros({1}, DType::i32), 0.1, 0, 255, 0, false, false);

  RULE(linalg_solve_triangular, a, b, true, true, false);
  RULE(linalg_lu_factor_ex, a, true, false);
  RULE(linalg_lu_solve, a, zeros({3}, DType::i32) + 3, b, true, false);
  RULE(_linalg_solve_ex, a, b, true, false);
  RULE(linalg_inv_ex, a, false);
  RULE(_linalg_det, a);
  const Tensor positive = as_leaf(matmul(mT(a), a));
  RULE(linalg_cholesky_ex, positive, false, false);
  RULE(linalg_qr, a, "reduced");
  RULE(_linalg_eigh, a, "L", true);
  RULE(_linalg_svd, a, false, true, std::nullopt);
  RULE(taper_eig, a, true);
  RULE(linalg_pinv_atol_rtol_float, a, std::nullopt, std::nullopt, false);
  RULE(linalg_pinv_atol_rtol_tensor, a, absent, absent, false);
  RULE(linalg_lstsq, a, b, std::nullopt, std::nullopt);

  RULE(_native_batch_norm_legit_no_stats, image, absent, absent, true, 0.1, 1e-5);
  RULE(_native_batch_norm_legit_functional, image, absent, absent, zeros({2}), ones({2}), true, 0.1,
       1e-5);
  RULE(native_layer_norm, x, Dims{3}, absent, absent, 1e-5);
  RULE(_fused_rms_norm, x, Ints{3}, absent, 1e-5);
  RULE(native_group_norm, image, absent, absent, Dim(1), Dim(2), Dim(16), 2, 1e-5);

  RULE(max_pool2d_with_indices, image, two, two, Ints{0, 0}, Ints{1, 1}, false);
  RULE(max_pool3d_with_indices, volume, Ints{2, 2, 2}, none, Ints{0, 0, 0}, Ints{1, 1, 1}, false);
  RULE(adaptive_max_pool1d, signal, Ints{2});
  RULE(adaptive_max_pool2d, image, two);
  RULE(adaptive_max_pool3d, volume, Ints{2, 2, 2});
  RULE(fractional_max_pool2d, image, two, two, zeros({1, 2, 2}));
  RULE(fractional_max_pool3d, volume, Ints{2, 2, 2}, Ints{2, 2, 2}, zeros({1, 1, 3}));
  RULE(torchvision_roi_pool, image, Tensor::from<float>({0, 0, 0, 3, 3}, {1, 5}), 1.0, Dim(2),
       Dim(2));
  RULE(taper_native_dropout, default_generator().state(), x, 0.5);

  const Tensor states = leaf({1, 2});
  RULE(taper_rnn_scan, leaf({3, 1, 2}), states, leaf({2, 2}), false, false);
  RULE(taper_lstm_scan, leaf({3, 1, 8}), states, states, leaf({8, 2}), false);
  RULE(taper_gru_scan, leaf({3, 1, 6}), states, leaf({6, 2}), absent, false);
#undef RULE
  return calls;
}

constexpr uint32_t kept_results(const Derivative& rule) { return rule.saves >> 16 & 0x7fff; }

TEST(saved_results, have_a_call_here_for_every_rule_that_keeps_one) {
  const std::map<const Operator*, Call> calls = calls_of_rules();
  std::vector<std::string_view> missing;
  for (const Derivative* rule : all_derivatives())
    if (kept_results(*rule) != 0 && calls.count(rule->op) == 0)
      missing.push_back(info_of(*rule->op).name);
  EXPECT_THAT(missing, IsEmpty());
}

TEST(saved_results, of_every_rule_must_not_be_overwritten) {
  const std::map<const Operator*, Call> calls = calls_of_rules();
  for (const Derivative* rule : all_derivatives()) {
    const auto call = calls.find(rule->op);
    if (kept_results(*rule) == 0 || call == calls.end()) continue;
    const std::string name(info_of(*rule->op).name);
    SCOPED_TRACE(name);
    const auto backward = [](const std::vector<Tensor>& results) {
      results[0].backward(ones_like(results[0]));
    };
    EXPECT_NO_THROW(backward(call->second()));
    for (int k = 0; kept_results(*rule) >> k != 0; ++k) {
      if ((kept_results(*rule) >> k & 1) == 0) continue;
      std::vector<Tensor> results = call->second();
      NoGrad guard;
      results[static_cast<size_t>(k)].copy_(results[static_cast<size_t>(k)].clone());
      EXPECT_THROW_MESSAGE(backward(results),
                           "overwrote a value that " + name.substr(0, name.find('.')) + " at")
          << "result " << k;
    }
  }
}

TEST(saved_results, of_every_rule_are_computed_again_in_a_checkpoint) {
  leaves.clear();
  const std::map<const Operator*, Call> calls = calls_of_rules();
  const auto gradients = [](const std::vector<Tensor>& results) {
    for (const Tensor& t : leaves) t.set_grad({});
    results[0].backward(ones_like(results[0]));
    std::vector<std::vector<float>> all;
    for (const Tensor& t : leaves)
      if (t.grad().defined()) all.push_back(t.grad().to_vector<float>());
    EXPECT_FALSE(all.empty());
    return all;
  };
  for (const auto& [op, call] : calls) {
    SCOPED_TRACE(info_of(*op).name);
    int runs = 0;
    const auto counted = [&, &call = call](const std::vector<Tensor>&) { return ++runs, call(); };
    EXPECT_EQ(gradients(checkpoint(counted, {})), gradients(call()));
    EXPECT_EQ(runs, 2);
  }
}

// As a user writes it: the value changes, and the gradient of what was computed would be wrong.
TEST(saved_results, must_not_be_scaled_in_place) {
  for (const auto& f : {exp, sigmoid, tanh, sqrt}) {
    const Tensor x = leaf({3});
    Tensor y = f(x, Location::current());
    y.mul_(2);
    EXPECT_THROW_MESSAGE(y.backward(ones({3})), "mul_ at saved_results_test.cpp");
  }
}

TEST(saved_results, may_be_overwritten_once_they_were_used) {
  const Tensor x = leaf({3});
  Tensor y = exp(x);
  y.backward(ones({3}));
  NoGrad guard;
  y.zero_();
  EXPECT_EQ(x.grad().to_vector<float>(), exp(x).to_vector<float>());
}

}  // namespace
}  // namespace taper::eager
