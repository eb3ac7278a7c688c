// Layers beside those of the golden files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/nn/nn.h"

namespace taper::nn {
namespace {

Tensor random(const Ints& sizes) {
  eager::manual_seed(1);
  return eager::randn(Dims(sizes.begin(), sizes.end()));
}
std::vector<float> elements(const Tensor& t) { return t.detach().to_vector<float>(); }

TEST(dropout_of_channels, zeroes_whole_ones_and_scales_the_others) {
  Dropout2d dropout(0.5);
  const std::vector<float> y = elements(dropout(eager::ones({8, 16, 3, 3})));
  int zeros = 0;
  for (size_t channel = 0; channel < 128; ++channel) {
    const float first = y[channel * 9];
    EXPECT_TRUE(first == 0 || first == 2) << first;
    zeros += first == 0;
    for (size_t i = 0; i < 9; ++i) EXPECT_EQ(y[channel * 9 + i], first);
  }
  EXPECT_NEAR(zeros, 64, 25);
  dropout.eval();
  EXPECT_EQ(elements(dropout(eager::ones({2, 3, 3}))), std::vector<float>(18, 1));
  EXPECT_THROW(Dropout1d()(eager::ones({3})), EagerError);
  EXPECT_THROW(Dropout3d(1.5), EagerError);
}

TEST(alpha_dropout, keeps_mean_and_variance) {
  AlphaDropout dropout(0.2);
  const std::vector<float> y = elements(dropout(random({200000})));
  double mean = 0, square = 0;
  for (const float v : y) mean += v / 2e5, square += v * v / 2e5;
  EXPECT_NEAR(mean, 0, 0.01);
  EXPECT_NEAR(square, 1, 0.02);
}

TEST(pools, of_lines_and_volumes_are_those_of_planes) {
  const Tensor line = random({2, 3, 8}), plane = line.unsqueeze(2), volume = plane.unsqueeze(2);
  const auto expect_equal = [&](Layer&& one, Layer&& two, Layer&& three) {
    const std::vector<float> expected = elements(two(plane));
    EXPECT_EQ(elements(one(line)), expected);
    EXPECT_EQ(elements(three(volume)), expected);
  };
  expect_equal(MaxPool1d(2), MaxPool2d({.kernel_size = {1, 2}}),
               MaxPool3d({.kernel_size = {1, 1, 2}}));
  expect_equal(AvgPool1d(2), AvgPool2d({.kernel_size = {1, 2}}),
               AvgPool3d({.kernel_size = {1, 1, 2}}));
  expect_equal(AdaptiveAvgPool1d(3), AdaptiveAvgPool2d(1, 3), AdaptiveAvgPool3d(1, 1, 3));
  expect_equal(AdaptiveMaxPool1d(3), AdaptiveMaxPool2d(1, 3), AdaptiveMaxPool3d(1, 1, 3));
  expect_equal(LPPool1d(2, 2), LPPool2d(2, {1, 2}), LPPool3d(2, {1, 1, 2}));
}

TEST(max_unpool, puts_the_greatest_back_where_they_were) {
  const auto check = [](auto pool, auto unpool, const Tensor& x) {
    const auto [values, indices] = pool.with_indices(x);
    const Tensor back = unpool(values, indices);
    EXPECT_EQ(eager::to_string(back.sizes()), eager::to_string(x.sizes()));
    std::vector<float> kept, greatest = elements(values);
    const std::vector<float> b = elements(back), original = elements(x);
    for (size_t i = 0; i < b.size(); ++i) {
      EXPECT_TRUE(b[i] == 0 || b[i] == original[i]);
      if (b[i] != 0) kept.push_back(b[i]);
    }
    std::sort(kept.begin(), kept.end());
    std::sort(greatest.begin(), greatest.end());
    EXPECT_EQ(kept, greatest);
  };
  check(MaxPool1d(2), MaxUnpool1d(2), random({2, 3, 8}));
  check(MaxPool2d(2), MaxUnpool2d(2), random({2, 3, 4, 6}));
  check(MaxPool3d(2), MaxUnpool3d(2), random({1, 2, 4, 2, 6}));
}

TEST(padding_layers, pad_lines_planes_and_volumes) {
  const Tensor x = Tensor::from<float>({1, 2, 3}, {1, 3});
  EXPECT_EQ(elements(ZeroPad1d({1, 1})(x)), (std::vector<float>{0, 1, 2, 3, 0}));
  EXPECT_EQ(elements(ReflectionPad1d({2, 1})(x)), (std::vector<float>{3, 2, 1, 2, 3, 2}));
  EXPECT_EQ(elements(ReplicationPad1d(1)(x)), (std::vector<float>{1, 1, 2, 3, 3}));
  EXPECT_EQ(elements(CircularPad1d({1, 2})(x)), (std::vector<float>{3, 1, 2, 3, 1, 2}));
  EXPECT_EQ(eager::to_string(ConstantPad3d(1, 7)(eager::ones({1, 2, 2, 2})).sizes()),
            "(1, 4, 4, 4)");
}

// One row more stands behind the input than before it.
TEST(conv, pads_an_even_kernel_more_at_the_end) {
  const Tensor line = Tensor::from<float>({1, 2, 4, 8}, {1, 1, 4});
  const auto convolved = [&](PaddingMode mode, int64_t kernel, int64_t dilation) {
    Conv1d conv(1, 1,
                {.kernel_size = kernel,
                 .padding = "same",
                 .dilation = dilation,
                 .bias = false,
                 .padding_mode = mode});
    init::constant_(conv.weight, 1);
    return elements(conv(line));
  };
  EXPECT_EQ(convolved(PaddingMode::zeros, 2, 1), (std::vector<float>{3, 6, 12, 8}));
  EXPECT_EQ(convolved(PaddingMode::zeros, 4, 1), (std::vector<float>{7, 15, 14, 12}));
  EXPECT_EQ(convolved(PaddingMode::zeros, 2, 3), (std::vector<float>{4, 9, 2, 4}));
  EXPECT_EQ(convolved(PaddingMode::circular, 2, 1), (std::vector<float>{3, 6, 12, 9}));
}

// x / (k + alpha mean(x^2))^beta, over the channel itself and size / 2 channels before it.
TEST(local_response_norm, of_an_even_size_looks_back) {
  LocalResponseNorm norm(2, 1, 1, 1);
  const std::vector<float> y = elements(norm(Tensor::from<float>({1, 2, 3}, {1, 3, 1})));
  EXPECT_FLOAT_EQ(y[0], 1 / 1.5f);
  EXPECT_FLOAT_EQ(y[1], 2 / 3.5f);
  EXPECT_FLOAT_EQ(y[2], 3 / 7.5f);
}

TEST(attention, hides_keys_that_either_mask_hides) {
  MultiheadAttention attention(4, 2, {.batch_first = true});
  const Tensor x = random({1, 3, 4});
  const Tensor padding = Tensor::from<bool>({false, true, false}, {1, 3});
  const Tensor later =
      Tensor::from<bool>({false, true, true, false, false, true, false, false, false}, {3, 3});
  const auto [output, weights] =
      attention(x, x, x, {.key_padding_mask = padding, .attn_mask = later});
  const std::vector<float> w = elements(weights);
  for (size_t query = 0; query < 3; ++query)
    for (size_t key = 0; key < 3; ++key)
      EXPECT_EQ(w[query * 3 + key] > 0, key != 1 && key <= query) << query << " " << key;
}

TEST(transformer, is_its_encoder_and_decoder) {
  eager::manual_seed(3);
  Transformer model({.d_model = 8,
                     .nhead = 2,
                     .num_encoder_layers = 2,
                     .num_decoder_layers = 1,
                     .layer = {.dim_feedforward = 12, .batch_first = true}});
  model.eval();
  const Tensor source = random({2, 5, 8}), target = random({2, 3, 8});
  const Tensor memory = model.encoder(source);
  EXPECT_EQ(elements(model(source, target)), elements(model.decoder(target, memory)));
  EXPECT_EQ(model.state_dict().count("encoder.layers.1.self_attn.in_proj_weight"), 1u);
  EXPECT_EQ(model.state_dict().count("decoder.norm.bias"), 1u);

  // With a causal mask the first output does not see later inputs.
  const DecoderMasks masks{.tgt_mask = Transformer::causal_mask(3)};
  Tensor changed = target.clone();
  changed.select(1, 2).fill_(5);
  const Tensor before = model.decoder(target, memory, masks).select(1, 0),
               after = model.decoder(changed, memory, masks).select(1, 0);
  EXPECT_EQ(elements(before), elements(after));
}

TEST(lp_pool, roots_negative_sums_as_pytorch_does) {
  const Tensor y = LPPool1d(1, 2)(Tensor::from<float>({1, 2, -3, 1, -1, 1}, {1, 1, 6}));
  EXPECT_EQ(elements(y), (std::vector<float>{3, -2, 0}));
}
TEST(layers, name_the_line_that_makes_them) {
  const std::function<void()> makers[] = {[] { Linear(3, -1); },
                                          [] { Conv2d(3, 8, {.kernel_size = 3, .groups = 2}); },
                                          [] { Embedding(-1, 3); },
                                          [] { LSTM(3, 0); },
                                          [] { MultiheadAttention(10, 3); },
                                          [] { GroupNorm(3, 8); },
                                          [] { GroupNorm(3, -3); },
                                          [] { BatchNorm2d(-1); },
                                          [] {
                                            LayerNorm({4, -1});
                                          },
                                          [] { LayerNorm(Ints{}); },
                                          [] { RMSNorm(-2); },
                                          [] { InstanceNorm1d(-1); },
                                          [] { LocalResponseNorm(0); },
                                          [] { RNNCell(-1, 4); },
                                          [] { LSTMCell(3, -4); },
                                          [] { GRUCell(-1, 4); },
                                          [] { TransformerEncoderLayer(-8, 2); },
                                          [] { TransformerDecoderLayer(8, 3); },
                                          [] { TransformerEncoder(8, 2, -1); },
                                          [] { TransformerDecoder(8, 2, 1, {.dropout = 2}); },
                                          [] { Transformer({.layer = {.activation = "tanh"}}); }};
  for (const auto& make : makers) try {
      make();
      ADD_FAILURE();
    } catch (const EagerError& e) {
      EXPECT_STREQ(e.where().file, __FILE__) << e.what();
    }
}

TEST(layers, say_what_they_cannot_take) {
  EXPECT_THROW(MultiheadAttention(10, 3), ExportError);
  EXPECT_THROW(TransformerEncoderLayer(8, 2, {.activation = "tanh"}), ExportError);
  EXPECT_THROW(LSTM(3, 4, {.proj_size = 4}), ExportError);
  EXPECT_THROW(LSTM(3, 4)(eager::ones({2, 2, 5})), EagerError);
  EXPECT_THROW(GRU(3, 4)(eager::ones({2, 2, 3}), eager::ones({1, 4})), EagerError);
  EXPECT_THROW(Upsample({.mode = "nearest"}), ExportError);
  EXPECT_THROW(EmbeddingBag(4, 2)(Tensor::from<int64_t>({0, 1}, {2})), EagerError);
  EXPECT_THROW(ConvTranspose1d(2, 2, {.kernel_size = 3, .stride = 2})
                   .forward(eager::ones({1, 2, 4}), Extents<1>(20)),
               EagerError);
}

}  // namespace
}  // namespace taper::nn
