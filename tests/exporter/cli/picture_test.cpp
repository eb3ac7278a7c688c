#include "taper/exporter/cli/picture.h"

#include <gmock/gmock.h>

#include "taper/exporter/base/error.h"

namespace taper::cli {
namespace {

using testing::ElementsAre;
using testing::FloatEq;

io::Array picture(int64_t height, int64_t width, int64_t channels,
                  const std::vector<uint8_t>& samples) {
  return io::Array::of<uint8_t>({height, width, channels}, std::span<const uint8_t>(samples));
}

TEST(tensor_of_picture, scales_grey_to_one_and_takes_any_batch_extent) {
  const io::Array x =
      tensor_of_picture(picture(1, 3, 1, {0, 51, 255}), {any_extent, 1, 1, 3}, {}, "p.png");
  EXPECT_THAT(x.sizes, ElementsAre(1, 1, 1, 3));
  EXPECT_THAT(x.values<float>(), ElementsAre(0, FloatEq(0.2f), 1));
}

TEST(tensor_of_picture, puts_colours_into_channels_and_normalizes_each) {
  const io::Array x =
      tensor_of_picture(picture(1, 2, 3, {255, 0, 51, 0, 255, 51}), {3, any_extent, any_extent},
                        {.scale = {{0.5, 0, 0}, {0.5, 1, 2}}}, "p.png");
  EXPECT_THAT(x.values<float>(), ElementsAre(1, -1, 0, 1, FloatEq(0.1f), FloatEq(0.1f)));
}

TEST(tensor_of_picture, converts_between_grey_and_colour_and_drops_transparency) {
  const io::Array grey =
      tensor_of_picture(picture(1, 1, 4, {255, 255, 255, 7}), {1, 1}, {}, "p.png");
  EXPECT_THAT(grey.values<float>(), ElementsAre(FloatEq(1)));
  const io::Array colour = tensor_of_picture(picture(1, 1, 2, {255, 7}), {1, 3, 1, 1}, {}, "p.png");
  EXPECT_THAT(colour.values<float>(), ElementsAre(1, 1, 1));
}

TEST(tensor_of_picture, refuses_what_does_not_fit_and_says_the_sizes) {
  const io::Array p = picture(2, 2, 1, {0, 0, 0, 0});
  EXPECT_THROW(tensor_of_picture(p, {10}, {}, "p.png"), ExportError);
  EXPECT_THROW(tensor_of_picture(p, {8, 1, 2, 2}, {}, "p.png"), ExportError);
  EXPECT_THROW(tensor_of_picture(p, {1, 1, 2, 2}, {.scale = {{0, 0}, {1}}}, "p.png"), ExportError);
  try {
    tensor_of_picture(p, {any_extent, 1, 28, 28}, {}, "p.png");
    FAIL();
  } catch (const ExportError& e) {
    EXPECT_STREQ(e.what(),
                 "p.png: the picture is 2x2, the input takes 28x28; give --resize and --crop");
  }
}

TEST(fitted, resizes_the_shorter_side_and_cuts_the_middle) {
  std::vector<uint8_t> pixels;
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 8; ++column) pixels.push_back(static_cast<uint8_t>(column * 20));
  const io::Array wide = io::Array::of<uint8_t>({4, 8, 1}, pixels);
  const io::Array small = fitted(wide, {.resize = 2}, "p.png");
  EXPECT_THAT(small.sizes, ElementsAre(2, 4, 1));
  // what Pillow's resize((4, 2), BILINEAR) gives: triangles of twice the step
  EXPECT_THAT(small.values<uint8_t>(), ElementsAre(14, 50, 90, 126, 14, 50, 90, 126));
  const io::Array square = fitted(wide, {.crop = 2}, "p.png");
  EXPECT_THAT(square.values<uint8_t>(), ElementsAre(60, 80, 60, 80));
  EXPECT_THROW(fitted(wide, {.crop = 5}, "p.png"), ExportError);
}

TEST(tensor_of_picture, gives_blue_first_if_asked) {
  const io::Array x =
      tensor_of_picture(picture(1, 1, 3, {255, 0, 51}), {3, 1, 1}, {.bgr = true}, "p.png");
  EXPECT_THAT(x.values<float>(), ElementsAre(FloatEq(0.2f), 0, 1));
}

}  // namespace
}  // namespace taper::cli
