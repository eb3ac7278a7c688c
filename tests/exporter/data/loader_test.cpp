#include "taper/exporter/data/loader.h"

#include <gtest/gtest.h>

#include <set>

namespace taper::data {
namespace {

/// Example i is (i, seed).
struct Numbers : Dataset {
  int64_t count;
  explicit Numbers(int64_t n) : count(n) {}
  int64_t size() const override { return count; }
  Batch batch(std::span<const int64_t> examples, uint64_t seed) const override {
    const auto n = static_cast<int64_t>(examples.size());
    const std::vector<int64_t> seeds(examples.size(), static_cast<int64_t>(seed));
    return {Tensor::from(std::vector<int64_t>(examples.begin(), examples.end()), {n}),
            Tensor::from(seeds, {n})};
  }
};

std::vector<int64_t> epoch_of(Loader& loader) {
  std::vector<int64_t> all;
  for (auto [numbers, seeds] : loader)
    for (const int64_t i : numbers.to_vector<int64_t>()) all.push_back(i);
  return all;
}

TEST(loader, gives_every_example_once_in_order) {
  Loader loader(Numbers(10), {.batch_size = 4});
  EXPECT_EQ(loader.size(), 3);
  std::vector<size_t> sizes;
  for (auto [numbers, seeds] : loader) sizes.push_back(numbers.to_vector<int64_t>().size());
  EXPECT_EQ(sizes, (std::vector<size_t>{4, 4, 2}));
  EXPECT_EQ(epoch_of(loader), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(loader, drops_a_smaller_last_batch_when_asked) {
  Loader loader(Numbers(10), {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(loader.size(), 2);
  EXPECT_EQ(epoch_of(loader).size(), 8u);
}

TEST(loader, shuffles_anew_in_every_epoch_and_alike_for_one_seed) {
  const LoaderOptions options{.batch_size = 7, .shuffle = true, .seed = 3};
  Loader a(Numbers(50), options), b(Numbers(50), options),
      other(Numbers(50), {.batch_size = 7, .shuffle = true, .seed = 4});
  const std::vector<int64_t> first = epoch_of(a), second = epoch_of(a);
  EXPECT_NE(first, second);
  EXPECT_EQ(epoch_of(b), first);
  EXPECT_EQ(epoch_of(b), second);
  EXPECT_NE(epoch_of(other), first);
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 50u);
}

TEST(loader, gives_each_epoch_another_seed_for_augmentation) {
  Loader loader(Numbers(2), {.batch_size = 2});
  std::set<int64_t> seeds;
  for (int epoch = 0; epoch < 3; ++epoch)
    for (auto [numbers, seed] : loader) seeds.insert(seed.to_vector<int64_t>()[0]);
  EXPECT_EQ(seeds.size(), 3u);
}

TEST(loader, takes_an_empty_dataset_but_no_empty_batches) {
  Loader empty(Numbers(0), {.batch_size = 4});
  EXPECT_TRUE(epoch_of(empty).empty());
  EXPECT_THROW(Loader(Numbers(1), {.batch_size = 0}), std::invalid_argument);
}

TEST(random, is_uniform_below_a_bound) {
  Random random(1);
  int count[6] = {};
  for (int i = 0; i < 60000; ++i) ++count[random.below(6)];
  for (const int c : count) EXPECT_NEAR(c, 10000, 500);
}

}  // namespace
}  // namespace taper::data
