// Attention as the table takes it, and what stays with the kernels.
#include <gmock/gmock.h>

#include <functional>

#include "delegated.h"

namespace taper::delegates::xnnpack {
namespace {

using testing::Contains, testing::HasSubstr;

/// Attention of `heads` heads behind a product, and a product behind the heads.
Tensor attend(const Tensor& x, const Tensor& weight, int64_t heads, bool is_causal) {
  const int64_t features = weight.size(1).value() / heads;
  const auto split = [&](const Tensor& t) {
    return transpose(reshape(t, {t.size(0), t.size(1), heads, features}), 1, 2);
  };
  const Tensor y = linear(x, weight);
  const Tensor attended =
      scaled_dot_product_attention(split(y), split(relu(y)), split(y + x), {}, 0.0, is_causal);
  return linear(reshape(transpose(attended, 1, 2), x.sizes()), weight);
}

TEST(xnnpack, takes_attention) {
  const Tensor weight = random_tensor({8, 8}, 100), x = random_tensor({2, 5, 8}, 101);
  expect_as_eager([&](const Tensor& t) { return attend(t, weight, 2, false); }, x);
  const auto alone = [&](const Tensor& t) {
    const Tensor q = linear(t, weight);
    return scaled_dot_product_attention(q, q, q, {}, 0.0, false, 0.25);
  };
  expect_as_eager(alone, random_tensor({2, 3, 5, 8}, 102));
  expect_as_eager(alone, random_tensor({3, 5, 8}, 102));
  const auto heads_alone = [&](const Tensor& t) {  // (positions, features)
    const Tensor q = transpose(reshape(linear(t, weight), {5, 2, 4}), 0, 1);
    return linear(reshape(transpose(scaled_dot_product_attention(q, q, q), 0, 1), {5, 8}), weight);
  };
  expect_as_eager(heads_alone, random_tensor({5, 8}, 103));
}

TEST(xnnpack, takes_attention_that_hides_later_keys) {
  const Tensor weight = random_tensor({8, 8}, 104), x = random_tensor({2, 5, 8}, 105);
  expect_as_eager([&](const Tensor& t) { return attend(t, weight, 2, true); }, x);
}

/// Attention of a product to itself, under a mask, and a product.
template <class Mask>
auto under(Mask mask, const Tensor& weight) {
  return [mask, weight](const Tensor& t) {
    const Tensor q = linear(t, weight);
    return linear(scaled_dot_product_attention(q, relu(q), q, mask(t)), weight);
  };
}

TEST(xnnpack, takes_attention_under_masks) {
  const Tensor weight = random_tensor({8, 8}, 106), x = random_tensor({2, 3, 5, 8}, 107);
  const auto hides_some = [](const Tensor& t) {  // (2, 1, 1, 5)
    return gt(transpose(slice(slice(t, 1, 0, 1), 3, 0, 1), 2, 3), 0.0);
  };
  // a query without any key gets zeros
  const auto hides_all_of_some = [](const Tensor& t) { return gt(slice(t, 3, 0, 1), 0.0); };
  for (int constant : {0, 1}) {
    SCOPED_TRACE(constant);
    const auto compare = [&](auto mask) {
      const Tensor known = mask(x);
      const auto given = [=](const Tensor& t) { return constant ? known : mask(t); };
      const auto attention = under(given, weight);
      Delegated program(attention, {2, 3, 5, 8}, false);
      EXPECT_EQ(program.delegates(), 1);
      EXPECT_EQ(program.report.methods[0].operators.contains("where.self"), !constant);
      Result<Module> module = program.load();
      ASSERT_TRUE(module.ok()) << program.why;
      expect_close(call(module.value(), x), attention(x).template to_vector<float>());
    };
    compare(hides_some);
    compare(hides_all_of_some);
  }
}

TEST(xnnpack, takes_attention_with_numbers_added_to_scores) {
  const Tensor weight = random_tensor({8, 8}, 108), x = random_tensor({2, 3, 5, 8}, 109);
  std::vector<float> numbers = random_tensor({5, 5}, 110, -3, 3).to_vector<float>();
  for (const float some : {-INFINITY, std::numeric_limits<float>::lowest()}) {
    numbers[3] = numbers[9] = some;
    for (size_t key = 0; key < 5; ++key) numbers[10 + key] = some;  // all keys of a query
    const Tensor mask = Tensor::from<float>(numbers, {5, 5});
    expect_as_eager(under([&](const Tensor&) { return mask; }, weight), x);
    // a mask for each head, in part computed
    expect_as_eager(under([&](const Tensor& t) { return mask + slice(t, 3, 0, 1); }, weight), x);
  }
}

TEST(xnnpack, takes_attention_whose_hidden_keys_stand_beside_the_most_negative_number) {
  const Tensor weight = random_tensor({8, 8}, 115), x = random_tensor({2, 3, 5, 8}, 116);
  std::vector<float> numbers(25, std::numeric_limits<float>::lowest());
  for (const size_t hidden : {0, 1, 7, 10, 11, 12, 13, 14, 19}) numbers[hidden] = -INFINITY;
  const Tensor mask = Tensor::from<float>(numbers, {5, 5});
  expect_as_eager(under([&](const Tensor&) { return mask; }, weight), x);
}

/// Two products go into delegates, and the mask of the attention between them stays boolean.
void expect_boolean_mask_left(const std::function<Tensor(const Tensor&)>& attention,
                              const Tensor& x) {
  Delegated program(attention, {2, 3, 5, 8}, false);
  EXPECT_EQ(program.delegates(), 2);
  EXPECT_EQ(program.report.methods[0].operators.count("where.self"), 0);
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  expect_close(call(module.value(), x), attention(x).to_vector<float>());
}

TEST(xnnpack, leaves_masks_of_attention_in_other_dtypes) {
  const Tensor weight = random_tensor({8, 8}, 117), x = random_tensor({2, 3, 5, 8}, 118);
  const auto attention = [&](const Tensor& t) {
    const Tensor y = linear(t, weight), q = y.to(DType::f64);
    return linear(scaled_dot_product_attention(q, q, q, gt(slice(transpose(y, 2, 3), 2, 0, 1), 0.0))
                      .to(DType::f32),
                  weight);
  };
  expect_boolean_mask_left(attention, x);
}

TEST(xnnpack, takes_attention_without_products) {
  expect_as_eager([](const Tensor& t) { return scaled_dot_product_attention(t, t, t); },
                  random_tensor({2, 3, 5, 8}, 134));
}

TEST(xnnpack, takes_attention_with_other_numbers_of_queries_and_keys) {
  const Tensor weight = random_tensor({8, 8}, 119);
  for (const bool shares : {false, true}) {
    const auto attention = [&](const Tensor& t) {
      const Tensor q = linear(t, weight), k = slice(q, -2, 0, 4);
      return linear(scaled_dot_product_attention(q, k, relu(k), {}, 0.0, false, {}, shares),
                    weight);
    };
    expect_as_eager(attention, random_tensor({3, 5, 8}, 120));
    expect_as_eager(attention, random_tensor({2, 3, 5, 8}, 121));
  }
}

TEST(xnnpack, takes_attention_whose_heads_share_keys) {
  const Tensor weight = random_tensor({8, 8}, 111);
  for (const bool is_causal : {false, true}) {
    const auto attention = [&](const Tensor& t) {
      const Tensor q = linear(t, weight), k = slice(q, 1, 0, 2);
      return linear(scaled_dot_product_attention(q, k, relu(k), {}, 0.0, is_causal, {}, true),
                    weight);
    };
    expect_as_eager(attention, random_tensor({2, 6, 5, 8}, 112));
  }
}

TEST(xnnpack, takes_attention_of_one_head_of_keys_for_all_queries) {
  const Tensor weight = random_tensor({8, 8}, 122);
  const auto attention = [&](const Tensor& t) {
    const Tensor q = linear(t, weight), k = slice(q, -3, 0, 1);
    return linear(scaled_dot_product_attention(q, k, relu(k)), weight);
  };
  expect_as_eager(attention, random_tensor({2, 6, 5, 8}, 123));
  expect_as_eager(attention, random_tensor({6, 5, 8}, 124));
}

TEST(xnnpack, takes_attention_whose_heads_share_keys_under_masks) {
  const Tensor weight = random_tensor({8, 8}, 132), x = random_tensor({2, 6, 5, 8}, 133);
  const auto compare = [&](auto mask, int left_if_symbolic) {
    const auto attention = [&](const Tensor& t) {
      const Tensor q = linear(t, weight), k = slice(q, 1, 0, 2);
      return linear(scaled_dot_product_attention(q, k, relu(k), mask(t), 0.0, false, {}, true),
                    weight);
    };
    const Dim length = Dim::symbol("length", 1, 9);
    for (const Dim positions : {Dim(5), length}) {
      Delegated program(attention, {2, 6, positions, 8}, false);
      const auto& operators = program.report.methods[0].operators;
      const auto left = operators.count("scaled_dot_product_attention");
      EXPECT_EQ(left, positions.is_constant() ? 0 : left_if_symbolic)
          << testing::PrintToString(program.report.notes);
      Result<Module> module = program.load();
      ASSERT_TRUE(module.ok()) << program.why;
      expect_close(call(module.value(), x), attention(x).template to_vector<float>());
    }
  };
  const auto scores = [](const Tensor& t) { return matmul(t, transpose(t, -1, -2)); };
  compare([](const Tensor&) { return Tensor(); }, 0);
  // one for all heads: (2, 1, 5, 5), and bool, and without the queries
  compare([&](const Tensor& t) { return scores(slice(t, 1, 0, 1)); }, 0);
  compare([&](const Tensor& t) { return gt(scores(slice(t, 1, 0, 1)), 0.0); }, 0);
  compare([&](const Tensor& t) { return slice(scores(slice(t, 1, 0, 1)), 2, 0, 1); }, 0);
  // one for each head, which splits the scores
  compare([&](const Tensor& t) { return scores(t); }, 1);
}

TEST(xnnpack, takes_attention_in_windows) {
  const Tensor weight = random_tensor({8, 8}, 125);
  for (const int64_t heads : {1, 2, 4}) {
    const auto attention = [&](const Tensor& t) {  // (batch, windows, heads, positions, features)
      const Tensor q = linear(t, weight), k = slice(q, 2, 0, heads);
      const Tensor y = scaled_dot_product_attention(q, k, relu(k), {}, 0.0, false, {}, heads == 2);
      return linear(heads == 4 ? reshape(transpose(y, 2, 3), {2, 3, 5, 32}) : y,
                    heads == 4 ? random_tensor({4, 32}, 126) : weight);
    };
    expect_as_eager(attention, random_tensor({2, 3, 4, 5, 8}, 127));
  }
}

TEST(xnnpack, leaves_attention_whose_query_broadcasts_to_the_heads_of_keys) {
  const Tensor weight = random_tensor({8, 8}, 128), x = random_tensor({2, 4, 5, 8}, 129);
  const auto attention = [&](const Tensor& t) {
    const Tensor k = linear(t, weight);
    return linear(scaled_dot_product_attention(slice(k, 1, 0, 1), k, relu(k)), weight);
  };
  Delegated program(attention, {2, 4, 5, 8}, false);
  EXPECT_THAT(program.report.notes, Contains(HasSubstr("query and key have other heads")));
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  expect_close(call(module.value(), x), attention(x).to_vector<float>());
}

TEST(xnnpack, leaves_attention_that_hides_a_symbolic_number_of_keys) {
  const Tensor weight = random_tensor({8, 8}, 103);
  Delegated program([&](const Tensor& t) { return attend(t, weight, 2, true); },
                    {1, Dim::symbol("n", 1, 5), 8}, false);
  EXPECT_EQ(program.delegates(), 2);
}

TEST(xnnpack, leaves_attention_whose_value_broadcasts_to_the_key) {
  const Tensor weight = random_tensor({8, 8}, 113), x = random_tensor({2, 4, 5, 8}, 114);
  const auto compare = [&](auto attention) {
    const auto between = [&](const Tensor& t) {
      return linear(attention(linear(t, weight)), weight);
    };
    Delegated program(between, {2, 4, 5, 8}, false);
    EXPECT_EQ(program.delegates(), 2);
    Result<Module> module = program.load();
    ASSERT_TRUE(module.ok()) << program.why;
    expect_close(call(module.value(), x), between(x).template to_vector<float>());
  };
  for (const int d : {0, 1})
    compare([d](const Tensor& q) {
      return scaled_dot_product_attention(q, relu(q), slice(q, d, 0, 1));
    });
  for (const int64_t heads : {2, 4})
    compare([heads](const Tensor& q) {
      return scaled_dot_product_attention(q, slice(q, 1, 0, heads), slice(q, 1, 0, 1), {}, 0.0,
                                          false, {}, true);
    });
}

}  // namespace
}  // namespace taper::delegates::xnnpack
