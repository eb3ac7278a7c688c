#include "taper/runtime/core/arena.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace taper::test {
namespace {

alignas(64) std::byte memory[256];

TEST(arena, gives_all_of_its_region_and_no_byte_more) {
  for (int missing = 0; missing <= 16; ++missing) {
    Arena arena({memory, 128 - missing});
    EXPECT_EQ(arena.take<uint64_t>(8), reinterpret_cast<uint64_t*>(memory));
    std::byte* const rest = arena.take<std::byte>(64, 64);
    EXPECT_EQ(arena.exhausted(), missing != 0) << missing;
    EXPECT_EQ(rest, missing == 0 ? memory + 64 : nullptr) << missing;
  }
}

TEST(arena, aligns_every_piece_wherever_the_region_lies) {
  for (index_t at = 0; at < 64; ++at) {
    Arena arena({memory + at, 192});
    (void)arena.take<std::byte>(1);
    for (const size_t alignment : {size_t{1}, size_t{8}, size_t{64}}) {
      std::byte* const piece = arena.take<std::byte>(3, alignment);
      ASSERT_NE(piece, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % alignment, 0u) << at;
    }
  }
}

TEST(arena, measures_what_the_same_calls_take) {
  const auto take = [](Arena& arena) {
    (void)arena.take<std::byte>(3);
    (void)arena.take<uint64_t>(2);
    (void)arena.take<std::byte>(5, 64);
  };
  Arena measuring = Arena::measuring();
  take(measuring);
  EXPECT_EQ(measuring.used(), 64u + 5);
  Arena exact({memory, 64 + 5}), short_by_one({memory, 64 + 4});
  take(exact), take(short_by_one);
  EXPECT_FALSE(exact.exhausted());
  EXPECT_TRUE(short_by_one.exhausted());
}

TEST(arena, refuses_counts_that_no_memory_holds) {
  for (const index_t count : {index_t{-1}, PTRDIFF_MAX, PTRDIFF_MAX / 4}) {
    Arena arena({memory, 256}), measuring = Arena::measuring();
    (void)measuring.take<std::byte>(8);
    EXPECT_EQ(arena.take<uint64_t>(count), nullptr);
    EXPECT_TRUE(arena.exhausted());
    (void)measuring.take<uint64_t>(count);
    EXPECT_TRUE(measuring.exhausted());
  }
}

}  // namespace
}  // namespace taper::test
