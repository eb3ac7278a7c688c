#include "taper/kernels/portable/philox.h"

#include <gtest/gtest.h>

namespace {

using taper::portable::philox;
using taper::portable::PhiloxWords;

void expect_words(const PhiloxWords& got, const PhiloxWords& want) {
  for (int k = 0; k < 4; ++k) EXPECT_EQ(got.word[k], want.word[k]);
}

// The known answers that the authors publish with Random123 (kat_vectors, philox4x32 with 10
// rounds).
TEST(philox, gives_the_published_answers) {
  expect_words(philox({{0, 0, 0, 0}}, 0, 0), {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  expect_words(philox({{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}}, 0xffffffff, 0xffffffff),
               {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect_words(philox({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
               {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(philox_stream, numbers_its_groups_beyond_32_bits) {
  const int64_t offset = 0xfffffff8;  // in the middle of the groups, the number needs a second word
  const taper::portable::PhiloxStream stream(7, offset);
  const taper::portable::PhiloxGroups groups = stream.groups(1);
  for (uint64_t g = 0; g < taper::portable::PhiloxGroups::count; ++g) {
    const uint64_t n = static_cast<uint64_t>(offset) + 1 + g;
    const PhiloxWords want =
        philox({{static_cast<uint32_t>(n), static_cast<uint32_t>(n >> 32), 0, 0}}, 7, 0);
    for (int k = 0; k < 4; ++k) EXPECT_EQ(groups.word[k][g], want.word[k]);
  }
}

TEST(philox, turns_bits_into_numbers_below_one) {
  EXPECT_EQ(taper::portable::uniform<24>(0), 0.0f);
  EXPECT_LT(taper::portable::uniform<24>(0xffffffff), 1.0f);
  EXPECT_LT(taper::portable::uniform<11>(0xffffffff), 1.0f);
  EXPECT_LT(taper::portable::uniform53(0xffffffff, 0xffffffff), 1.0);
}

}  // namespace
