// Caches of attention in f16, bf16 and blocks: the bytes against ggml's (shared golden data), and
// attention over them against attention over the f32 that they stand for.
#include <gtest/gtest.h>

#include <cmath>

#include "taper/exporter/io/safetensors.h"
#include "taper/kernels/portable/portable.h"
#include "taper/kernels/quantized/blocks.h"
#include "taper/runtime/platform/thread_pool/thread_pool.h"
#include "taper/tests/kernels/optimized/kernel_call.h"
#include "taper/tests/support/data.h"

namespace taper::tests {
namespace {

/// How a cache holds its rows.
struct Way {
  const char* name;
  DType dtype;
  Layout layout;  ///< of blocks, or dense

  index_t width(index_t features) const {
    if (layout == Layout::dense) return features;
    const BlockSize block = block_of(layout);
    return (features + block.elements - 1) / block.elements * block.bytes;
  }
  std::string record(const std::string& op) const {
    return op == "taper_cache_write" ? op + '_' + name + "_f32" : op + "_f32_" + name;
  }
};
constexpr Way f16 = {"f16", DType::f16, Layout::dense}, bf16 = {"bf16", DType::bf16, Layout::dense},
              int8 = {"blocks", DType::u8, Layout::q8_0},
              int4 = {"blocks", DType::u8, Layout::q4_0};

/// A dense tensor of any dtype.
struct Cells {
  Cells(DType dtype, const std::vector<index_t>& sizes, int fill = 0)
      : shape(Shape::dense(sizes)),
        bytes(static_cast<size_t>(shape.numel() * size_bytes(dtype) + 64),
              static_cast<std::byte>(fill)),
        ref{bytes.data(), &shape, dtype} {}
  Cells(const Cells&) = delete;
  Shape shape;
  std::vector<std::byte> bytes;
  TensorRef ref;
};
struct Places : Cells {
  explicit Places(const std::vector<int64_t>& values)
      : Cells(DType::i64, {static_cast<index_t>(values.size())}) {
    std::memcpy(bytes.data(), values.data(), values.size() * sizeof(int64_t));
  }
};

const Kernel& write_record(const Way& way) {
  for (const Kernel* kernel : kernels_of(portable::all, ops::taper_cache_write))
    if (way.record("taper_cache_write") == kernel->name) return *kernel;
  throw std::runtime_error("there is no record");
}

/// The rows (batch, heads, n, features) in a cache of n positions.
void store(const Way& way, const Array& rows, Cells& cache) {
  const Places start(std::vector<int64_t>(static_cast<size_t>(rows.size(0))));
  call(write_record(way), {slot(&cache.ref), slot(rows), slot(&start.ref), slot(&cache.ref)});
}
std::vector<index_t> cache_sizes(const Way& way, const Array& rows) {
  return {rows.size(0), rows.size(1), rows.size(2), way.width(rows.size(3))};
}

/// Whether the last block of a row of 8 bits holds more digits of its elements (docs/format.md).
bool is_fine(const Way& way, index_t features) {
  return way.layout == Layout::q8_0 && features % 32 > 0 && features % 32 <= 16;
}
/// An element of a block that holds `elements` of them in two or three digits.
float fine_element(const std::byte* block, index_t elements, index_t i) {
  Half scale;
  std::memcpy(&scale, block, sizeof scale);
  const auto* digits = reinterpret_cast<const int8_t*>(block + 2);
  double sum = digits[i] + digits[elements + i] / 128.0;
  if (elements <= 10) sum += digits[2 * elements + i] / 16384.0;
  return static_cast<float>(static_cast<double>(static_cast<float>(scale)) * sum);
}

/// What a cache of `features` stands for.
Array widened(const Way& way, const Cells& cache, index_t features) {
  const auto* s = cache.shape.sizes;
  Array rows({s[0], s[1], s[2], features});
  const index_t bytes = s[3] * size_bytes(way.dtype), padded = (features + 31) / 32 * 32;
  std::vector<float> row(static_cast<size_t>(padded));
  for (index_t r = 0; r < s[0] * s[1] * s[2]; ++r) {
    const std::byte* from = cache.bytes.data() + r * bytes;
    if (way.layout != Layout::dense) quantized::dequantize(way.layout, from, padded, row.data());
    for (index_t f = 0; f < features; ++f) {
      const size_t i = static_cast<size_t>(f);
      if (way.dtype == DType::f16) row[i] = reinterpret_cast<const Half*>(from)[f];
      if (way.dtype == DType::bf16) row[i] = reinterpret_cast<const BFloat16*>(from)[f];
      if (is_fine(way, features) && f >= features / 32 * 32)
        row[i] = fine_element(from + features / 32 * 34, features % 32, f % 32);
      rows[r * features + f] = row[i];
    }
  }
  return rows;
}

void expect_bytes_of_ggml(const Way& way, const char* file) {
  TAPER_GOLDEN_DATA_OR_SKIP(path, std::string("gguf_types/") + file + ".safetensors");
  const io::SafeTensors golden = io::read_safetensors(path.string());
  const io::Array &source = golden.at("source"), &want = golden.at("quantized.bytes");
  Array rows({1, 1, static_cast<index_t>(source.sizes[0]), static_cast<index_t>(source.sizes[1])});
  std::memcpy(rows.data(), source.bytes.get(), static_cast<size_t>(rows.numel()) * sizeof(float));
  Cells cache(DType::u8, cache_sizes(way, rows), 77);
  store(way, rows, cache);
  ASSERT_EQ(cache.shape.numel(), want.sizes[0] * want.sizes[1]);
  for (index_t i = 0; i < cache.shape.numel(); ++i)
    ASSERT_EQ(cache.bytes[static_cast<size_t>(i)], want.bytes.get()[i]) << file << ", byte " << i;
}

TEST(stored_caches, hold_8_bits_as_ggml_does) { expect_bytes_of_ggml(int8, "Q8_0"); }
TEST(stored_caches, hold_4_bits_as_ggml_does) { expect_bytes_of_ggml(int4, "Q4_0"); }

// The scale is the largest magnitude over 127 or 8, itself rounded to 11 bits. Half a step is
// rounding, and 127 / 2^11 of one is the scale's.
TEST(stored_caches, are_near_what_was_written) {
  for (const index_t features : {1, 8, 32, 64, 80, 96}) {
    const Array rows = Array::random({2, 3, 5, features}, 1);
    for (const auto& [way, steps] : {std::pair(int8, 127.0f), std::pair(int4, 8.0f)}) {
      Cells cache(way.dtype, cache_sizes(way, rows), 77);
      store(way, rows, cache);
      const Array got = widened(way, cache, features);
      for (index_t i = 0; i < rows.numel(); ++i) {
        float largest = 0;
        const index_t f = i % features, first = i - f % 32, end = i - f + features;
        for (index_t j = first; j < std::min(first + 32, end); ++j)
          largest = std::max(largest, std::fabs(rows[j]));
        // of 4 bits, the largest magnitude of the other sign is one step less
        const float most = steps == 127 ? 0.57f : 1.01f;
        ASSERT_LE(std::fabs(got[i] - rows[i]), most * largest / steps + 1e-7f) << features;
      }
    }
  }
}

TEST(stored_caches, fill_the_last_block_with_zeros) {
  const Array rows = Array::random({1, 1, 1, 50}, 1);
  Cells cache(DType::u8, cache_sizes(int8, rows), 77);
  store(int8, rows, cache);
  const Array got = widened(int8, cache, 64);
  for (index_t i = 50; i < 64; ++i) EXPECT_EQ(got[i], 0);
}

// Three digits of 8, 7 and 7 bits, or two. Large numbers and tiny ones, whose scales f16 rounds
// much.
TEST(stored_caches, hold_more_digits_where_the_last_block_has_room) {
  for (const index_t features : {1, 8, 10, 11, 16, 40, 72, 80})
    for (const float size : {1e-4f, 1.0f, 1e5f}) {
      Array rows = Array::random({2, 3, 50, features}, 1);
      for (index_t i = 0; i < rows.numel(); ++i) rows[i] *= size;
      Cells cache(int8.dtype, cache_sizes(int8, rows), 77);
      store(int8, rows, cache);
      const Array got = widened(int8, cache, features);
      const float most = features % 32 <= 10 ? 0.6f / (1 << 21) : 0.6f / (1 << 14);
      for (index_t r = 0; r < rows.numel(); r += features) {
        float largest = 0;
        for (index_t f = features / 32 * 32; f < features; ++f)
          largest = std::max(largest, std::fabs(rows[r + f]));
        // below the least normal f16, the scale is a multiple of 2^-24
        const float scale = std::max(largest, 127.0f / (1 << 24));
        for (index_t f = features / 32 * 32; f < features; ++f)
          ASSERT_LE(std::fabs(got[r + f] - rows[r + f]), 2.1f * most * scale) << features << size;
      }
    }
}

TEST(stored_caches, hold_zeros_and_tell_of_what_is_not_finite) {
  for (const Way& way : {int8, int4}) {
    for (const index_t n : {32, 8}) {
      Array rows({1, 1, 4, n});
      rows[n + 3] = NAN, rows[2 * n + 5] = INFINITY, rows[3 * n] = 1e-35f;
      Cells cache(way.dtype, cache_sizes(way, rows), 77);
      store(way, rows, cache);
      const Array got = widened(way, cache, n);
      for (index_t i = 0; i < n; ++i) {
        EXPECT_EQ(got[i], 0);
        EXPECT_TRUE(std::isnan(got[n + i]));
        EXPECT_TRUE(std::isnan(got[2 * n + i]));
        EXPECT_EQ(got[3 * n + i], 0);
      }
    }
  }
}

struct Case {
  index_t batch, heads, own, queries, capacity, features;
  std::vector<int64_t> start;
  int64_t window = 0;
};

/// The records of a library that read such a cache, or, for nullptr, one of f32.
std::vector<const Kernel*> attention_records(KernelSet library, const Way* way) {
  std::vector<const Kernel*> found;
  for (const Kernel* kernel : kernels_of(library, ops::taper_attention_cached)) {
    const DTypeSet key = one(way == nullptr ? DType::f32 : way->dtype);
    if (kernel->expected[0].dtypes == one(DType::f32) && kernel->expected[1].dtypes == key)
      found.push_back(kernel);
  }
  return found;
}

/// Keys and values of one dtype.
void expect_as_over_f32(KernelSet library, const Way& way, const Way& of_values, const Case& c,
                        size_t most_records) {
  const std::vector<const Kernel*> stored = attention_records(library, &way),
                                   plain = attention_records(library, nullptr);
  ASSERT_EQ(stored.size(), plain.size());
  ASSERT_LE(stored.size(), most_records);
  const Array q = Array::random({c.batch, c.heads, c.queries, c.features}, 1),
              k = Array::random({c.batch, c.own, c.capacity, c.features}, 2),
              v = Array::random({c.batch, c.own, c.capacity, c.features}, 3);
  Cells keys(way.dtype, cache_sizes(way, k)), values(of_values.dtype, cache_sizes(of_values, v));
  store(way, k, keys), store(of_values, v, values);
  const Array wide_keys = widened(way, keys, c.features),
              wide_values = widened(of_values, values, c.features);
  const Places start(c.start);
  const ThreadPool pool(2);
  for (size_t i = 0; i < stored.size(); ++i) {
    EXPECT_TRUE(stored[i]->needs == plain[i]->needs);
    const auto attend = [&](const Kernel& kernel, const TensorRef* key, const TensorRef* value,
                            const Threads* threads) {
      Array y({c.batch, c.queries, c.heads, c.features}, 77);
      call(kernel,
           {slot(q), slot(key), slot(value), slot(&start.ref), slot(0.3), slot(c.window), slot(0.0),
            absent(), absent(), slot(y)},
           threads);
      return y.values();
    };
    const std::vector<float> want = attend(*plain[i], wide_keys.ref(), wide_values.ref(), nullptr);
    EXPECT_EQ(attend(*stored[i], &keys.ref, &values.ref, nullptr), want) << stored[i]->name;
    EXPECT_EQ(attend(*stored[i], &keys.ref, &values.ref, pool.threads()), want) << stored[i]->name;
  }
}

TEST(stored_caches, give_the_bits_of_a_cache_of_what_they_stand_for) {
  const std::vector<Case> cases = {
      {1, 4, 2, 1, 40, 64, {39}},     {2, 6, 2, 3, 20, 80, {0, 17}},
      {1, 3, 3, 16, 16, 8, {0}},      {1, 8, 1, 1, 1300, 33, {1290}},
      {1, 2, 1, 150, 700, 32, {520}}, {1, 9, 3, 1, 1100, 64, {1030}, 600}};
  const std::pair<Way, Way> ways[] = {{f16, f16},   {bf16, bf16}, {int8, int8},
                                      {int4, int4}, {int8, int4}, {int4, int8}};
  for (const auto& [keys, values] : ways)
    for (const Case& c : cases) {
      expect_as_over_f32(optimized::all, keys, values, c, 3);
      expect_as_over_f32(portable::all, keys, values, c, 1);
    }
}

/// What the rule says about a cache of rows of so many bytes.
std::string refusal(DType key, index_t key_width, DType value, index_t value_width) {
  const Array q({1, 4, 1, 64});
  const Cells k(key, {1, 2, 16, key_width}), v(value, {1, 2, 16, value_width});
  const Places start({0});
  const Slot slots[] = {slot(q),          slot(&k.ref), slot(&v.ref), slot(&start.ref), slot(1.0),
                        slot(int64_t{0}), slot(0.0),    absent(),     absent()};
  Facts<Extent> facts;
  TensorType<Extent> result;
  return portable::taper_attention_cached_f32.shape(facts, slots, &result) ? "" : facts.message;
}

TEST(stored_caches, must_fit_the_query) {
  EXPECT_EQ(refusal(DType::u8, 68, DType::u8, 68), "");
  EXPECT_EQ(refusal(DType::u8, 36, DType::u8, 36), "");
  EXPECT_EQ(refusal(DType::f16, 64, DType::f16, 48), "");
  EXPECT_NE(refusal(DType::u8, 64, DType::u8, 64), "");
  EXPECT_EQ(refusal(DType::u8, 68, DType::u8, 36), "");
  EXPECT_NE(refusal(DType::u8, 68, DType::u8, 64), "");
  EXPECT_NE(refusal(DType::u8, 64, DType::u8, 36), "");
  EXPECT_NE(refusal(DType::f16, 64, DType::bf16, 64), "");
  EXPECT_NE(refusal(DType::f16, 48, DType::f16, 64), "");
  EXPECT_NE(refusal(DType::i8, 64, DType::i8, 64), "");
}

}  // namespace
}  // namespace taper::tests
