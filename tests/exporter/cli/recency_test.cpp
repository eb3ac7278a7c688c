#include "taper/exporter/cli/recency.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace taper::cli {
namespace {

constexpr int page = 4096;

const void* at(int64_t bytes) { return reinterpret_cast<const void*>(intptr_t{1} * page + bytes); }

TEST(recency, counts_what_was_touched_since) {
  Recency recency(20);
  recency.touch(at(0), 2 * page);         // a
  recency.touch(at(2 * page), 3 * page);  // b
  EXPECT_EQ(recency.touch(at(0), 2 * page), 5 * page);
  EXPECT_EQ(recency.touch(at(0), 2 * page), 2 * page) << "nothing between";
  EXPECT_EQ(recency.touch(at(2 * page), 3 * page), 5 * page) << "a counts once";
}

TEST(recency, counts_all_for_what_is_new) {
  Recency recency(20);
  recency.touch(at(0), 4 * page);
  EXPECT_EQ(recency.touch(at(4 * page), 1), 5 * page);
  EXPECT_EQ(recency.touch(at(0), 0), 0);
}

TEST(recency, knows_the_pages_of_a_piece) {
  EXPECT_EQ(Recency::pages(at(0), page), 1u);
  EXPECT_EQ(Recency::pages(at(page - 1), 2), 2u);
  EXPECT_EQ(Recency::pages(at(7), 0), 0u);
}

TEST(recency, agrees_with_a_list_of_what_was_touched) {
  std::mt19937 random(1);
  constexpr int touches = 2000;
  Recency recency(touches);
  std::vector<int> list;  // the page touched last comes first
  for (int i = 0; i < touches; ++i) {
    const int p = static_cast<int>(random() % 50);
    auto found = std::ranges::find(list, p);
    if (found == list.end()) found = list.insert(list.end(), p);
    const auto expected = found - list.begin() + 1;
    EXPECT_EQ(recency.touch(at(p * page), 1), static_cast<double>(expected * page));
    list.erase(found), list.insert(list.begin(), p);
  }
}

}  // namespace
}  // namespace taper::cli
