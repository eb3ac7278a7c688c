// Attention whose scores need more than 1 MiB, which is 2^18 scores. It goes in tiles.
#include <gmock/gmock.h>

#include "delegated.h"

namespace taper::delegates::xnnpack {
namespace {

using testing::Contains, testing::HasSubstr;

/// The attention of x to other keys and values, made of x.
struct Attention {
  bool is_causal = false;
  Tensor mask = {};
  int64_t key_heads = 0;  ///< 0: as many as queries
  int64_t keys = 0;       ///< 0: as many as queries

  Tensor operator()(const Tensor& x) const {
    Tensor k = key_heads > 0 ? slice(x, -3, 0, key_heads) : x;
    if (keys > 0) k = slice(k, -2, 0, keys);
    return scaled_dot_product_attention(x * 4.0, k, relu(k), mask, 0.0, is_causal, {},
                                        key_heads > 0);
  }
};

TEST(xnnpack_tiles, are_cut_from_batches_heads_and_queries) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
           {3, 1, 300, 4},     // batches
           {1, 5, 300, 4},     // heads
           {5, 300, 4},        // without a batch
           {2, 3, 2, 200, 4},  // windows of images
           {1, 1, 601, 4},     // queries
           {2, 2, 520, 4},     // all of them
       }) {
    SCOPED_TRACE(testing::PrintToString(sizes));
    expect_as_eager(Attention(), random_tensor(sizes, 1));
    expect_as_eager(Attention{.is_causal = true}, random_tensor(sizes, 2));
  }
}

TEST(xnnpack_tiles, take_other_numbers_of_queries_and_keys) {
  const Tensor x = random_tensor({2, 3, 800, 4}, 3);
  for (const bool is_causal : {false, true})
    for (const int64_t keys : {700, 100, 790})
      expect_as_eager(Attention{.is_causal = is_causal, .keys = keys}, x);
}

TEST(xnnpack_tiles, take_heads_that_share_keys) {
  for (const bool is_causal : {false, true})
    for (const int64_t key_heads : {1, 2, 4})
      for (const int64_t positions : {300, 550})
        expect_as_eager(Attention{.is_causal = is_causal, .key_heads = key_heads},
                        random_tensor({1, 4, positions, 4}, 4));
}

/// Numbers from -3 to 3. Of each row, -infinity hides some keys, and all keys of the third.
Tensor mask_of(const std::vector<int64_t>& sizes) {
  std::vector<float> numbers = random_tensor(sizes, 5, -3, 3).to_vector<float>();
  const auto keys = static_cast<size_t>(sizes.back());
  for (size_t i = 0; i < numbers.size(); i += 7) numbers[i] = -INFINITY;
  if (numbers.size() > 3 * keys)
    for (size_t key = 0; key < keys; ++key) numbers[2 * keys + key] = -INFINITY;
  return Tensor::from<float>(numbers, {sizes.begin(), sizes.end()});
}

TEST(xnnpack_tiles, take_parts_of_masks) {
  for (const int64_t positions : {300, 520}) {
    const int64_t n = positions;
    const Tensor x = random_tensor({2, 4, n, 4}, 6);
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{
             {n}, {n, n}, {4, n, n}, {2, 1, n, n}, {2, 1, 1, n}, {2, 4, 1, n}, {1, 4, n, n}}) {
      SCOPED_TRACE(testing::PrintToString(sizes));
      const Tensor mask = mask_of(sizes);
      for (const int64_t key_heads : {0, 2}) {
        expect_as_eager(Attention{.mask = mask, .key_heads = key_heads}, x);
        // the mask is computed
        const auto computed = [&](const Tensor& t) {
          const Tensor some = reshape(slice(slice(slice(t, 0, 0, 1), 1, 0, 1), 3, 0, 1), {n});
          return Attention{.mask = mask + some, .key_heads = key_heads}(t);
        };
        expect_as_eager(computed, x);
      }
    }
  }
}

TEST(xnnpack_tiles, serve_a_symbolic_number_of_batches) {
  const auto attention = [](const Tensor& t) { return Attention{.is_causal = true}(t); };
  Delegated program(attention, {Dim::symbol("batch", 1, 4), 3, 520, 4});
  EXPECT_EQ(program.delegates(), 1);
  Result<Module> module = program.load();
  ASSERT_TRUE(module.ok()) << program.why;
  for (const int64_t batch : {1, 4, 2}) {
    const Tensor x = random_tensor({batch, 3, 520, 4}, 7);
    expect_close(call(module.value(), x), attention(x).to_vector<float>());
  }
}

TEST(xnnpack_tiles, are_at_most_256_of_sizes_that_are_known) {
  const auto attention = [](const Tensor& t) { return Attention()(relu(t)); };
  const auto notes = [&](const eager::Dims& sizes) {
    return Delegated(attention, sizes, false).report.notes;
  };
  EXPECT_EQ(Delegated(attention, {1, 1, 8192, 4}, false).delegates(), 1);
  EXPECT_THAT(notes({1, 1, 8200, 4}),
              Contains(HasSubstr("its scores need more than 256 tiles of 1 MiB")));
  EXPECT_THAT(notes({1, 1, Dim::symbol("length", 1, 600), 4}),
              Contains(HasSubstr("the sizes that could be cut are symbolic")));
}

}  // namespace
}  // namespace taper::delegates::xnnpack
