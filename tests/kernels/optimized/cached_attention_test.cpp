// Attention over a cache, portable and at every level, against the formula in double.
#include <cmath>

#include "taper/kernels/portable/portable.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"

namespace taper::tests {
namespace {

/// The records for caches of f32.
std::vector<const Kernel*> over_f32(const Operator& op) {
  std::vector<const Kernel*> all = kernels_of(op);
  std::erase_if(all, [](const Kernel* k) { return k->expected[1].dtypes != one(DType::f32); });
  return all;
}

std::vector<const Kernel*> kernels() {
  std::vector<const Kernel*> all = over_f32(ops::taper_attention_cached);
  all.push_back(&portable::taper_attention_cached_f32);
  return all;
}

/// i64 (batch).
struct Starts {
  explicit Starts(std::vector<int64_t> starts) : values(std::move(starts)) {
    values.resize(values.size() + 8);
    shape = Shape::dense(std::vector<index_t>{static_cast<index_t>(values.size()) - 8});
    ref = {values.data(), &shape, DType::i64};
  }
  std::vector<int64_t> values;
  Shape shape;
  TensorRef ref;
};

struct Case {
  index_t batch = 1, heads = 4, own = 2, queries = 1, capacity = 16, features = 8, values = 8;
  std::vector<int64_t> start = {0};
  int64_t window = 0;
  double softcap = 0;
  bool sinks = false, slopes = false;
  double scale = 0.3;

