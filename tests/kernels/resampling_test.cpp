#include <cmath>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

struct Mode {
  const char* name;
  Ints in;
  Dims out;
};
const Mode modes[] = {{"nearest", {2, 3, 5}, {7}},
                      {"nearest", {2, 2, 3, 5}, {4, 3}},
                      {"nearest", {1, 2, 2, 3, 4}, {3, 2, 5}},
                      {"nearest-exact", {2, 3, 5}, {3}},
                      {"nearest-exact", {2, 2, 3, 5}, {4, 3}},
                      {"nearest-exact", {1, 2, 2, 3, 4}, {3, 2, 5}},
                      {"linear", {2, 3, 5}, {7}},
                      {"bilinear", {2, 2, 3, 5}, {4, 3}},
                      {"bicubic", {2, 2, 3, 5}, {4, 3}},
                      {"trilinear", {1, 2, 2, 3, 4}, {3, 2, 5}}};

TEST(interpolate, takes_any_strides_and_threads) {
  for (const Mode& m : modes) {
    const Tensor x = random_tensor(m.in);
    const auto f = [&] { return interpolate(scattered(x), m.out, m.name); };
    expect_same_bits(f(), interpolate(x, m.out, m.name));
    expect_same_bits_with_two_threads(f);
  }
}

TEST(interpolate, separates_into_its_dimensions_for_large_results) {
  const Tensor x = random_tensor({1, 2, 5, 4}, 1, DType::f64);
  for (const char* mode : {"bilinear", "bicubic"}) {
    const Tensor along = interpolate(x, {5, 700}, mode);
    const Tensor turned = interpolate(along.permute({0, 1, 3, 2}).contiguous(), {700, 90}, mode);
    const auto f = [&] { return interpolate(scattered(x), {90, 700}, mode); };
    EXPECT_LT(amax(abs(f() - turned.permute({0, 1, 3, 2})), {0, 1, 2, 3}).item(), 1e-12);
    expect_same_bits_with_two_threads(f);
  }
}

TEST(interpolate, is_differentiable_twice_in_every_mode) {
  for (const Mode& m : modes)
    for (const bool align : {false, true}) {
      const auto f = [&](const std::vector<Tensor>& v) {
        const Tensor y = interpolate(v[0], m.out, m.name, align);
        return sum(y * y * y);
      };
      expect_right_derivatives(f, {random_tensor(m.in, 1, DType::f64)});
    }
}

// The taps of these columns take 2^64 bytes and a few more.
TEST(interpolate, needs_nothing_for_no_images) {
  constexpr int64_t columns = 768614336404564651;
  for (const DType dtype : {DType::f32, DType::u8}) {
    const Tensor x = zeros({0, 1, 2, 2}, dtype);
    for (const char* mode : {"nearest", "bilinear", "bicubic"})
      EXPECT_EQ(interpolate(x, {1, columns}, mode).numel(), 0) << mode;
  }
}

TEST(interpolate, leaves_a_linear_function_as_it_is) {
  const Tensor x = reshape(arange(0, 12, 1, DType::f32), {1, 1, 12});
  const std::vector<float> y = interpolate(x, {23}, "linear", true).to_vector<float>();
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], static_cast<float>(i) / 2, 1e-5);
}

TEST(interpolate, of_bytes_rounds_each_of_its_two_steps) {
  const Tensor x = clamp(random_tensor({1, 3, 7, 9}) * 60 + 128, 0, 255).to(DType::u8);
  for (const char* mode : {"bilinear", "bicubic"})
    for (const Dims& size : {Dims{11, 5}, Dims{7, 20}, Dims{3, 9}, Dims{7, 9}}) {
      const std::vector<uint8_t> bytes = interpolate(x, size, mode).to_vector<uint8_t>();
      const std::vector<float> exact =
          clamp(interpolate(x.to(DType::f32), size, mode), 0, 255).to_vector<float>();
      ASSERT_EQ(bytes.size(), exact.size());
      for (size_t i = 0; i < bytes.size(); ++i)
        EXPECT_NEAR(static_cast<float>(bytes[i]), exact[i], 1.5f);
    }
}

// Against PyTorch 2.15.
TEST(interpolate, antialiased_weighs_what_lies_under_the_filter) {
  std::vector<double> picture;
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < 7; ++j) picture.push_back((7 * i * i + 13 * j * j + 29 * i * j) % 256);
  const Tensor x = Tensor::from(picture, {1, 1, 6, 7}), bytes = to(x, DType::u8);
  const auto elements = [](const Tensor& t) { return to(t, DType::f64).to_vector<double>(); };
  EXPECT_EQ(elements(interpolate(bytes, {3, 4}, "bilinear", false, true)),
            (std::vector<double>{26, 102, 149, 153, 89, 124, 129, 107, 141, 108, 136, 202}));
  EXPECT_EQ(elements(interpolate(bytes, {2, 9}, "bicubic", true, true)),
            (std::vector<double>{50, 88, 108, 104, 135, 135, 138, 148, 141, 156, 163, 114, 54, 154,
                                 135, 147, 207, 216}));
  const std::vector<double> want = {13.0436,  103.7139, 154.3478, 157.2813, 88.1647,  129.9254,
                                    129.2283, 94.5426,  148.0646, 103.1488, 132.9224, 216.281};
  const std::vector<double> got = elements(interpolate(x, {3, 4}, "bicubic", false, true));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4);
}
TEST(interpolate, antialiased_takes_any_strides_and_threads_and_is_differentiable) {
  for (const char* mode : {"bilinear", "bicubic"}) {
    const Tensor x = random_tensor({2, 3, 40, 30});
    const auto small = [&] { return interpolate(scattered(x), {11, 37}, mode, false, true); };
    expect_same_bits(small(), interpolate(x, {11, 37}, mode, false, true));
    expect_same_bits_with_two_threads(small);
    const auto f = [&](const std::vector<Tensor>& v) {
      const Tensor y = interpolate(v[0], {2, 5}, mode, false, true);
      return sum(y * y * y);
    };
    expect_right_derivatives(f, {random_tensor({1, 2, 5, 4}, 1, DType::f64)});
  }
}

