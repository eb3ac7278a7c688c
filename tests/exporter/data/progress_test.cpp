#include "taper/exporter/data/progress.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace taper::data {
namespace {

TEST(progress, counts_the_steps_of_a_loop) {
  std::ostringstream out;
  std::vector<int> steps;
  for (int step : Progress(3, "training", {.out = &out})) steps.push_back(step);
  EXPECT_EQ(steps, (std::vector<int>{0, 1, 2}));
  EXPECT_THAT(out.str(),
              testing::StartsWith("training 100 % [############################] 3/3  "));
}

TEST(progress, shows_rate_time_left_and_values) {
  std::ostringstream out;
  Progress progress(4, "epoch 1", {.unit = "images", .units_per_step = 64, .out = &out});
  progress.set("loss", 0.5);
  progress.set("accuracy", 0.25);
  progress.set("loss", 0.125);
  progress.advance(2);
  EXPECT_THAT(progress.line(),
              testing::MatchesRegex("epoch 1  50 % .############## *. 2/4  [0-9.e+]+ images/s  "
                                    "0:00 left  loss 0.125  accuracy 0.25"));
}

TEST(progress, is_quiet_about_work_that_is_soon_done) {
  std::ostringstream out;
  for (int step : Progress(3, "x", {.out = &out, .quiet_seconds = 60})) (void)step;
  for (int step : Progress(3, "x", {.out = &out, .only_on_terminal = true})) (void)step;
  EXPECT_EQ(out.str(), "");
}

TEST(progress, counts_stages_without_a_rate) {
  std::ostringstream out;
  Progress progress(4, "", {.unit = "", .out = &out});
  progress.set_title("planning");
  progress.advance(3);
  EXPECT_EQ(progress.line(), "planning  75 % [#####################       ] 3/4  0:00");
}

TEST(progress, prints_its_last_state_once) {
  std::ostringstream out;
  {
    Progress progress(1, "x", {.out = &out});
    progress.advance();
    progress.finish();
  }
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

}  // namespace
}  // namespace taper::data
