#pragma once
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "taper/exporter/io/file.h"

namespace taper::io {

/// Expects a FileError whose message has `part` in it.
#define EXPECT_FILE_ERROR(statement, part)                                  \
  try {                                                                     \
    statement;                                                              \
    ADD_FAILURE() << #statement " accepts what it must refuse: " << (part); \
  } catch (const ::taper::io::FileError& error) {                           \
    EXPECT_THAT(error.what(), ::testing::HasSubstr(part));                  \
  }

inline Bytes bytes_of(std::string_view text) {
  Bytes bytes(text.size());
  std::transform(text.begin(), text.end(), bytes.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

/// An array whose bytes are all different from their neighbours'.
inline Array counted(DType dtype, std::vector<int64_t> sizes) {
  Array array = Array::zeros(dtype, std::move(sizes));
  uint8_t next = 1;
  for (std::byte& b : array.raw())
    b = static_cast<std::byte>(dtype == DType::boolean ? next++ & 1 : next++);
  return array;
}

inline void expect_same(const Array& a, const Array& b) {
  EXPECT_EQ(a.dtype, b.dtype);
  EXPECT_EQ(a.sizes, b.sizes);
  EXPECT_TRUE(std::equal(a.raw().begin(), a.raw().end(), b.raw().begin(), b.raw().end()))
      << a.describe();
}

inline constexpr DType all_dtypes[] = {DType::boolean, DType::u8,  DType::i8,  DType::i16,
                                       DType::i32,     DType::i64, DType::f16, DType::bf16,
                                       DType::f32,     DType::f64};

}  // namespace taper::io