TEST(interpolate, refuses_what_does_not_fit) {
  const Tensor x = ones({1, 2, 3, 4});
  EXPECT_THROW(interpolate(x, {3, 4}, "linear"), EagerError);
  EXPECT_THROW(interpolate(x, {3}, "bilinear"), EagerError);
  EXPECT_THROW(interpolate(x, {0, 4}, "bilinear"), EagerError);
  EXPECT_THROW(interpolate(x, {int64_t{1} << 40, int64_t{1} << 40}, "nearest"), EagerError);
  EXPECT_THROW(interpolate_by(x, {2, -1}, "nearest"), EagerError);
  EXPECT_THROW(interpolate_by(x, {2, NAN}, "nearest"), EagerError);
  EXPECT_THROW(interpolate_by(x, {2}, "nearest"), EagerError);
}

TEST(grid_sample, gives_the_image_for_the_identity) {
  const Tensor x = random_tensor({1, 2, 3, 5});
  std::vector<float> positions;
  for (int h = 0; h < 3; ++h)
    for (int w = 0; w < 5; ++w)
      positions.insert(positions.end(), {static_cast<float>(w) / 2 - 1, static_cast<float>(h) - 1});
  const Tensor grid = Tensor::from(positions, {1, 3, 5, 2});
  for (const char* mode : {"bilinear", "nearest", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      expect_same_bits(grid_sample(x, grid, mode, padding, true), x);
}

TEST(grid_sample, stays_inside_wherever_the_grid_points) {
  const float inf = INFINITY;
  const Tensor grid =
      Tensor::from<float>({NAN, 0, inf, -inf, 1e30f, -1e30f, -3e9f, 3e9f, 7, -9}, {1, 1, 5, 2});
  const Tensor x = ones({1, 1, 3, 4});
  for (const char* mode : {"bilinear", "nearest", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const bool align : {false, true}) {
        const Tensor input = x.detach(), at = grid.detach();
        input.set_requires_grad(), at.set_requires_grad();
        const Tensor y = grid_sample(input, at, mode, padding, align);
        EXPECT_EQ(to_string(y.sizes()), "(1, 1, 1, 5)");
        sum(y).backward();
      }
}

TEST(grid_sample, is_differentiable_twice_in_images_and_volumes) {
  // positions between elements, where the derivatives are continuous
  const Tensor plane = random_tensor({1, 2, 2, 2}, 5, DType::f64) * 0.7 + 0.013,
               space = random_tensor({1, 1, 2, 2, 3}, 6, DType::f64) * 0.6 + 0.017;
  for (const char* mode : {"bilinear", "nearest", "bicubic"})
    for (const char* padding : {"zeros", "border", "reflection"}) {
      const auto f = [&](const std::vector<Tensor>& v) {
        const Tensor y = grid_sample(v[0], v[1], mode, padding);
        return sum(y * y * y);
      };
      expect_right_derivatives(f, {random_tensor({1, 2, 3, 4}, 1, DType::f64), plane.detach()});
      if (std::string(mode) != "bicubic")
        expect_right_derivatives(f,
                                 {random_tensor({1, 1, 2, 3, 4}, 1, DType::f64), space.detach()});
    }
}

TEST(grid_sample, refuses_what_does_not_fit) {
  const Tensor x = ones({1, 2, 3, 4}), volume = ones({1, 2, 3, 4, 5});
  EXPECT_THROW(grid_sample(x, ones({2, 1, 1, 2})), EagerError);  // another batch
  EXPECT_THROW(grid_sample(x, ones({1, 1, 1, 3})), EagerError);  // three coordinates
  EXPECT_THROW(grid_sample(x, ones({1, 1, 1, 2}), "cubic"), EagerError);
  EXPECT_THROW(grid_sample(volume, ones({1, 1, 1, 1, 3}), "bicubic"), EagerError);
  EXPECT_THROW(grid_sample(zeros({1, 2, 0, 4}), ones({1, 1, 1, 2})), EagerError);
}

TEST(pixel_shuffle, and_its_inverse_copy_every_element_once) {
  const Tensor x = random_tensor({2, 8, 3, 5}), y = pixel_shuffle(x, 2);
  EXPECT_EQ(to_string(y.sizes()), "(2, 2, 6, 10)");
  expect_same_bits(pixel_unshuffle(y, 2), x);
  Tensor same = pixel_shuffle(x, 1);
  same.zero_();
  EXPECT_NE(x.to_vector<float>()[0], 0);  // memory of its own
  EXPECT_THROW(pixel_shuffle(x, 3), EagerError);
  EXPECT_THROW(pixel_unshuffle(x, 2), EagerError);
  EXPECT_THROW(channel_shuffle(x, 3), EagerError);
}

}  // namespace
}  // namespace taper::eager
