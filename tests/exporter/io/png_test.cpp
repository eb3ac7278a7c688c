#include "taper/exporter/io/png.h"

#include "taper/tests/exporter/io/io_testing.h"
#include "taper/tests/support/data.h"

namespace taper::io {
namespace {

TEST(png, gives_back_pictures_of_1_to_4_channels) {
  if (!has_png()) GTEST_SKIP() << "built without libpng";
  for (int64_t channels = 1; channels <= 4; ++channels) {
    const auto path = tests::scratch_file("picture.png");
    const Array picture = counted(DType::u8, {5, 7, channels});
    write_png(path, picture);
    expect_same(read_png(path), picture);
  }
}

TEST(png, reads_the_demonstration_digit) {
  if (!has_png()) GTEST_SKIP() << "built without libpng";
  const Array digit = read_png(tests::test_data("../../examples/train_lenet/mnist/digit_7.png"));
  EXPECT_EQ(digit.describe(), "u8 (28, 28, 1)");
}

TEST(png, refuses_every_shortened_file) {
  if (!has_png()) GTEST_SKIP() << "built without libpng";
  const auto path = tests::scratch_file("picture.png");
  write_png(path, counted(DType::u8, {9, 6, 3}));
  const Bytes whole = read_file(path);
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_THROW(parse_png(std::span(whole).first(n), "x"), FileError) << n;
  EXPECT_FILE_ERROR(parse_png(bytes_of("\xff\xd8\xff\xe0 a JPEG file"), "x.jpg"),
                    "x.jpg: not a PNG file");
}

TEST(png, refuses_arrays_that_are_no_picture) {
  EXPECT_FILE_ERROR(write_png("x.png", counted(DType::f32, {2, 2, 3})), "not from f32 (2, 2, 3)");
  EXPECT_FILE_ERROR(write_png("x.png", counted(DType::u8, {2, 2, 5})), "not from u8 (2, 2, 5)");
}

}  // namespace
}  // namespace taper::io
