#include <cmath>
#include <functional>

#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
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

/// What is added to the score of (head, query, key).
using AddedMask = std::function<double(index_t, index_t, index_t)>;

/// In double.
std::vector<double> reference(const Attention& a, const AddedMask& mask) {
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
  for (Attention a : sizes)
    for (const bool causal : {false, true}) {
      a.is_causal = causal;
      const std::vector<double> want = reference(a, nothing);
      for (const Kernel* kernel : kernels()) expect_close(attend(*kernel, a), want, kernel->name);
    }
}

TEST(attention, adds_a_mask_and_hides_by_one) {
  for (const Attention& a : sizes) {
    const Array added = Array::random({a.queries, a.keys}, 4);
    const std::vector<double> with_added =
        reference(a, [&](index_t, index_t i, index_t j) { return added[i * a.keys + j]; });

    // one row for all queries; the first two keys are hidden
    std::vector<uint8_t> shown(static_cast<size_t>(a.keys) + 64, 1);
    shown[0] = shown[1] = 0;
    const Shape shape = Shape::dense(std::vector<index_t>{1, a.keys});
    const TensorRef row{shown.data(), &shape, DType::boolean};
    const std::vector<double> with_hidden =
        reference(a, [](index_t, index_t, index_t j) { return j < 2 ? -INFINITY : 0.0; });

    for (const Kernel* kernel : kernels()) {
      expect_close(attend(*kernel, a, slot(added)), with_added, kernel->name);
      expect_close(attend(*kernel, a, slot(&row)), with_hidden, kernel->name);
    }
  }
}

/// Calls body(name, is_causal, mask, what it adds) for masks of every kind.
template <class Body>
void for_each_mask(const Attention& a, const Body& body) {
  body("none", false, absent(), nothing);
  body("causal", true, absent(), nothing);
  const Array added = Array::random({a.queries, a.keys}, 4),
              of_heads = Array::random({a.heads, 1, a.keys}, 5);
  body("added", false, slot(added),
       [&](index_t, index_t i, index_t j) { return added[i * a.keys + j]; });
  body("added to the rows of a head", false, slot(of_heads),
       [&](index_t h, index_t, index_t j) { return of_heads[h * a.keys + j]; });
  Shape columns = Shape::dense(std::vector<index_t>{a.queries, a.keys});
  const Shape rows = columns;
  columns.strides[0] = 1, columns.strides[1] = a.queries;
  const TensorRef turned{const_cast<float*>(added.data()), &columns, DType::f32};
  body("added, column by column", false, slot(&turned),
       [&](index_t, index_t i, index_t j) { return added[j * a.queries + i]; });
  std::vector<uint8_t> shown(static_cast<size_t>(a.queries * a.keys) + 64);
  for (size_t i = 0; i < shown.size(); ++i)
    shown[i] = (static_cast<uint32_t>(i) * 2654435761u >> 16) % 3 != 0;
  const auto hidden = [&](index_t at) {
    return shown[static_cast<size_t>(at)] != 0 ? 0.0 : -INFINITY;
  };
  const TensorRef hides{shown.data(), &rows, DType::boolean},
      hides_turned{shown.data(), &columns, DType::boolean};
  body("hides", false, slot(&hides),
       [&](index_t, index_t i, index_t j) { return hidden(i * a.keys + j); });
  body("hides, column by column", false, slot(&hides_turned),
       [&](index_t, index_t i, index_t j) { return hidden(j * a.queries + i); });
}

/// Beyond one block of queries (128 or 256) and of keys (128 or 512).
const std::vector<Attention> several_blocks = {{1, 530, 530, 2, 1}, {2, 130, 1025, 2, 1, 2}};

