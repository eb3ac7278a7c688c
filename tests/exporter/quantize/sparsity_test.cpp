// Patterns of zeros, by hand.
#include "taper/exporter/quantize/sparsity.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "taper/tests/support/throw_message.h"

namespace taper::quantize {
namespace {

using testing::ElementsAre;

std::vector<float> pruned(std::vector<float> w, int64_t rows, const char* pattern,
                          bool each_row = false, std::vector<float> importance = {}) {
  importance.resize(w.size() / static_cast<size_t>(rows), 1);
  zero_smallest(w, rows, importance, parse_sparsity(pattern), each_row);
  return w;
}

TEST(sparsity, reads_patterns) {
  for (const char* text : {"2:4", "1:4", "0.5", "0.25", "0.5:4x8", "0.9:1x16"})
    EXPECT_EQ(to_text(parse_sparsity(text)), text);
  EXPECT_EQ(to_text(parse_sparsity("0.5:1x1")), "0.5");
}

TEST(sparsity, refuses_other_patterns) {
  for (const char* text : {"", "x", "50%", "4x8", ":", "2:", ":4", "2:4:8", "2:4x", "2:x4", "0.5:4",
                           "0.5:4x8x2", "half", "0,5", "2 : 4", "99999999999:4"})
    EXPECT_EXPORT_ERROR(parse_sparsity(text), "is no pattern of zeros");
  for (const char* text : {"0", "0.0", "0:1x1", "0:4x8"})
    EXPECT_EXPORT_ERROR(parse_sparsity(text), "a part of 0 sets nothing to zero");
  for (const char* text :
       {"1", "1.5", "-0.5", "nan", "inf", "1:4x8", "4:4", "0:4", "-1:4", "5:4", "1:1", "0:0"})
    EXPECT_EXPORT_ERROR(parse_sparsity(text), "keeps nothing or everything");
  for (const char* text : {"0.5:0x4", "0.5:4x0", "0.5:-1x4", "0.5:4x4097"})
    EXPECT_EXPORT_ERROR(parse_sparsity(text), "a block has 1 to 4096 rows and columns");
  EXPECT_EXPORT_ERROR(parse_sparsity("1:5000"), "4096 neighbours at most");
}

TEST(sparsity, keeps_some_of_all_neighbours) {
  EXPECT_THAT(pruned({1, -4, 3, 2, 5, 6}, 1, "2:4"), ElementsAre(0, -4, 3, 0, 0, 6));
  EXPECT_THAT(pruned({1, 1, 1, 1}, 1, "1:4"), ElementsAre(0, 0, 0, 1));  // the first go
  EXPECT_THAT(pruned({1, 4, 3, 2}, 1, "2:4", false, {9, 1, 1, 1}), ElementsAre(1, 4, 0, 0));
}

TEST(sparsity, sets_a_part_to_zero_anywhere) {
  const std::vector<float> w = {1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_THAT(pruned(w, 2, "0.5"), ElementsAre(0, 0, 0, 0, 5, 6, 7, 8));
  EXPECT_THAT(pruned(w, 2, "0.5", true), ElementsAre(0, 0, 3, 4, 0, 0, 7, 8));
  EXPECT_THAT(pruned(w, 2, "0.3"), ElementsAre(0, 0, 3, 4, 5, 6, 7, 8));
}

TEST(sparsity, sets_whole_blocks_to_zero) {
  // blocks of 2 by 2 with sums of squares 4, 9, 100, and two at the edge with 1 and 50
  const std::vector<float> w = {1,  1, 3, 0, 1,  //
                                1,  1, 0, 0, 0,  //
                                10, 0, 5, 0, 7,  //
                                0,  0, 0, 5, 1};
  EXPECT_THAT(pruned(w, 4, "0.5:2x2"), ElementsAre(0, 0, 0, 0, 0,   //
                                                   0, 0, 0, 0, 0,   //
                                                   10, 0, 5, 0, 7,  //
                                                   0, 0, 0, 5, 1));
  EXPECT_THAT(pruned(w, 4, "0.34:2x2", true), ElementsAre(1, 1, 3, 0, 0,   //
                                                          1, 1, 0, 0, 0,   //
                                                          10, 0, 0, 0, 7,  //
                                                          0, 0, 0, 0, 1));
  // as many as asked for, of exactly 100
  std::vector<float> line(100);
  std::iota(line.begin(), line.end(), 1.0f);
  EXPECT_EQ(std::ranges::count(pruned(line, 1, "0.29"), 0.0f), 29);
}

}  // namespace
}  // namespace taper::quantize
