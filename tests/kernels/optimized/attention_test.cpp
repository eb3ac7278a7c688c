#include <cmath>
#include <functional>

#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/pthreadpool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

/// A call: query (heads, queries, features), key and value with `heads / sharing` heads.
struct Attention {
  index_t heads = 2, queries = 3, keys = 5, features = 4, values = 4, sharing = 1;
  bool is_causal = false;

  Array query() const { return Array::random({heads, queries, features}, 1); }
  Array key() const { return Array::random({heads / sharing, keys, features}, 2); }
  Array value() const { return Array::random({heads / sharing, keys, values}, 3); }
};

/// In double; `mask(head, query, key)` is added to a score.
std::vector<double> reference(const Attention& a,
                              const std::function<double(index_t, index_t, index_t)>& mask) {
  const Array q = a.query(), k = a.key(), v = a.value();
  std::vector<double> y(static_cast<size_t>(a.heads * a.queries * a.values));
  for (index_t h = 0; h < a.heads; ++h)
    for (index_t i = 0; i < a.queries; ++i) {
      const index_t shared = h / a.sharing;
      std::vector<double> weights(static_cast<size_t>(a.keys));
      double sum = 0;
      for (index_t j = 0; j < a.keys; ++j) {
        double score = 0;
        for (index_t f = 0; f < a.features; ++f)
          score += double(q[(h * a.queries + i) * a.features + f]) *
                   k[(shared * a.keys + j) * a.features + f];
        score = score / std::sqrt(double(a.features)) + mask(h, i, j);
        if (a.is_causal && j > i) score = -INFINITY;
        sum += weights[static_cast<size_t>(j)] = std::exp(score);
      }
      for (index_t j = 0; j < a.keys && sum > 0; ++j)
        for (index_t f = 0; f < a.values; ++f)
          y[static_cast<size_t>((h * a.queries + i) * a.values + f)] +=
              weights[static_cast<size_t>(j)] / sum * v[(shared * a.keys + j) * a.values + f];
    }
  return y;
}

Array attend(const Kernel& kernel, const Attention& a, const Array& q, const Array& k,
             const Array& v, const Slot& mask, const Threads* threads = nullptr) {
  Array out({a.heads, a.queries, a.values}, 77);
  Slot no_scale = slot(0.0);
  no_scale.present = false;
  call(kernel,
       {slot(q), slot(k), slot(v), mask, slot(0.0), slot(a.is_causal), no_scale,
        slot(a.sharing > 1), slot(out)},
       threads);
  return out;
}
Array attend(const Kernel& kernel, const Attention& a, const Slot& mask = absent(),
             const Threads* threads = nullptr) {
  return attend(kernel, a, a.query(), a.key(), a.value(), mask, threads);
}

void expect_close(const Array& got, const std::vector<double>& want, const char* name) {
  expect_near(got, want, std::vector<double>(want.size(), 1), name);
}
/// Every level, and the portable library's.
std::vector<const Kernel*> kernels() {
  std::vector<const Kernel*> all = kernels_of(ops::scaled_dot_product_attention);
  all.push_back(&portable::scaled_dot_product_attention_f32);
  return all;
}
double nothing(index_t, index_t, index_t) { return 0; }

const std::vector<Attention> sizes = {
    {1, 1, 1, 1, 1},        {2, 3, 5, 4, 7},     {3, 17, 16, 8, 1},   {1, 129, 33, 64, 64},
    {2, 5, 1100, 24, 40},   {1, 300, 700, 5, 3}, {4, 1, 600, 64, 64}, {2, 4, 6, 300, 5},
    {8, 1, 513, 16, 16, 4}, {6, 9, 40, 8, 8, 3}, {0, 3, 4, 4, 4},     {2, 0, 4, 4, 4}};

TEST(attention, is_the_formula_at_every_level_and_size) {
  for (const Kernel* kernel : kernels())
    for (Attention a : sizes)
      for (const bool causal : {false, true}) {
        a.is_causal = causal;
        expect_close(attend(*kernel, a), reference(a, nothing), kernel->name);
      }
}

TEST(attention, adds_a_mask_and_hides_by_one) {
  for (const Kernel* kernel : kernels())
    for (const Attention& a : sizes) {
      const Array added = Array::random({a.queries, a.keys}, 4);
      expect_close(
          attend(*kernel, a, slot(added)),
          reference(a, [&](index_t, index_t i, index_t j) { return added[i * a.keys + j]; }),
          kernel->name);

      // one row for all queries; the first two keys are hidden
      std::vector<uint8_t> shown(static_cast<size_t>(a.keys) + 64, 1);
      shown[0] = shown[1] = 0;
      const Shape shape = Shape::dense(std::vector<index_t>{1, a.keys});
      const TensorRef row{shown.data(), &shape, DType::boolean};
      expect_close(
          attend(*kernel, a, slot(&row)),
          reference(a, [](index_t, index_t, index_t j) { return j < 2 ? -INFINITY : 0.0; }),
          kernel->name);
    }
}

TEST(attention, to_no_key_gives_zeros) {
  for (const Kernel* kernel : kernels()) {
    for (const float y : attend(*kernel, {2, 3, 0, 4, 4}).values()) EXPECT_EQ(y, 0);
    // all of the first block of keys is hidden, for one query all of the second, too
    const Attention a{1, 2, 600, 4, 4};
    Array mask({2, 600}, -INFINITY);
    mask[600 + 599] = 0;
    const Array y = attend(*kernel, a, slot(mask)), v = a.value();
    for (index_t f = 0; f < 4; ++f) {
      EXPECT_EQ(y[f], 0);
      EXPECT_EQ(y[4 + f], v[599 * 4 + f]);
    }
  }
}

TEST(attention, has_the_same_bits_for_a_query_alone_with_any_threads_and_strides) {
  const ThreadPool pool(3);
  for (const Kernel* kernel : kernels()) {
    const Attention a{3, 270, 530, 20, 24};
    const Array whole = attend(*kernel, a);
    EXPECT_EQ(attend(*kernel, a, absent(), pool.threads()).values(), whole.values());

    // (queries, heads, features) in memory
    const Array q = a.query();
    Array turned({a.queries, a.heads, a.features});
    for (index_t h = 0; h < a.heads; ++h)
      for (index_t i = 0; i < a.queries; ++i)
        for (index_t f = 0; f < a.features; ++f)
          turned[(i * a.heads + h) * a.features + f] = q[(h * a.queries + i) * a.features + f];
    turned.shape().sizes[0] = a.heads, turned.shape().sizes[1] = a.queries;
    turned.shape().strides[0] = a.features, turned.shape().strides[1] = a.heads * a.features;
    EXPECT_EQ(attend(*kernel, a, turned, a.key(), a.value(), absent()).values(), whole.values());

    Attention one = a;
    one.heads = one.queries = 1;
    Array last({1, 1, a.features}), keys({1, a.keys, a.features}), values({1, a.keys, a.values});
    const index_t head = 2, row = 269;
    for (index_t f = 0; f < a.features; ++f) last[f] = q[(head * a.queries + row) * a.features + f];
    const Array all_keys = a.key(), all_values = a.value();
    for (index_t i = 0; i < keys.numel(); ++i) keys[i] = all_keys[head * keys.numel() + i];
    for (index_t i = 0; i < values.numel(); ++i) values[i] = all_values[head * values.numel() + i];
    const Array alone = attend(*kernel, one, last, keys, values, absent());
    for (index_t f = 0; f < a.values; ++f)
      EXPECT_EQ(alone[f], whole[(head * a.queries + row) * a.values + f]);
  }
}

}  // namespace
}  // namespace taper::tests
