#include "taper/runtime/extension/llm/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "taper/runtime/extension/llm/stop_strings.h"

namespace taper::llm {
namespace {

using Logits = std::vector<float>;
using Ids = std::vector<TokenId>;

std::vector<int> draw(const SamplingOptions& options, const Logits& logits, int count) {
  Sampler sampler(options);
  std::vector<int> drawn(logits.size());
  for (int i = 0; i < count; ++i) {
    Logits copy = logits;
    ++drawn[static_cast<size_t>(sampler.sample(copy, Ids{}))];
  }
  return drawn;
}

TEST(sampler, draws_tokens_as_often_as_their_probabilities_say) {
  const std::vector<double> probabilities = {0.5, 0.25, 0.2, 0.05};
  Logits logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  constexpr int count = 20000;
  const std::vector<int> drawn = draw({}, logits, count);
  double chi_squared = 0;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const double expected = probabilities[i] * count;
    chi_squared += (drawn[i] - expected) * (drawn[i] - expected) / expected;
  }
  EXPECT_LT(chi_squared, 16.3);  // 3 degrees of freedom: one seed in a thousand lies above
}

TEST(sampler, gives_equal_tokens_for_equal_seeds) {
  const Logits logits(50, 0.0f);
  SamplingOptions one, other;
  other.seed = 1;
  EXPECT_EQ(draw(one, logits, 100), draw(one, logits, 100));
  EXPECT_NE(draw(one, logits, 100), draw(other, logits, 100));
}

TEST(sampler, takes_the_first_of_the_most_likely_tokens_at_temperature_zero) {
  SamplingOptions greedy;
  greedy.temperature = 0;
  Logits logits = {1, 3, 3, 2};
  EXPECT_EQ(Sampler(greedy).sample(logits, Ids{}), 1);
  greedy.bias = {{{3}, 5.0f}};
  logits = {1, 3, 3, 2};
  EXPECT_EQ(Sampler(greedy).sample(logits, Ids{}), 3);
}

TEST(sampler, says_that_no_token_is_left) {
  Logits logits = {-INFINITY, -INFINITY};
  EXPECT_EQ(Sampler({}).sample(logits, Ids{}), -1);
}

TEST(sampler, keeps_the_surprise_that_mirostat_is_asked_for) {
  // 1 / (i + 1), as words of a language are distributed
  Logits logits;
  for (int i = 0; i < 5000; ++i) logits.push_back(-std::log(static_cast<float>(i + 1)));
  SamplingOptions options;
  options.mirostat_tau = 4;
  Sampler sampler(options);
  double surprise = 0;
  constexpr int steps = 2000, warm_up = 500;
  for (int i = 0; i < steps; ++i) {
    Logits copy = logits;
    const TokenId token = sampler.sample(copy, Ids{});
    // the logits are now logarithms of the probabilities among which the token was drawn
    if (i >= warm_up) surprise -= copy[static_cast<size_t>(token)] / std::log(2.0);
  }
  EXPECT_NEAR(surprise / (steps - warm_up), 4, 0.2);
}

std::string stop(const std::vector<std::string>& strings, const std::vector<std::string>& pieces) {
  StopStrings stops(strings);
  std::string text;
  for (const std::string& piece : pieces) text += stops.push(piece) + '|';
  return text + stops.finish();
}

TEST(stop_strings, end_a_text_before_the_first_of_them) {
  EXPECT_EQ(stop({"END", "\n\n"}, {"a", "bEN", "Dc"}), "a|b||");
  EXPECT_EQ(stop({"END", "\n\n"}, {"aE", "Nb", "\n", "x\n\nEND"}), "a|ENb||\nx|");
  EXPECT_EQ(stop({""}, {"all"}), "all|");
}

TEST(stop_strings, give_back_what_waits_at_the_end) {
  EXPECT_EQ(stop({"aab"}, {"aa", "a", "a"}), "|a|a|aa");
}

}  // namespace
}  // namespace taper::llm
