#include "taper/exporter/eager/storage.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace taper::eager {
namespace {

TEST(storage, is_aligned_for_every_kernel) {
  for (const size_t bytes : {0, 1, 63, 64, 65, 1000, 1 << 20}) {
    const auto s = Storage::allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(s->data()) % 64, 0u);
    EXPECT_EQ(s->size_bytes(), bytes);
  }
}
TEST(storage, is_readable_64_bytes_behind_its_end) {
  const auto s = Storage::allocate(100);
  for (size_t i = 0; i < 164; ++i)
    s->data()[i] = std::byte{1};  // an address sanitizer would complain
}
TEST(storage, reuses_freed_blocks) {
  const void* first;
  {
    const auto s = Storage::allocate(5000);
    first = s->data();
  }
  const auto again = Storage::allocate(5000);
  EXPECT_EQ(again->data(), first);
}
TEST(storage, gives_cached_blocks_back) {
  Storage::allocate(1 << 20);
  EXPECT_GT(memory_use().cached_bytes, 0u);
  empty_cache();
  EXPECT_EQ(memory_use().cached_bytes, 0u);
}

}  // namespace
}  // namespace taper::eager
