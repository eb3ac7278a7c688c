// The search for levels, on models that are formulas.
#include "taper/exporter/quantize/search.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>

#include "taper/tests/support/throw_message.h"

namespace taper::quantize {
namespace {

/// Layers whose noises add up. The metric is what they leave of 1.
struct Additive {
  std::vector<SearchLayer> layers;
  std::vector<std::vector<double>> noises;

  double noise_of(const Levels& levels) const {
    double sum = 0;
    for (size_t i = 0; i < levels.size(); ++i) sum += noises[i][levels[i]];
    return sum;
  }
  int64_t bytes_of(const Levels& levels) const {
    int64_t sum = 0;
    for (size_t i = 0; i < levels.size(); ++i) sum += layers[i].bytes[levels[i]];
    return sum;
  }
  Score score(const Levels& levels) const {
    const double noise = noise_of(levels);
    return {1 - noise, noise};
  }
  SearchResult search(const Goal& goal) const {
    return search_levels(layers, goal, [&](const Levels& l) { return score(l); });
  }
  /// The smallest size that meets the goal, out of all levels.
  int64_t least_bytes(const Goal& goal) const {
    int64_t least = std::numeric_limits<int64_t>::max();
    Levels levels(layers.size(), 0);
    for (;;) {
      if (goal.is_met_by(score(levels).metric)) least = std::min(least, bytes_of(levels));
      size_t i = 0;
      while (i < levels.size() && ++levels[i] == layers[i].bytes.size()) levels[i++] = 0;
      if (i == levels.size()) return least;
    }
  }
};

/// Each level has half the bytes of the one before, and about four times its noise.
Additive random_layers(unsigned seed, size_t count, size_t levels) {
  std::mt19937 random(seed);
  const auto number = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  Additive model;
  for (size_t i = 0; i < count; ++i) {
    SearchLayer layer{"layer " + std::to_string(i), {static_cast<int64_t>(number(1e3, 1e5))}, {}};
    std::vector<double> noises = {0};
    double noise = std::exp(number(-12, -6));
    for (size_t l = 1; l < levels; ++l) {
      layer.bytes.push_back(layer.bytes.back() / 2);
      noises.push_back(noise);
      noise *= number(2, 8);
    }
    model.layers.push_back(layer), model.noises.push_back(noises);
  }
  return model;
}

TEST(search_levels, comes_near_the_smallest_size) {
  double sum = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Additive model = random_layers(seed, 5, 4);
    const Goal goal{1 - model.noise_of({2, 2, 2, 2, 2}), false};
    const SearchResult found = model.search(goal);
    EXPECT_TRUE(goal.is_met_by(model.score(found.best.levels).metric));
    EXPECT_EQ(found.best.bytes, model.bytes_of(found.best.levels));
    const double ratio =
        static_cast<double>(found.best.bytes) / static_cast<double>(model.least_bytes(goal));
    EXPECT_LE(ratio, 1.15) << seed;
    sum += ratio;
  }
  EXPECT_LE(sum / 20, 1.03);
}

TEST(search_levels, needs_fewer_measurements_with_errors_that_are_known) {
  Additive model = random_layers(5, 12, 5);
  const Goal goal{1 - model.noise_of(Levels(12, 2)), false};
  const SearchResult all = model.search(goal);
  for (size_t i = 0; i < model.layers.size(); ++i)
    for (const double noise : model.noises[i]) model.layers[i].errors.push_back(7 * noise);
  const SearchResult few = model.search(goal);
  EXPECT_EQ(few.best.levels, all.best.levels);
  EXPECT_EQ(few.measured.size() + 12 * 2, all.measured.size());
}

TEST(search_levels, measures_little_where_everything_may_be_small) {
  const SearchResult found = random_layers(1, 30, 4).search({-1e9, false});
  EXPECT_EQ(found.measured.size(), 2u);
  EXPECT_THAT(found.best.levels, testing::Each(3));
}

TEST(search_levels, goes_on_where_noises_were_too_careful) {
  // the noise says that layers 0 and 1 do harm, but the metric hears layer 2 alone
  const std::vector<SearchLayer> layers = {
      {"a", {100, 10}, {}}, {"b", {100, 10}, {}}, {"c", {100, 10}, {}}};
  const auto measure = [](const Levels& l) {
    return Score{l[2] == 0 ? 1.0 : 0.0, static_cast<double>(10 * l[0] + 10 * l[1] + l[2])};
  };
  EXPECT_THAT(search_levels(layers, {0.5, false}, measure).best.levels,
              testing::ElementsAre(1, 1, 0));
}

TEST(search_levels, tries_all_levels_of_a_layer_that_is_left) {
  // the first smaller level does harm, and the second does not
  const std::vector<SearchLayer> layers = {{"a", {100, 50, 10}, {}}, {"b", {100, 10, 1}, {}}};
  const auto measure = [](const Levels& l) {
    return Score{l[0] == 1 || l[1] == 2 ? 0.0 : 1.0, static_cast<double>(9 * l[0] + l[1])};
  };
  EXPECT_THAT(search_levels(layers, {0.5, false}, measure).best.levels, testing::ElementsAre(2, 1));
}

TEST(search_levels, takes_goals_that_are_upper_bounds) {
  const std::vector<SearchLayer> layers = {{"a", {100, 10}, {}}, {"b", {100, 10}, {}}};
  const auto perplexity = [](const Levels& l) {
    const auto noise = static_cast<double>(l[0] + 3 * l[1]);
    return Score{5 + noise, noise};
  };
  const Goal goal{6.5, true};
  const SearchResult found = search_levels(layers, goal, perplexity);
  EXPECT_THAT(found.best.levels, testing::ElementsAre(1, 0));
  // sizes fall, and what they cost grows
  std::vector<int64_t> bytes;
  for (const SearchPoint& p : found.curve(goal)) bytes.push_back(p.bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(200, 110, 20));
}

TEST(search_levels, refuses_a_goal_that_the_model_misses) {
  const std::vector<SearchLayer> layers = {{"a", {100, 10}, {}}};
  for (const double metric : {0.9, std::nan("")})
    EXPECT_EXPORT_ERROR(search_levels(layers, {0.95, false},
                                      [&](const Levels&) {
                                        return Score{metric, 0};
                                      }),
                        "before it is quantized, so nothing meets the goal of at least 0.95");
  EXPECT_EXPORT_ERROR(search_levels(layers, {0.95, false, true},
                                    [](const Levels&) {
                                      return Score{0.9, 0};
                                    }),
                      "the model reaches 0.9 after pruning, before it is quantized");
}

TEST(search_levels, bears_noises_that_are_no_numbers) {
  const std::vector<SearchLayer> layers = {{"a", {100, 10, 1}, {}}, {"b", {100, 10, 1}, {}}};
  const double infinite = std::numeric_limits<double>::infinity();
  const auto measure = [&](const Levels& l) {
    const bool broken = l[0] == 2 || l[1] > 0;
    return Score{broken ? std::nan("") : 1, l[1] == 2 ? std::nan("") : broken ? infinite : 0.1};
  };
  const SearchResult found = search_levels(layers, {0.5, false}, measure);
  EXPECT_THAT(found.best.levels, testing::ElementsAre(1, 0));
  EXPECT_EQ(found.curve({0.5, false}).size(), 1u);
}

TEST(search_levels, tells_how_much_is_done) {
  size_t last = 0, end = 0;
  const Additive model = random_layers(3, 4, 3);
  const Goal goal{1 - model.noise_of({1, 1, 1, 1}), false};
  const SearchResult found = search_levels(
      model.layers, goal, [&](const Levels& l) { return model.score(l); },
      [&](size_t done, size_t all) {
        EXPECT_LE(done, all);
        EXPECT_GE(done, last);
        last = done, end = all;
      });
  EXPECT_EQ(last, end);
  EXPECT_EQ(last, found.measured.size());
}

}  // namespace
}  // namespace taper::quantize
