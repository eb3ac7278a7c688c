#include "taper/exporter/eager/ops/padding.h"

#include "taper/tests/kernels/eager_check.h"

namespace taper::eager {
namespace {

Tensor numbers(const Ints& sizes) {
  int64_t count = 1;
  for (const int64_t s : sizes) count *= s;
  return reshape(arange(0, count, 1, DType::f32), Dims(sizes.begin(), sizes.end()));
}

TEST(pad, repeats_the_input_in_its_own_way) {
  const Tensor x = numbers({1, 4});
  const auto padded = [&](const char* mode, const Dims& by) {
    return pad(x, by, mode).to_vector<float>();
  };
  using Values = std::vector<float>;
  EXPECT_EQ(padded("constant", {1, 2}), (Values{0, 0, 1, 2, 3, 0, 0}));
  EXPECT_EQ(padded("reflect", {2, 3}), (Values{2, 1, 0, 1, 2, 3, 2, 1, 0}));
  EXPECT_EQ(padded("replicate", {2, 1}), (Values{0, 0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(padded("circular", {2, 4}), (Values{2, 3, 0, 1, 2, 3, 0, 1, 2, 3}));
  EXPECT_EQ(padded("replicate", {-3, 2}), (Values{3, 3, 3}));
  EXPECT_EQ(padded("circular", {-1, 2}), (Values{1, 2, 3, 1, 2}));
}

TEST(pad, takes_any_strides_and_threads) {
  const Tensor x = random_tensor({2, 3, 5, 4});
  for (const char* mode : {"reflect", "replicate", "circular"}) {
    const auto f = [&] { return pad(scattered(x), {1, 2, 3, 0}, mode); };
    expect_same_bits(f(), pad(x, {1, 2, 3, 0}, mode));
    expect_same_bits_with_two_threads(f);
  }
}

TEST(pad, is_differentiable_twice_in_every_mode_and_dimension) {
  for (const char* mode : {"reflect", "replicate", "circular"})
    for (size_t n = 1; n <= 3; ++n) {
      const auto f = [&](const std::vector<Tensor>& v) {
        const Dims by{1, 2, 2, 1, 0, 1};
        const Tensor y = pad(v[0], Dims(by.begin(), by.begin() + static_cast<int>(2 * n)), mode);
        return sum(y * y * y);
      };
      expect_right_derivatives(f, {random_tensor(n == 1   ? Ints{2, 3}
                                                 : n == 2 ? Ints{1, 3, 4}
                                                          : Ints{1, 2, 3, 4},
                                                 1, DType::f64)});
    }
}

TEST(pad, refuses_what_does_not_fit) {
  const Tensor x = ones({2, 3, 4});
  EXPECT_THROW(pad(x, {4, 0}, "reflect"), EagerError);  // reaches over the whole row
  EXPECT_THROW(pad(x, {5, 0}, "circular"), EagerError);
  EXPECT_THROW(pad(x, {-5, 0}, "replicate"), EagerError);    // nothing is left
  EXPECT_THROW(pad(x, {1, 0, 1}, "replicate"), EagerError);  // half a pair
  EXPECT_THROW(pad(x, {1, 1}, "mirror"), EagerError);
  EXPECT_THROW(pad(x, {1, 1}, "reflect", 2.0), EagerError);  // a value that is not used
  EXPECT_THROW(pad(zeros({2, 0}), {1, 1}, "replicate"), EagerError);
}

}  // namespace
}  // namespace taper::eager