  Array query() const { return Array::random({batch, heads, queries, features}, 1); }
  /// What lies behind the last position is NaN: nobody may read it.
  Array cache(index_t width, uint32_t seed) const {
    Array a = Array::random({batch, own, capacity, width}, seed);
    for (index_t row = 0; row < batch * own * capacity; ++row)
      if (row % capacity >= start[static_cast<size_t>(row / capacity / own)] + queries)
        for (index_t f = 0; f < width; ++f) a[row * width + f] = NAN;
    return a;
  }
  Array key() const { return cache(features, 2); }
  Array value() const { return cache(values, 3); }
  Array by_head(uint32_t seed) const { return Array::random({heads}, seed); }
};

Array attend(const Kernel& kernel, const Case& c, const Array& v,
             const Threads* threads = nullptr) {
  Array y({c.batch, c.queries, c.heads, c.values}, 77);
  const Array q = c.query(), k = c.key(), sinks = c.by_head(4), slopes = c.by_head(5);
  const Starts start(c.start);
  call(kernel,
       {slot(q), slot(k), slot(v), slot(&start.ref), slot(c.scale), slot(c.window), slot(c.softcap),
        c.sinks ? slot(sinks) : absent(), c.slopes ? slot(slopes) : absent(), slot(y)},
       threads);
  return y;
}

Array attend(const Kernel& kernel, const Case& c, const Threads* threads = nullptr) {
  return attend(kernel, c, c.value(), threads);
}

std::vector<double> formula(const Case& c) {
  const Array q = c.query(), k = c.key(), v = c.value(), sinks = c.by_head(4),
              slopes = c.by_head(5);
  std::vector<double> y;
  for (index_t b = 0; b < c.batch; ++b)
    for (index_t i = 0; i < c.queries; ++i)
      for (index_t h = 0; h < c.heads; ++h) {
        const index_t group = b * c.own + h / (c.heads / c.own),
                      position = c.start[static_cast<size_t>(b)] + i;
        double sum = c.sinks ? std::exp(double{sinks[h]}) : 0;
        std::vector<double> total(static_cast<size_t>(c.values));
        for (index_t j = 0; j <= position; ++j) {
          if (c.window > 0 && position - j >= c.window) continue;
          double score = 0;
          for (index_t f = 0; f < c.features; ++f)
            score += double{q[((b * c.heads + h) * c.queries + i) * c.features + f]} *
                     double{k[(group * c.capacity + j) * c.features + f]};
          score *= c.scale;
          if (c.softcap > 0) score = c.softcap * std::tanh(score / c.softcap);
          if (c.slopes) score += double{slopes[h]} * static_cast<double>(j - position);
          const double weight = std::exp(score);
          sum += weight;
          for (index_t f = 0; f < c.values; ++f)
            total[static_cast<size_t>(f)] +=
                weight * double{v[(group * c.capacity + j) * c.values + f]};
        }
        for (const double t : total) y.push_back(t / sum);
      }
  return y;
}

std::vector<Case> cases() {
  std::vector<Case> list = {
      {},
      {.start = {15}},
      {.queries = 16},
      {.queries = 5, .start = {7}},
      {.batch = 3, .queries = 4, .start = {0, 12, 5}},
      {.heads = 6, .own = 1, .features = 13, .values = 5, .start = {9}},
      {.heads = 3, .own = 3, .queries = 2, .start = {3}},
      {.heads = 150, .own = 1, .capacity = 90, .features = 4, .values = 3, .start = {80}},
      {.queries = 0, .start = {2}},
      {.batch = 0, .start = {}},
      {.queries = 150, .capacity = 1300, .start = {1100}},
      {.capacity = 1300, .features = 64, .values = 64, .start = {1299}},
  };
  const size_t plain = list.size();
  for (size_t i = 0; i < plain; ++i) {
    Case c = list[i];
    c.window = 3, list.push_back(c);
    c.window = 700, list.push_back(c);
    c.softcap = 0.5, list.push_back(c);
    c.sinks = true, list.push_back(c);
    c.slopes = true, list.push_back(c);
  }
  return list;
}

TEST(cached_attention, is_the_formula) {
  for (const Case& c : cases())
    for (const Kernel* kernel : kernels()) {
      const std::vector<float> got = attend(*kernel, c).values();
      const std::vector<double> want = formula(c);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(double{got[i]}, want[i], c.slopes ? 1e-4 : 2e-5)
            << kernel->name << ", " << c.queries << " queries, window " << c.window;
    }
}

TEST(cached_attention, does_not_depend_on_threads) {
  const ThreadPool pool(3);
  for (const Case& c : cases())
    for (const Kernel* kernel : kernels())
      EXPECT_EQ(attend(*kernel, c, pool.threads()).values(), attend(*kernel, c).values());
}

/// The result of query `i` alone, out of a call with all queries of the case.
std::vector<float> alone(const Kernel& kernel, const Case& c, index_t i) {
  const Array q = c.query(), k = c.key(), v = c.value(), sinks = c.by_head(4),
              slopes = c.by_head(5);
  Array one({1, c.heads, 1, c.features});
  for (index_t h = 0; h < c.heads; ++h)
    for (index_t f = 0; f < c.features; ++f)
      one[h * c.features + f] = q[(h * c.queries + i) * c.features + f];
  Array y({1, 1, c.heads, c.values});
  const Starts start({c.start[0] + i});
  call(kernel, {slot(one), slot(k), slot(v), slot(&start.ref), slot(c.scale), slot(c.window),
                slot(c.softcap), c.sinks ? slot(sinks) : absent(),
                c.slopes ? slot(slopes) : absent(), slot(y)});
  return y.values();
}

TEST(cached_attention, gives_a_query_the_same_bits_alone_and_in_company) {
  for (const Case& c : cases()) {
    if (c.batch != 1 || c.queries == 0) continue;
    for (const Kernel* kernel : kernels()) {
      const std::vector<float> together = attend(*kernel, c).values();
      const index_t row = c.heads * c.values;
      for (const index_t i : {index_t{0}, c.queries / 2, c.queries - 1})
        EXPECT_EQ(alone(*kernel, c, i),
                  std::vector<float>(together.begin() + i * row, together.begin() + (i + 1) * row))
            << kernel->name << ", query " << i << " of " << c.queries << ", window " << c.window;
    }
  }
}

/// A cache with more rows than the batch, whose other rows are NaN: nobody may read them.
Array among_others(const Array& cache, const std::vector<int64_t>& batch, index_t rows) {
  Array all({rows, cache.size(1), cache.size(2), cache.size(3)}, NAN);
  const index_t row = cache.numel() / cache.size(0);
  for (index_t b = 0; b < cache.size(0); ++b)
    for (index_t i = 0; i < row; ++i)
      all[batch[static_cast<size_t>(b)] * row + i] = cache[b * row + i];
  return all;
}

std::vector<const Kernel*> batch_kernels() {
  std::vector<const Kernel*> all = over_f32(ops::taper_attention_cached_batch);
  all.push_back(&portable::taper_attention_cached_batch_f32);
  return all;
}

TEST(cached_attention, keeps_what_a_query_does_not_see_out_of_its_sums) {
  Case c;
  c.batch = 1, c.queries = 3, c.capacity = 1024;
  for (const int64_t start : {5, 510, 700}) {  // queries in one block of keys, and in two
    c.start = {start}, c.window = start - 1;
    const Array plain = c.value();
    Array v = c.value();
    for (index_t head = 0; head < c.own; ++head)
      for (index_t f = 0; f < c.values; ++f) {
        const auto at = [&](index_t position) {
          return (head * c.capacity + position) * c.values + f;
        };
        v[at(0)] = f % 2 == 0 ? NAN : INFINITY;  // before all windows
        v[at(start + 2)] = INFINITY;             // what only the last query sees
      }
    for (const Kernel* kernel : kernels()) {
      SCOPED_TRACE(::testing::Message() << kernel->name << " from " << start);
      const Array want = attend(*kernel, c, plain), y = attend(*kernel, c, v);
      const index_t of_query = c.heads * c.values;
      for (index_t i = 0; i < 2 * of_query; ++i) ASSERT_EQ(y[i], want[i]) << i;
      for (index_t i = 2 * of_query; i < y.numel(); ++i) ASSERT_EQ(y[i], INFINITY) << i;
    }
    Case single = c;  // one query is computed in another way
    single.queries = 1;
    for (const Kernel* kernel : kernels()) {
      const Array want = attend(*kernel, single, plain), y = attend(*kernel, single, v);
      for (index_t i = 0; i < y.numel(); ++i) ASSERT_EQ(y[i], want[i]) << kernel->name << i;
    }
  }
}

TEST(cached_attention, gives_the_same_bits_in_any_rows_of_the_caches) {
  const std::vector<std::vector<int64_t>> rows = {{2}, {4, 0, 3}};
  const std::vector<const Kernel*> plain = kernels(), chosen = batch_kernels();
  ASSERT_EQ(plain.size(), chosen.size());
  for (const Case& c : cases())
    for (const auto& batch : rows) {
      if (c.batch != static_cast<index_t>(batch.size())) continue;
      for (size_t i = 0; i < plain.size(); ++i) {
        Array y({c.batch, c.queries, c.heads, c.values}, 77);
        const Array q = c.query(), sinks = c.by_head(4), slopes = c.by_head(5),
                    k = among_others(c.key(), batch, 5), v = among_others(c.value(), batch, 5);
        const Starts start(c.start), of_cache(batch);
        call(*chosen[i],
             {slot(q), slot(k), slot(v), slot(&start.ref), slot(&of_cache.ref), slot(c.scale),
              slot(c.window), slot(c.softcap), c.sinks ? slot(sinks) : absent(),
              c.slopes ? slot(slopes) : absent(), slot(y)});
        EXPECT_EQ(y.values(), attend(*plain[i], c).values()) << chosen[i]->name;
      }
    }
}

/// How `run` ends with these places.
template <class Slots>
Error run(const Kernel& kernel, const Slots& slots, ErrorInfo& info) {
  alignas(8) std::byte plan[max_plan_bytes];
  Context context;
  context.info = &info;
  if (kernel.prepare(context, plan, slots) != Error::ok) return Error::out_of_memory;
  std::vector<float> scratch(context.scratch_bytes / sizeof(float) + 32);
  context.scratch = scratch.data();
  return kernel.run(context, plan, slots);
}

TEST(cached_attention, refuses_scratch_that_nobody_can_count) {
  // without elements, so that any extents fit into a file
  const index_t heads = index_t{1} << 23, capacity = index_t{1} << 43;
  const Array q({1, heads, 1, 0}), k({1, 1, capacity, 0}), v({1, 1, capacity, 0});
  const Array y({1, 1, heads, 0});
  const Starts start({0});
  const Slot slots[] = {slot(q),          slot(k),   slot(v),  slot(&start.ref), slot(1.0),
                        slot(int64_t{0}), slot(0.0), absent(), absent(),         slot(y)};
  for (const Kernel* kernel : over_f32(ops::taper_attention_cached)) {
    alignas(8) std::byte plan[max_plan_bytes];
    Context context;
    EXPECT_EQ(kernel->prepare(context, plan, slots), Error::out_of_memory) << kernel->name;
  }
}

TEST(cached_attention, refuses_places_outside_the_cache) {
  for (const Kernel* kernel : kernels())
    for (const int64_t place : {int64_t{-1}, int64_t{14}, INT64_MAX, INT64_MIN}) {
      const Case c{.queries = 3};
      Array y({1, 3, 4, 8});
      const Array q = c.query(), k = c.key(), v = c.value();
      const Starts start({place});
      const Slot slots[] = {slot(q),          slot(k),   slot(v),  slot(&start.ref), slot(1.0),
                            slot(int64_t{0}), slot(0.0), absent(), absent(),         slot(y)};
      ErrorInfo info;
      EXPECT_EQ(run(*kernel, slots, info), Error::invalid_argument)
          << kernel->name << ", " << place;
    }
}

TEST(cached_attention, refuses_rows_that_the_caches_lack) {
  for (const Kernel* kernel : batch_kernels())
    for (const int64_t row : {int64_t{-1}, int64_t{5}, INT64_MAX, INT64_MIN}) {
      const Array q({2, 4, 1, 8}), k({5, 2, 16, 8}), y({2, 1, 4, 8});
      const Starts start({0, 0}), batch({0, row});
      const Slot slots[] = {slot(q),          slot(k),   slot(k),          slot(&start.ref),
                            slot(&batch.ref), slot(1.0), slot(int64_t{0}), slot(0.0),
                            absent(),         absent(),  slot(y)};
      ErrorInfo info;
      EXPECT_EQ(run(*kernel, slots, info), Error::invalid_argument) << kernel->name;
      EXPECT_STREQ(info.message, "batch names row {} of the cache, which is outside [{}, {})");
      EXPECT_EQ(info.values[0], row);
    }
}

TEST(cache_write, writes_to_the_rows_that_it_is_told) {
  Array cache = Array::random({4, 3, 7, 4}, 1);
  std::vector<float> want = cache.values();
  const Array rows = Array::random({2, 3, 2, 4}, 2);
  const Starts start({5, 0}), batch({3, 1});
  for (index_t b = 0; b < 2; ++b)
    for (index_t h = 0; h < 3; ++h)
      for (index_t i = 0; i < 2 * 4; ++i) {
        const index_t place = (batch.values[static_cast<size_t>(b)] * 3 + h) * 7 +
                              start.values[static_cast<size_t>(b)];
        want[static_cast<size_t>(place * 4 + i)] = rows[(b * 3 + h) * 8 + i];
      }
  call(portable::taper_cache_write_batch_b4,
       {slot(cache), slot(rows), slot(&start.ref), slot(&batch.ref), slot(cache)});
  EXPECT_EQ(cache.values(), want);
}

TEST(cache_write, leaves_the_cache_alone_if_a_row_is_wrong) {
  Array cache = Array::random({3, 1, 4, 2}, 1);
  const std::vector<float> before = cache.values();
  const Array rows = Array::random({2, 1, 2, 2}, 2);
  const auto refusal = [&](std::vector<int64_t> places, std::vector<int64_t> of_cache) {
    const Starts start(std::move(places)), batch(std::move(of_cache));
    const Slot slots[] = {slot(cache), slot(rows), slot(&start.ref), slot(&batch.ref), slot(cache)};
    ErrorInfo info;
    EXPECT_EQ(run(portable::taper_cache_write_batch_b4, slots, info), Error::invalid_argument);
    EXPECT_EQ(cache.values(), before);
    return std::string(info.message);
  };
  EXPECT_EQ(refusal({0, 0}, {0, 3}), "batch names row {} of the cache, which is outside [{}, {})");
  EXPECT_EQ(refusal({0, 0}, {-1, 0}), "batch names row {} of the cache, which is outside [{}, {})");
  EXPECT_EQ(refusal({0, 0}, {2, 2}), "rows {} and {} of the batch are both row {} of the cache");
  EXPECT_EQ(refusal({0, 3}, {0, 1}), "start {} is outside [{}, {}): the cache is full");
}

TEST(cache_write, refuses_more_rows_than_it_compares) {
  const Array cache({5000, 1, 1, 0}), rows({5000, 1, 1, 0});
  const Starts start(std::vector<int64_t>(5000)), batch(std::vector<int64_t>(5000));
  const Slot slots[] = {slot(cache), slot(rows), slot(&start.ref), slot(&batch.ref), slot(cache)};
  alignas(8) std::byte plan[max_plan_bytes];
  Context context;
  EXPECT_EQ(portable::taper_cache_write_batch_b4.prepare(context, plan, slots),
            Error::not_supported);
}

TEST(cache_write, writes_rows_at_the_place_of_each_row_of_the_batch) {
  for (const bool in_place : {false, true}) {
    Array cache = Array::random({2, 3, 7, 4}, 1), y({2, 3, 7, 4}, 77);
    std::vector<float> want = cache.values();
    const Array rows = Array::random({2, 3, 2, 4}, 2);
    const Starts start({5, 0});
    for (index_t b = 0; b < 2; ++b)
      for (index_t h = 0; h < 3; ++h)
        for (index_t i = 0; i < 2 * 4; ++i)
          want[static_cast<size_t>(((b * 3 + h) * 7 + start.values[static_cast<size_t>(b)]) * 4 +
                                   i)] = rows[(b * 3 + h) * 8 + i];
    Array& out = in_place ? cache : y;
    call(portable::taper_cache_write_b4, {slot(cache), slot(rows), slot(&start.ref), slot(out)});
    EXPECT_EQ(out.values(), want);
  }
}

TEST(cache_write, leaves_the_cache_alone_if_a_place_is_outside) {
  Array cache = Array::random({2, 1, 4, 2}, 1);
  const std::vector<float> before = cache.values();
  const Array rows = Array::random({2, 1, 2, 2}, 2);
  const Starts start({0, 3});
  const Slot slots[] = {slot(cache), slot(rows), slot(&start.ref), slot(cache)};
  ErrorInfo info;
  EXPECT_EQ(run(portable::taper_cache_write_b4, slots, info), Error::invalid_argument);
  EXPECT_EQ(cache.values(), before);
}

/// What the rule says about these sizes.
std::string refusal(const Array& query, const Array& key, const Array& value, const Starts& start,
                    int64_t window = 0) {
  const Slot slots[] = {slot(query),  slot(key), slot(value), slot(&start.ref), slot(1.0),
                        slot(window), slot(0.0), absent(),    absent()};
  Facts<Extent> facts;
  TensorType<Extent> result;
  return portable::taper_attention_cached_f32.shape(facts, slots, &result) ? "" : facts.message;
}

TEST(cached_attention, refuses_sizes_that_do_not_fit) {
  const Array q({1, 4, 1, 8}), k({1, 2, 16, 8});
  const Starts start({0});
  EXPECT_EQ(refusal(q, k, k, start), "");
  EXPECT_NE(refusal(q, k, k, start, -1), "");
  EXPECT_NE(refusal(q, k, k, Starts({0, 0})), "");
  EXPECT_NE(refusal(Array({4, 1, 8}), k, k, start), "");
  EXPECT_NE(refusal(q, Array({1, 3, 16, 8}), Array({1, 3, 16, 8}), start), "");
  EXPECT_NE(refusal(q, Array({1, 2, 16, 7}), k, start), "");
  EXPECT_NE(refusal(q, k, Array({1, 2, 15, 8}), start), "");
  EXPECT_NE(refusal(q, k, Array({1, 1, 16, 8}), start), "");
  EXPECT_NE(refusal(q, Array({2, 2, 16, 8}), k, start), "");
}

}  // namespace
}  // namespace taper::tests
