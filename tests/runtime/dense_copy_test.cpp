#include "taper/runtime/core/dense_copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <vector>

namespace taper {
namespace {

/// By the definition: element (i, j, …) lies at the sum of index times stride.
template <class T>
std::vector<T> gathered(const Shape& s, const T* data) {
  std::vector<T> elements;
  for (index_t i = 0; i < s.numel(); ++i) {
    index_t offset = 0, rest = i;
    for (int d = s.rank - 1; d >= 0; --d)
      offset += rest % s.sizes[d] * s.strides[d], rest /= s.sizes[d];
    elements.push_back(data[offset]);
  }
  return elements;
}
template <class T>
void expect_elements(const Shape& s, DType dtype) {
  std::vector<T> data(4096);
  std::iota(data.begin(), data.end(), T(1));
  // the middle, so that strides may be negative
  const TensorRef from{data.data() + 2048, &s, dtype};
  std::vector<T> got(static_cast<size_t>(s.numel()) + 1, T(0));
  copy_dense(from, reinterpret_cast<std::byte*>(got.data()));
  EXPECT_EQ(got.back(), T(0)) << "wrote behind the end";
  got.pop_back();
  EXPECT_EQ(got, gathered(s, data.data() + 2048));
}
Shape strided(const std::vector<index_t>& sizes, const std::vector<index_t>& strides) {
  Shape s = Shape::dense(sizes);
  for (size_t d = 0; d < strides.size(); ++d) s.strides[d] = strides[d];
  return s;
}

TEST(copy_dense, reads_strided_tensors_of_every_rank) {
  const Shape shapes[] = {
      strided({5}, {3}),                            // gaps
      strided({3, 4}, {1, 3}),                      // transposed
      strided({2, 3, 4}, {1, 2, 6}),                // permuted
      strided({2, 3, 4}, {4, 8, 1}),                // (1, 0, 2)
      strided({2, 3, 4}, {12, 1, 3}),               // (0, 2, 1)
      strided({4, 3, 2}, {20, 6, 3}),               // gaps in every dimension
      strided({2, 3, 4, 5}, {60, 1, 15, 3}),        // channels last
      strided({2, 3, 4, 5}, {1, 2, 6, 24}),         // reversed
      strided({3, 2, 2, 3}, {40, 20, 7, 2}),        // gaps
      strided({2, 3, 4, 2}, {0, 1, 0, 3}),          // repeated
      strided({3, 1, 2, 1}, {2, 99, 1, 99}),        // ones
      strided({2, 3, 4}, {-12, 4, -1}),             // backwards
      strided({2, 2, 2, 2, 3}, {48, 1, 12, 2, 4}),  // rank 5
      strided({2, 0, 3}, {1, 1, 1}),
      Shape::dense(std::vector<index_t>{3, 4, 5}),
      Shape::dense({}),
  };
  for (const Shape& s : shapes) {
    SCOPED_TRACE("shape " + std::to_string(&s - shapes));
    expect_elements<uint8_t>(s, DType::u8);
    expect_elements<int16_t>(s, DType::i16);
    expect_elements<float>(s, DType::f32);
    expect_elements<int64_t>(s, DType::i64);
  }
}

TEST(copy_dense, reads_any_strides) {
  std::mt19937 engine(1);
  const auto below = [&](index_t n) {
    return static_cast<index_t>(engine() % static_cast<uint32_t>(n));
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<index_t> sizes, strides;
    for (index_t rank = 1 + below(max_rank); rank > 0; --rank) {
      sizes.push_back(1 + below(3));
      strides.push_back(below(40) - 20);
    }
    expect_elements<int32_t>(strided(sizes, strides), DType::i32);
  }
}

}  // namespace
}  // namespace taper
