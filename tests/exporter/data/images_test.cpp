#include "taper/exporter/data/images.h"

#include <gtest/gtest.h>

#include "taper/exporter/io/file.h"
#include "taper/tests/support/data.h"

namespace taper::data {
namespace {

/// Two grey 2 x 3 pictures: pixels 0, 1, … 11, labels 5 and 6.
Images tiny() {
  io::Array pixels = io::Array::zeros(DType::u8, {2, 1, 2, 3}),
            labels = io::Array::zeros(DType::i64, {2});
  for (uint8_t i = 0; i < 12; ++i) pixels.values<uint8_t>()[i] = i;
  labels.values<int64_t>()[0] = 5, labels.values<int64_t>()[1] = 6;
  return Images(pixels, labels);
}

std::vector<float> pixels_of(const Images& images, int64_t example, uint64_t seed = 0) {
  std::vector<float> pixels = images.batch(std::vector{example}, seed).inputs.to_vector<float>();
  for (float& p : pixels) p *= 255;
  return pixels;
}

TEST(mnist, reads_the_part_that_ships_with_taper) {
  const Images train = mnist(tests::test_data("../../examples/train_lenet/mnist/train")),
               test = mnist(tests::test_data("../../examples/train_lenet/mnist/t10k"));
  EXPECT_EQ(train.size(), 20000);
  EXPECT_EQ(test.size(), 10000);
  const int64_t first_labels[] = {7, 2, 1, 0, 4};
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(test.label(i), first_labels[i]);
  const auto [images, labels] = test.batch(std::vector<int64_t>{0, 1}, 0);
  EXPECT_EQ(eager::to_string(images.sizes()), "(2, 1, 28, 28)");
  EXPECT_EQ(labels.to_vector<int64_t>(), (std::vector<int64_t>{7, 2}));
}

TEST(mnist, names_a_missing_file) { EXPECT_THROW(mnist("no/such/train"), io::FileError); }

TEST(cifar10, reads_records_and_refuses_others) {
  const auto path = tests::scratch_file("two.bin");
  io::Bytes file(2 * 3073, std::byte{3});
  file[3073] = std::byte{9};
  io::write_file(path, file);
  const Images images = cifar10(path);
  EXPECT_EQ(images.size(), 2);
  EXPECT_EQ(images.label(1), 9);
  EXPECT_EQ(cifar10({path, path}).size(), 4);
  file[3073] = std::byte{10};
  io::write_file(path, file);
  EXPECT_THROW(cifar10(path), io::FileError);
  file.pop_back();
  io::write_file(path, file);
  EXPECT_THROW(cifar10(path), io::FileError);
}

TEST(cifar10, reads_the_published_pictures) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "datasets/cifar10/cifar10_train_first1000.bin.gz");
  const Images images = cifar10(file);
  EXPECT_EQ(images.size(), 1000);
  EXPECT_EQ(images.label(0), 6);  // a frog
}

TEST(images, are_divided_by_255_and_normalised) {
  const Batch batch = tiny().normalize({0.5f}, {0.25f}).batch(std::vector<int64_t>{1, 0}, 0);
  EXPECT_EQ(batch.inputs.to_vector<float>()[0], (6 / 255.f - 0.5f) / 0.25f);
  EXPECT_EQ(batch.targets.to_vector<int64_t>(), (std::vector<int64_t>{6, 5}));
}

TEST(images, are_mirrored_by_chance) {
  const Images flipped = tiny().random_flip();
  int mirrored = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::vector<float> p = pixels_of(flipped, 0, seed);
    EXPECT_EQ(p, pixels_of(flipped, 0, seed)) << "the same seed gives the same picture";
    mirrored += p[0] > p[2];
    EXPECT_FLOAT_EQ(p[1], 1);
  }
  EXPECT_GT(mirrored, 25);
  EXPECT_LT(mirrored, 75);
}

TEST(images, are_moved_by_up_to_the_padding) {
  const Images moved = tiny().random_crop(1);
  bool seen[3][3] = {};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const std::vector<float> p = pixels_of(moved, 1, seed);  // 6 7 8 / 9 10 11, surrounded by zeros
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        bool same = true;
        for (int y = 0; y < 2; ++y) {
          for (int x = 0; x < 3; ++x) {
            const int from_y = y + dy, from_x = x + dx;
            const bool inside = from_y >= 0 && from_y < 2 && from_x >= 0 && from_x < 3;
            same &= std::abs(p[static_cast<size_t>(3 * y + x)] -
                             static_cast<float>(inside ? 6 + 3 * from_y + from_x : 0)) < 1e-3f;
          }
        }
        seen[dy + 1][dx + 1] |= same;
      }
    }
  }
  for (const auto& row : seen)
    for (const bool place : row) EXPECT_TRUE(place);
}

TEST(images, have_ranges) {
  EXPECT_EQ(tiny().range(1, 2).label(0), 6);
  EXPECT_THROW(tiny().range(1, 3), std::out_of_range);
  EXPECT_THROW(tiny().range(0, 1).label(1), std::out_of_range);
}

TEST(images, refuse_arrays_that_do_not_fit) {
  EXPECT_THROW(Images(io::Array::zeros(DType::u8, {2, 1, 2, 3}), io::Array::zeros(DType::i64, {3})),
               std::invalid_argument);
  EXPECT_THROW(
      Images(io::Array::zeros(DType::f32, {2, 1, 2, 3}), io::Array::zeros(DType::i64, {2})),
      std::invalid_argument);
  EXPECT_THROW(tiny().normalize({0.5f, 0.5f}, {1, 1}), std::invalid_argument);
}

}  // namespace
}  // namespace taper::data
