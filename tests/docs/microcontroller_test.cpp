// The program of docs/microcontroller.md, with the file that the exporter there writes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "lenet.h"
#include "taper/runtime/runtime.h"

namespace firmware {
#include "fixed_size.inc"
}

namespace {

TEST(documentation, runs_a_program_with_fixed_sizes_from_a_plain_pointer) {
  const std::vector<float> image(28 * 28, 0.5f);  // exactly one picture
  std::array<float, 10> scores{};
  ASSERT_EQ(firmware::run(image.data(), scores.data()), taper::Error::ok);
  EXPECT_TRUE(std::ranges::all_of(scores, [](float x) { return std::isfinite(x) && x != 0; }));
}

}  // namespace
