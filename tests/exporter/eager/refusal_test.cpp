// What a call says that cannot be: the operator, the argument, what it may be and what was given.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "taper/exporter/eager/eager.h"

namespace taper::eager {
namespace {

constexpr int64_t huge = int64_t{1} << 62;

/// The text behind "refusal_test.cpp:<line>: ".
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const EagerError& e) {
    const std::string text = e.what();
    EXPECT_TRUE(text.starts_with("refusal_test.cpp:")) << text;
    return text.substr(text.find(": ") + 2);
  }
  return "nothing";
}
#define EXPECT_REFUSAL(call, text) EXPECT_EQ(refusal([&] { call; }), text)

Tensor integers(const std::vector<int64_t>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}

TEST(repeat, says_which_count_it_cannot_take) {
  const Tensor x = ones({2, 3});
  EXPECT_REFUSAL(
      repeat(x, {Dim(1), Dim(huge)}),
      "repeat: repeats 4611686018427387904 of size 3 makes a size of more than 2^63 for self "
      "(2, 3)");
  EXPECT_REFUSAL(repeat(x, {Dim(1), Dim(-1)}),
                 "repeat: repeats must be 0 or more, got -1 for self (2, 3)");
}
TEST(repeat_interleave, says_which_count_it_cannot_take) {
  const Tensor x = ones({2, 3});
  EXPECT_REFUSAL(
      repeat_interleave(x, Dim(huge), 1),
      "repeat_interleave: repeats must be at most 3074457345618258602 for a size of 3, got "
      "4611686018427387904");
  EXPECT_REFUSAL(repeat_interleave(x, Dim(-1)),
                 "repeat_interleave: repeats must be 0 or more, got -1");
  EXPECT_REFUSAL(repeat_interleave(x, Dim(2), 2),
                 "repeat_interleave: dim 2 is outside [-2, 2) for (2, 3)");
  EXPECT_REFUSAL(repeat_interleave(x, integers({1, -1}), 0),
                 "repeat_interleave: repeats must be 0 or more, got -1");
  EXPECT_REFUSAL(
      repeat_interleave(x, integers({huge, huge}), 0),
      "repeat_interleave: repeats must sum to less than 2^63, they sum to 9223372036854775808");
  EXPECT_REFUSAL(repeat_interleave(x, integers({1, 2}), 0, Dim(5)),
                 "repeat_interleave: output_size must be the sum of repeats, 3, got 5");
  EXPECT_REFUSAL(repeat_interleave(x, ones({2}), 0),
                 "repeat_interleave: repeats must be a vector of i64 or i32, got (2) f32");
}
TEST(constant_pad_nd, says_what_padding_it_cannot_take) {
  const Tensor x = ones({2, 3});
  const std::string makes = " makes of size 3 a negative one, or one beyond 2^63 for self (2, 3)";
  EXPECT_REFUSAL(constant_pad_nd(x, {Dim(-5), Dim(0)}, 0), "constant_pad_nd: pad (-5, 0)" + makes);
  EXPECT_REFUSAL(constant_pad_nd(x, {Dim(huge), Dim(huge)}, 0),
                 "constant_pad_nd: pad (4611686018427387904, 4611686018427387904)" + makes);
  EXPECT_REFUSAL(
      constant_pad_nd(x, {Dim(1), Dim(0), Dim(1)}, 0),
      "constant_pad_nd: pad must have two elements a dimension, it has 3 for self (2, 3)");
}
TEST(bincount, says_which_element_it_cannot_count) {
  const std::string allowed = "bincount: the elements of self must lie in [0, 2^60), got ";
  EXPECT_REFUSAL(bincount(integers({INT64_MAX})), allowed + "9223372036854775807");
  EXPECT_REFUSAL(bincount(integers({3, -4})), allowed + "-4");
  EXPECT_REFUSAL(bincount(integers({3}), {}, -3), "bincount: minlength must be 0 or more, got -3");
}
TEST(multinomial, says_which_weights_and_counts_it_cannot_take) {
  const Tensor x = ones({2, 3});
  EXPECT_REFUSAL(multinomial(Tensor::from<float>({1, -0.5f}, {2}), 1),
                 "multinomial: the weights in self must be finite and 0 or more, got -0.5");
  EXPECT_REFUSAL(multinomial(zeros({2, 3}), 1),
                 "multinomial: a row of self must not be all 0, for self (2, 3)");
  EXPECT_REFUSAL(multinomial(x, 0), "multinomial: num_samples must be 1 or more, got 0");
  EXPECT_REFUSAL(
      multinomial(x, 4),
      "multinomial: without replacement num_samples must be at most 3, the number of weights, "
      "got 4");
}
TEST(interpolate_by, says_which_factor_it_cannot_take) {
  const Tensor x = ones({1, 1, 2, 3});
  EXPECT_REFUSAL(interpolate_by(x, {1e300, 1}, "nearest"),
                 "upsample_nearest2d: scale_factors must lie in (1e-9, 1e9), got 1e+300");
  EXPECT_REFUSAL(interpolate_by(x, {1, NAN}, "bilinear"),
                 "upsample_bilinear2d: scale_factors must lie in (1e-9, 1e9), got nan");
}
TEST(linalg_norm, says_which_orders_it_has) {
  EXPECT_REFUSAL(linalg_norm(ones({2, 3}), 3.0),
                 "linalg_norm: over 2 dimensions ord must be 1, -1, 2, -2, inf or -inf, got 3");
  EXPECT_REFUSAL(
      linalg_norm(ones({2, 3, 4}), 1.0),
      "linalg_norm: with ord it must go over 1 or 2 dimensions, got 3 of self (2, 3, 4)");
}
TEST(arange, says_which_numbers_it_cannot_take) {
  EXPECT_REFUSAL(arange(5, 0, 1),
                 "arange.start_step: step leads away from end for start 5, end 0, step 1");
  EXPECT_REFUSAL(arange(0., 1e300, 1.),
                 "arange.start_step: more than 2^63 elements for start 0, end 1e+300, step 1");
  EXPECT_REFUSAL(
      arange(0., NAN, 1.),
      "arange.start_step: start, end and step must be finite for start 0, end nan, step 1");
}
TEST(max_pool, names_the_operator_that_was_called) {
  const Tensor x = ones({1, 1, 2, 3});
  EXPECT_REFUSAL(
      max_pool2d(x, 2, 2, 2),
      "max_pool2d: padding 2 is more than half of kernel_size 2 with dilation 1 for self (1, "
      "1, 2, 3)");
  EXPECT_REFUSAL(
      max_pool2d_with_indices(x, 2, 2, 2),
      "max_pool2d_with_indices: padding 2 is more than half of kernel_size 2 with dilation 1 "
      "for self (1, 1, 2, 3)");
}