TEST(attention, masks_every_block_of_queries_and_keys) {
  for (Attention a : several_blocks)
    for_each_mask(a, [&](const char* name, bool is_causal, const Slot& mask, const auto& added) {
      SCOPED_TRACE(name);
      a.is_causal = is_causal;
      const std::vector<double> want = reference(a, added);
      for (const Kernel* kernel : kernels())
        expect_close(attend(*kernel, a, mask), want, kernel->name);
    });
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

/// (heads, queries, values) as (queries, heads, values).
std::vector<float> with_heads_last(const Attention& a, const Array& y) {
  std::vector<float> turned;
  for (index_t i = 0; i < a.queries; ++i)
    for (index_t h = 0; h < a.heads; ++h)
      for (index_t f = 0; f < a.values; ++f)
        turned.push_back(y[(h * a.queries + i) * a.values + f]);
  return turned;
}

TEST(attention_with_heads_last, has_the_bits_of_attention) {
  const ThreadPool pool(3);
  std::vector<const Kernel*> twins = kernels_of(ops::taper_attention);
  twins.push_back(&portable::taper_attention_f32);
  std::vector<Attention> all = sizes;
  all.insert(all.end(), several_blocks.begin(), several_blocks.end());
  for (const Attention& a : all)
    for_each_mask(a, [&](const char* name, bool is_causal, const Slot& mask, const auto&) {
      SCOPED_TRACE(name);
      Attention with = a;
      with.is_causal = is_causal;
      Slot no_scale = slot(0.0);
      no_scale.present = false;
      for (size_t k = 0; k < twins.size(); ++k) {
        const Array q = a.query(), key = a.key(), v = a.value();
        Array out({a.queries, a.heads, a.values}, 77);
        call(*twins[k],
             {slot(q), slot(key), slot(v), mask, slot(is_causal), no_scale, slot(a.sharing > 1),
              slot(out)},
             pool.threads());
        EXPECT_EQ(out.values(), with_heads_last(a, attend(*kernels()[k], with, mask)))
            << twins[k]->name;
      }
    });
}

// ---- with the logarithms of the sums, and backward ----

/// What the backward pass gives, and what it reads of the forward pass.
struct Gradients {
  Array out, logsumexp, query, key, value;
};

Array grad_of(const Attention& a) { return Array::random({a.heads, a.queries, a.values}, 5); }

/// By the kernels of a library at a level.
Gradients differentiate(const Kernel& forward, const Kernel& backward, const Attention& a,
                        const Slot& mask = absent(), const Threads* threads = nullptr) {
  const Array q = a.query(), k = a.key(), v = a.value(), dy = grad_of(a);
  const index_t shared = a.heads / a.sharing;
  Gradients g{Array({a.heads, a.queries, a.values}, 77), Array({a.heads, a.queries}, 77),
              Array({a.heads, a.queries, a.features}, 77), Array({shared, a.keys, a.features}, 77),
              Array({shared, a.keys, a.values}, 77)};
  Slot no_scale = slot(0.0);
  no_scale.present = false;
  call(forward,
       {slot(q), slot(k), slot(v), slot(0.0), slot(a.is_causal), mask, no_scale, slot(g.out),
        slot(g.logsumexp)},
       threads);
  call(backward,
       {slot(dy), slot(q), slot(k), slot(v), slot(g.out), slot(g.logsumexp), slot(0.0),
        slot(a.is_causal), mask, no_scale, slot(g.query), slot(g.key), slot(g.value)},
       threads);
  return g;
}

/// Both kernels of every level, and the portable library's.
std::vector<std::pair<const Kernel*, const Kernel*>> flash_kernels() {
  std::vector<std::pair<const Kernel*, const Kernel*>> all;
  const auto backward = kernels_of(ops::_scaled_dot_product_flash_attention_for_cpu_backward);
  for (const Kernel* kernel : kernels_of(ops::_scaled_dot_product_flash_attention_for_cpu))
    for (const Kernel* other : backward)
      if (other->needs == kernel->needs) all.push_back({kernel, other});
  all.push_back({&portable::_scaled_dot_product_flash_attention_for_cpu_f32,
                 &portable::_scaled_dot_product_flash_attention_for_cpu_backward_f32});
  return all;
}

/// In double, of weights that are written out.
struct WantedGradients {
  std::vector<double> logsumexp, query, key, value;
};
WantedGradients reference_gradients(const Attention& a, const AddedMask& mask) {
  const Array q = a.query(), k = a.key(), v = a.value(), dy = grad_of(a);
  const double scale = a.features > 0 ? 1 / std::sqrt(double(a.features)) : 1;
  const auto at = [](index_t i) { return static_cast<size_t>(i); };
  std::vector<double> sums(at(a.heads * a.queries)), dq(at(q.numel())), dk(at(k.numel())),
      dv(at(v.numel()));
  for (index_t h = 0; h < a.heads; ++h)
    for (index_t i = 0; i < a.queries; ++i) {
      const index_t row = h * a.queries + i, keys = h / a.sharing * a.keys;
      std::vector<double> p(at(a.keys)), slope(at(a.keys));
      double sum = 0, d = 0;
      for (index_t j = 0; j < a.keys; ++j) {
        double score = 0;
        for (index_t f = 0; f < a.features; ++f)
          score += double(q[row * a.features + f]) * k[(keys + j) * a.features + f];
        score = score * scale + mask(h, i, j);
        if (a.is_causal && j > i) score = -INFINITY;
        sum += p[at(j)] = std::exp(score);
        for (index_t f = 0; f < a.values; ++f)
          slope[at(j)] += double(dy[row * a.values + f]) * v[(keys + j) * a.values + f];
      }
      sums[at(row)] = std::log(sum);
      for (index_t j = 0; j < a.keys && sum > 0; ++j) d += (p[at(j)] /= sum) * slope[at(j)];
      for (index_t j = 0; j < a.keys && sum > 0; ++j) {
        const double ds = p[at(j)] * (slope[at(j)] - d) * scale;
        for (index_t f = 0; f < a.features; ++f) {
          dq[at(row * a.features + f)] += ds * k[(keys + j) * a.features + f];
          dk[at((keys + j) * a.features + f)] += ds * q[row * a.features + f];
        }
        for (index_t f = 0; f < a.values; ++f)
          dv[at((keys + j) * a.values + f)] += p[at(j)] * dy[row * a.values + f];
      }
    }
  return {sums, dq, dk, dv};
}
void expect_gradients(const Gradients& got, const WantedGradients& want, const char* name) {
  for (index_t i = 0; i < got.logsumexp.numel(); ++i) {
    const double sum = want.logsumexp[static_cast<size_t>(i)];
    if (std::isinf(sum))
      EXPECT_EQ(got.logsumexp[i], -INFINITY);
    else
      ASSERT_NEAR(got.logsumexp[i], sum, 1e-5) << name;
  }
  const auto near = [&](const Array& gradient, const std::vector<double>& want) {
    expect_near(gradient, want, std::vector<double>(want.size(), 10), name);
  };
  near(got.query, want.query), near(got.key, want.key), near(got.value, want.value);
}

TEST(attention_backward, is_the_derivative_at_every_level_and_size) {
  for (Attention a : sizes)
    for (const bool causal : {false, true}) {
      a.is_causal = causal;
      const WantedGradients want = reference_gradients(a, nothing);
      const std::vector<double> out = reference(a, nothing);
      for (const auto& [forward, backward] : flash_kernels()) {
        const Gradients got = differentiate(*forward, *backward, a);
        expect_gradients(got, want, backward->name);
        expect_close(got.out, out, forward->name);
      }
    }
}

TEST(attention_backward, knows_masks_that_add_and_masks_that_hide) {
  for (const Attention& a : sizes) {
    const Array added = Array::random({a.heads, 1, a.keys}, 4);
    const WantedGradients with_added = reference_gradients(
        a, [&](index_t h, index_t, index_t j) { return added[h * a.keys + j]; });

    // every third query sees nothing, the others every other key
    std::vector<uint8_t> shown(static_cast<size_t>(a.queries * a.keys) + 64, 0);
    const auto sees = [](index_t i, index_t j) { return i % 3 != 0 && j % 2 == 0; };
    for (index_t i = 0; i < a.queries; ++i)
      for (index_t j = 0; j < a.keys; ++j) shown[static_cast<size_t>(i * a.keys + j)] = sees(i, j);
    const Shape shape = Shape::dense(std::vector<index_t>{a.queries, a.keys});
    const TensorRef mask{shown.data(), &shape, DType::boolean};
    const WantedGradients with_hidden = reference_gradients(
        a, [&](index_t, index_t i, index_t j) { return sees(i, j) ? 0.0 : -INFINITY; });

    for (const auto& [forward, backward] : flash_kernels()) {
      expect_gradients(differentiate(*forward, *backward, a, slot(added)), with_added,
                       backward->name);
      expect_gradients(differentiate(*forward, *backward, a, slot(&mask)), with_hidden,
                       backward->name);
    }
  }
}

TEST(attention_backward, masks_every_block_of_queries_and_keys) {
  for (Attention a : several_blocks)
    for_each_mask(a, [&](const char* name, bool is_causal, const Slot& mask, const auto& added) {
      SCOPED_TRACE(name);
      a.is_causal = is_causal;
      const WantedGradients want = reference_gradients(a, added);
      for (const auto& [forward, backward] : flash_kernels())
        expect_gradients(differentiate(*forward, *backward, a, mask), want, backward->name);
    });
}

TEST(attention_backward, has_the_same_bits_with_any_threads) {
  const ThreadPool pool(3);
  for (const auto& [forward, backward] : flash_kernels())
    for (const index_t heads : {1, 2, 4, 6})  // fewer groups than threads, and uneven shares
      for (const bool causal : {false, true}) {
        Attention a{heads, 270, 1030, 20, 24};
        a.is_causal = causal, a.sharing = heads % 4 == 0 ? 2 : 1;
        const Gradients one = differentiate(*forward, *backward, a),
                        all = differentiate(*forward, *backward, a, absent(), pool.threads());
        EXPECT_EQ(one.query.values(), all.query.values()) << backward->name;
        EXPECT_EQ(one.key.values(), all.key.values()) << backward->name;
        EXPECT_EQ(one.value.values(), all.value.values()) << backward->name;
      }
}

}  // namespace
}  // namespace taper::tests
