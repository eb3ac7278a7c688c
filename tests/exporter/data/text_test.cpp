#include "taper/exporter/data/text.h"

#include <gtest/gtest.h>

namespace taper::data {
namespace {

TEST(characters, number_the_bytes_of_the_text_in_order) {
  const Characters text("banana!", 3);
  EXPECT_EQ(text.vocabulary_size(), 4);  // ! a b n
  EXPECT_EQ(text.encode("ban!"), (std::vector<int64_t>{2, 1, 3, 0}));
  EXPECT_EQ(text.decode(text.encode("nab")), "nab");
  EXPECT_THROW(text.encode("x"), std::invalid_argument);
  EXPECT_THROW(text.decode(std::vector<int64_t>{4}), std::out_of_range);
}

TEST(characters, give_windows_and_what_follows) {
  const Characters text("banana!", 3);
  EXPECT_EQ(text.size(), 4);
  const Batch batch = text.batch(std::vector<int64_t>{0, 3}, 0);
  EXPECT_EQ(text.decode(batch.inputs.to_vector<int64_t>()), "banana");
  EXPECT_EQ(text.decode(batch.targets.to_vector<int64_t>()), "anana!");
  EXPECT_THROW(text.batch(std::vector<int64_t>{4}, 0), std::out_of_range);
}

TEST(characters, split_into_parts_with_one_vocabulary) {
  const Characters text("aaaabbbb", 2);
  EXPECT_EQ(text.part(0, 0.5).size(), 2);
  EXPECT_EQ(text.part(0.5, 1).vocabulary_size(), 2);
  EXPECT_THROW(text.part(0, 0.25), std::invalid_argument);
}

TEST(characters, need_a_text_longer_than_the_context) {
  EXPECT_THROW(Characters("abc", 3), std::invalid_argument);
}

TEST(tokens, are_cut_into_windows_one_behind_the_other) {
  const Tokens text({5, 6, 7, 8, 9, 10, 11, 12}, 3);
  EXPECT_EQ(text.size(), 2);
  const Batch batch = text.batch(std::vector<int64_t>{1, 0}, 0);
  EXPECT_EQ(batch.inputs.to_vector<int64_t>(), (std::vector<int64_t>{8, 9, 10, 5, 6, 7}));
  EXPECT_EQ(batch.targets.to_vector<int64_t>(), (std::vector<int64_t>{9, 10, 11, 6, 7, 8}));
  EXPECT_THROW(text.batch(std::vector<int64_t>{2}, 0), std::out_of_range);
  EXPECT_THROW(Tokens({1, 2, 3}, 3), std::invalid_argument);
}

}  // namespace
}  // namespace taper::data