TEST(resize_, refuses_negative_sizes) {
  Tensor x = ones({6});
  EXPECT_REFUSAL(resize_(x, {-1, 2}), "resize_: sizes must not be negative, got (-1, 2)");
}
TEST(copy_, is_named_where_sizes_do_not_broadcast) {
  const std::string text = refusal([] { zeros({2, 3}).copy_(ones({4})); });
  EXPECT_EQ(text.find("copy_: "), 0u) << text;
}
TEST(linear, wants_a_bias_of_the_dtype_of_its_product) {
  const auto with_bias = [](DType product, DType bias) {
    return refusal([&] {
      call<ops::linear>(Location::current(), ones({2, 3}, product), ones({4, 3}, product),
                        std::optional(zeros({4}, bias)));
    });
  };
  for (const std::string& text :
       {with_bias(DType::bf16, DType::f32), with_bias(DType::f32, DType::f64)})
    EXPECT_NE(text.find("linear: the summand's dtype differs from the product's"),
              std::string::npos)
        << text;
}
TEST(baddbmm, wants_a_summand_of_the_dtype_of_its_product) {
  for (const DType dtype : {DType::f64, DType::f16}) {
    const std::string text = refusal([&] {
      baddbmm(zeros({1, 2, 4}, dtype), ones({1, 2, 3}), ones({1, 3, 4}));
    });
    EXPECT_NE(text.find("baddbmm: the summand's dtype differs from the product's"),
              std::string::npos)
        << text;
  }
}
TEST(mvlgamma, bounds_its_terms) {
  EXPECT_REFUSAL(mvlgamma(ones({2}), 1 << 30),
                 "mvlgamma: p must lie in [1, 65536], got 1073741824");
}
TEST(gelu, names_the_approximation_that_it_was_given) {
  EXPECT_REFUSAL(gelu(ones({2, 3}), "cubic"),
                 "gelu: approximate must be none or tanh for self (2, 3), approximate \"cubic\"");
}
TEST(gather, names_the_dtype_that_it_was_given) {
  const std::string text = refusal([&] { gather(ones({2, 3}), 1, ones({2, 3})); });
  EXPECT_NE(text.find("index (2, 3) f32"), std::string::npos) << text;
}
TEST(embedding, has_no_sparse_gradient) {
  Tensor weight = ones({4, 2});
  weight.set_requires_grad();
  const Tensor rows =
      call<ops::embedding>(Location::current(), weight, integers({1, 2}), Dim(-1), false, true);
  EXPECT_REFUSAL(
      sum(rows).backward(),
      "embedding: sparse gradients are not supported: sparse must be false where the weight "
      "requires a gradient");
}
TEST(scaled_dot_product_attention, wants_heads_that_divide_those_of_query) {
  const auto attend = [](int64_t heads, int64_t kv_heads) {
    const Tensor q = ones({1, heads, 2, 4}), kv = ones({1, kv_heads, 2, 4});
    return refusal(
        [&] { scaled_dot_product_attention(q, kv, kv, {}, 0.0, false, std::nullopt, true); });
  };
  EXPECT_NE(attend(3, 2).find("of 3 heads only 2 can be served"), std::string::npos)
      << attend(3, 2);
  EXPECT_NE(attend(3, 0).find("key and value have 0 heads"), std::string::npos) << attend(3, 0);
}

}  // namespace
}  // namespace taper::eager
