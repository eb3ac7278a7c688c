#include "taper/exporter/roofline/multiply_adds.h"

#include <gtest/gtest.h>

namespace taper::roofline {
namespace {

TEST(multiply_adds, of_layers_of_resnet50_are_those_that_fvcore_counts) {
  EXPECT_EQ(multiply_adds({"convolution", {{1, 3, 224, 224}, {64, 3, 7, 7}}, {{1, 64, 112, 112}}}),
            118013952);
  EXPECT_EQ(multiply_adds({"linear", {{1, 2048}, {1000, 2048}, {1000}}, {{1, 1000}}}), 2048000);
}

TEST(multiply_adds, of_a_grouped_convolution_count_its_own_channels) {
  EXPECT_EQ(multiply_adds({"convolution", {{1, 32, 8, 8}, {32, 1, 3, 3}}, {{1, 32, 8, 8}}}),
            32 * 8 * 8 * 9);
}

// As many channels before as behind: the sizes do not tell that it is transposed.
TEST(multiply_adds, of_a_transposed_convolution_count_its_inputs) {
  Call call{"convolution", {{1, 4, 5, 5}, {4, 4, 2, 2}}, {{1, 4, 10, 10}}, true};
  EXPECT_EQ(multiply_adds(call), 4 * 5 * 5 * 4 * 2 * 2);
  call.transposed = false;
  EXPECT_EQ(multiply_adds(call), 4 * 10 * 10 * 4 * 2 * 2);
}

TEST(multiply_adds, of_the_backward_pass_count_each_gradient) {
  const Sizes dy = {2, 8, 6, 6}, x = {2, 4, 6, 6}, w = {8, 4, 3, 3};
  const double forward = multiply_adds({"convolution", {x, w}, {dy}});
  EXPECT_EQ(multiply_adds({"convolution_backward", {dy, x, w}, {x, w, {8}}}), 2 * forward);
  EXPECT_EQ(multiply_adds({"convolution_backward", {dy, x, w}, {w}}), forward);
}

TEST(multiply_adds, of_products_are_rows_times_depth_times_columns) {
  EXPECT_EQ(multiply_adds({"mm", {{3, 5}, {5, 7}}, {{3, 7}}}), 3 * 5 * 7);
  EXPECT_EQ(multiply_adds({"addmm", {{7}, {3, 5}, {5, 7}}, {{3, 7}}}), 3 * 5 * 7);
  EXPECT_EQ(multiply_adds({"bmm", {{2, 3, 5}, {2, 5, 7}}, {{2, 3, 7}}}), 2 * 3 * 5 * 7);
}

TEST(multiply_adds, are_0_where_nothing_is_multiplied) {
  EXPECT_EQ(multiply_adds({"relu", {{3}}, {{3}}}), 0);
  EXPECT_EQ(multiply_adds({"mm", {}, {}}), 0);
  EXPECT_EQ(multiply_adds({"convolution", {{1, 3, 4, 4}, {0, 3, 1, 1}}, {{1, 0, 4, 4}}}), 0);
}

}  // namespace
}  // namespace taper::roofline
