#include "taper/exporter/io/array.h"

#include "taper/tests/exporter/io/io_testing.h"

namespace taper::io {
namespace {

TEST(array, is_aligned_and_has_64_zero_bytes_behind_its_elements) {
  const Array a = counted(DType::u8, {3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.bytes.get()) % 64, 0u);
  for (size_t i = 0; i < 64; ++i)
    EXPECT_EQ(a.bytes[static_cast<std::ptrdiff_t>(3 + i)], std::byte{0});
}

TEST(array, may_be_empty_or_a_scalar) {
  EXPECT_EQ(Array::zeros(DType::f32, {}).numel(), 1);
  EXPECT_EQ(Array::zeros(DType::f32, {4, 0, INT64_MAX}).numel(), 0);
}

TEST(array, shares_its_bytes_when_copied_and_not_when_cloned) {
  const Array a = counted(DType::i32, {2});
  const Array shared = a, cloned = a.clone();
  a.values<int32_t>()[0] = 7;
  EXPECT_EQ(shared.values<int32_t>()[0], 7);
  EXPECT_NE(cloned.values<int32_t>()[0], 7);
}

TEST(array, refuses_shapes_that_no_memory_holds) {
  EXPECT_FILE_ERROR(Array::zeros(DType::f32, {-1}), "no array can have the shape f32 (-1,)");
  EXPECT_FILE_ERROR(Array::zeros(DType::u8, {INT64_MAX, 2}), "no array can have the shape");
  EXPECT_FILE_ERROR(Array::zeros(DType::f64, {INT64_MAX / 4}), "no array can have the shape");
}

TEST(array, refuses_to_be_read_as_another_type) {
  EXPECT_THROW(Array::zeros(DType::f32, {1}).values<int32_t>(), std::logic_error);
}

}  // namespace
}  // namespace taper::io
