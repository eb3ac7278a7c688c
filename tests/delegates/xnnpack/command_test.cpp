// The command with XNNPACK: which of the kernels and the backend is faster.
#include <gmock/gmock.h>

#include "delegated.h"
#include "taper/tests/exporter/cli/taper_command.h"

namespace taper::cli {
namespace {

using testing::ContainsRegex, testing::HasSubstr, testing::Not;

constexpr int success = 0, failure = 1, usage = 2;

TEST(taper_profile, measures_the_kernels_and_each_backend) {
  delegates::xnnpack::delegate();
  const std::string model = tests::test_data("pt2/torchao_int8_dynamic.pt2").string();
  const Outcome o = taper_command("profile", model, "--backends", "--repeat", "5");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, HasSubstr("torchao_int8_dynamic.pt2: 1 thread, medians of 5 runs"));
  EXPECT_THAT(o.out, HasSubstr("\n  kernels  "));
  EXPECT_THAT(o.out,
              HasSubstr("ms  3 nodes in 1 delegate, 0 left; 100.0 % of the multiplications"));
  EXPECT_THAT(o.out, HasSubstr("\nchoose "));
}

TEST(taper_profile, shows_the_nodes_of_a_part_with_their_lines) {
  delegates::xnnpack::delegate();
  const std::string model = tests::test_data("pt2/v2_9_linear.pt2").string(),
                    program = tests::scratch_file("linear.taper").string();
  ASSERT_EQ(
      taper_command("export", model, "-o", program, "--dim", "x.0=2..8", "--backend", "xnnpack")
          .code,
      success);
  const Outcome o = taper_command("profile", program, "--repeat", "3", "--no-roof");
  ASSERT_EQ(o.code, success) << o.err;
  EXPECT_THAT(o.out, ContainsRegex("\n +[0-9.]+ +[0-9.]+ % .* xnnpack "));
  EXPECT_THAT(o.out, ContainsRegex("  Fully Connected \\(NC, F32\\)[A-Z ]* +linear at "));
  EXPECT_THAT(o.out, ContainsRegex("  Binary Elementwise \\(ND\\) +div"));
  EXPECT_THAT(o.out, Not(HasSubstr("relu at"))) << "it is a part of the product";
  const Outcome json = taper_command("profile", program, "--repeat", "3", "--no-roof", "--json");
  EXPECT_THAT(json.out, HasSubstr("\"nodes\""));
}

TEST(taper_profile, needs_a_model_to_compare_backends) {
  delegates::xnnpack::delegate();
  const Outcome o = taper_command("profile", "lenet.taper", "--backends");
  EXPECT_EQ(o.code, usage);
  EXPECT_THAT(o.err, HasSubstr("lenet.taper is not a .pt2 file"));
  const std::string model = tests::test_data("pt2/torchao_int8_dynamic.pt2").string();
  EXPECT_EQ(taper_command("profile", model, "--backends", "--json").code, usage);
  EXPECT_EQ(taper_command("profile", "no_such.pt2", "--backends").code, failure);
}

}  // namespace
}  // namespace taper::cli
