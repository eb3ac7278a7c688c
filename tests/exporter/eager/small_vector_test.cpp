#include "taper/exporter/eager/small_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace taper::eager {
namespace {

using Pointers = SmallVector<std::shared_ptr<int>, 2>;

Pointers counting(int n, const std::shared_ptr<int>& element) {
  Pointers list;
  for (int i = 0; i < n; ++i) list.push_back(element);
  return list;
}

TEST(small_vector, keeps_its_elements_when_it_grows) {
  SmallVector<std::string, 2> list;
  for (int i = 0; i < 20; ++i)
    list.emplace_back("a string too long to lie in itself " + std::to_string(i));
  ASSERT_EQ(list.size(), 20u);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(list[i], "a string too long to lie in itself " + std::to_string(i));
}
TEST(small_vector, takes_an_element_of_its_own_while_it_grows) {
  SmallVector<std::string, 1> list;
  list.push_back("a string too long to lie in itself");
  list.push_back(list[0]);
  EXPECT_EQ(list[0], list[1]);
}
TEST(small_vector, moves_short_and_long_lists) {
  for (const int n : {0, 1, 2, 3, 9}) {
    const auto element = std::make_shared<int>(7);
    Pointers from = counting(n, element);
    Pointers to = std::move(from);
    EXPECT_EQ(to.size(), static_cast<size_t>(n));
    EXPECT_EQ(element.use_count(), n + 1);
    for (const int m : {0, 1, 5}) {
      Pointers other = counting(m, element);
      other = std::move(to);
      EXPECT_EQ(other.size(), static_cast<size_t>(n));
      EXPECT_EQ(element.use_count(), n + 1);
      to = std::move(other);
    }
    from.push_back(element);  // what was moved from is empty and can be used again
    EXPECT_EQ(from.size(), 1u);
  }
}
TEST(small_vector, destroys_what_it_holds) {
  const auto element = std::make_shared<int>(7);
  {
    Pointers list = counting(5, element);
    list.pop_back();
    EXPECT_EQ(element.use_count(), 5);
    list.clear();
    EXPECT_EQ(element.use_count(), 1);
    list.push_back(element);
  }
  EXPECT_EQ(element.use_count(), 1);
}

}  // namespace
}  // namespace taper::eager
