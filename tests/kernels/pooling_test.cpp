#include "taper/exporter/eager/ops/pooling.h"

#include <gmock/gmock.h>

#include <cmath>

#include "taper/tests/kernels/eager_check.h"
#include "taper/tests/support/throw_message.h"

namespace taper::eager {
namespace {

TEST(max_pool2d, takes_the_largest_of_each_window) {
  const Tensor x =
      Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, {1, 4, 4});
  EXPECT_EQ(max_pool2d(x, 2).to_vector<float>(), (std::vector<float>{6, 8, 14, 16}));
  EXPECT_EQ(max_pool2d(x, 3, 2, 1).to_vector<float>(), (std::vector<float>{6, 8, 14, 16}));
}

TEST(max_pool2d, names_the_first_of_equal_maxima_and_any_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({7, 7, 1, nan, 7, 7, 2, 9}, {1, 2, 4});
  const auto [values, indices] = max_pool2d_with_indices(x, 2);
  EXPECT_EQ(values.to_vector<float>()[0], 7);
  EXPECT_TRUE(std::isnan(values.to_vector<float>()[1]));
  EXPECT_EQ(indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 3}));
}

TEST(max_pool2d, counts_windows_that_ceil_mode_adds) {
  const Tensor x = random_tensor({1, 1, 5, 5});
  EXPECT_EQ(to_string(max_pool2d(x, 2).sizes()), "(1, 1, 2, 2)");
  EXPECT_EQ(to_string(max_pool2d(x, 2, 2, 0, 1, true).sizes()), "(1, 1, 3, 3)");
  EXPECT_EQ(to_string(max_pool2d(x, 2, 3, 1, 1, true).sizes()),
            "(1, 1, 2, 2)");  // a third would start in the padding
}

TEST(max_pool, hands_no_gradient_on_from_windows_of_padding_only) {
  const Ints sizes[] = {{1, 1, 3, 3}, {1, 1, 3, 3, 3}};
  for (const Ints& size : sizes) {  // taps at -2 and 2, -1 and 3, 0 and 4: the second meets nothing
    const auto pooled = [&](const Tensor& x) {
      return size.size() == 4 ? max_pool2d_with_indices(x, 2, 1, 2, 4)
                              : max_pool3d_with_indices(x, 2, 1, 2, 4);
    };
    const Tensor x = random_tensor(size, 5, DType::f64);
    const auto [values, indices] = pooled(x);
    const Tensor outside = lt(indices, Scalar(0));
    expect_same_bits(isinf(values), outside);
    EXPECT_EQ(sum(outside).item(), size.size() == 4 ? 5 : 19);  // of 9 and 27
    expect_right_derivatives(
        [&](const std::vector<Tensor>& v) {
          const Tensor y = std::get<0>(pooled(v[0]));
          return masked_fill(y, isinf(y), 0);
        },
        {x});
    x.set_grad({});
    sum(std::get<0>(pooled(x))).backward();
    EXPECT_EQ(sum(x.grad()).item(), size.size() == 4 ? 4 : 8);
  }
  for (const Ints& size : {Ints{1, 1, 1, 1}, Ints{1, 1, 1, 1, 1}}) {  // taps at -1 and 1
    const auto pooled = [&](const Tensor& x) {
      return size.size() == 4 ? max_pool2d_with_indices(x, 2, 1, 1, 2)
                              : max_pool3d_with_indices(x, 2, 1, 1, 2);
    };
    const Tensor x = random_tensor(size, 5, DType::f64);
    EXPECT_EQ(std::get<1>(pooled(x)).to_vector<int64_t>(), std::vector<int64_t>{-1});
    expect_right_derivatives(
        [&](const std::vector<Tensor>& v) {
          const Tensor y = std::get<0>(pooled(v[0]));
          return masked_fill(y, isinf(y), 0);
        },
        {x});
  }
}

TEST(max_pool2d, takes_indices_of_64_bits_for_each_result_in_its_gradient) {
  const auto expect_refused = [](const Tensor& dy, const Tensor& indices, const char* message) {
    EXPECT_THROW_MESSAGE(call<ops::max_pool2d_with_indices_backward>(
                             Location::current(), dy, ones({1, 2, 2}), Ints{2, 2}, Ints{2, 2},
                             Ints{0, 0}, Ints{1, 1}, false, indices),
                         message);
  };
  const Tensor one = ones({1, 1, 1});
  expect_refused(one, zeros({1, 1, 1}, DType::i32), "indices must be i64");
  expect_refused(one, zeros({1, 1}, DType::i64), "indices have 2 dimensions, the pooled self 3");
  expect_refused(one, zeros({1, 1, 2}, DType::i64), "indices have extent 2");
  expect_refused(ones({1, 1}), zeros({1, 1, 1}, DType::i64), "grad_output has 2 dimensions");
  expect_refused(ones({2, 1, 1}), zeros({1, 1, 1}, DType::i64), "grad_output has extent 2");
}

TEST(max_pool2d, refuses_indices_outside_the_plane_in_its_gradient) {
  const auto backward = [](DType dtype, int64_t extent, int64_t planes, int64_t place,
                           int64_t index) {
    const int64_t half = extent / 2;
    std::vector<int64_t> indices(static_cast<size_t>(planes * half * half), 0);
    indices[static_cast<size_t>(place)] = index;
    return call<ops::max_pool2d_with_indices_backward>(
        Location::current(), ones({1, planes, half, half}, dtype),
        zeros({1, planes, extent, extent}, dtype), Ints{2, 2}, Ints{2, 2}, Ints{0, 0}, Ints{1, 1},
        false, Tensor::from(indices, {1, planes, half, half}));
  };
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int64_t index : {int64_t{16}, int64_t{-2}, int64_t{1} << 32, INT64_MIN, INT64_MAX})
      for (const int64_t place : {0, 5, 11}) {
        const std::string message = "index " + std::to_string(index) + " is outside [-1, 16)";
        EXPECT_THROW_MESSAGE(backward(dtype, 4, 3, place, index), message);
      }
    // 40000 indices, which are checked in parts
    EXPECT_THROW(backward(dtype, 400, 1, 39999, 160000), EagerError);
    EXPECT_EQ(backward(dtype, 400, 1, 39999, 159999).select(2, 399).select(2, 399).item(), 1);
    EXPECT_EQ(backward(dtype, 4, 3, 11, 15).to(DType::f32).to_vector<float>()[47], 1);
    EXPECT_EQ(sum(backward(dtype, 4, 3, 11, -1)).item(), 11);  // one window met only padding
  }
}

TEST(max_pool2d, is_differentiable_twice) {
  const auto f = [](const std::vector<Tensor>& v) {
    const Tensor y = max_pool2d(v[0], 3, 2, 1);
    return sum(y * y * y);
  };
  expect_right_derivatives(f, {random_tensor({2, 2, 5, 7}, 1, DType::f64)});
}

TEST(avg_pool, divides_by_what_it_is_asked_to) {
  const Tensor x = ones({1, 3, 3});
  EXPECT_EQ(avg_pool2d(x, 3, 1, 1).to_vector<float>()[0], 4.0f / 9);
  EXPECT_EQ(avg_pool2d(x, 3, 1, 1, false, false).to_vector<float>()[0], 1);
  EXPECT_EQ(avg_pool2d(x, 3, 1, 1, false, true, 2).to_vector<float>()[0], 2);
}

TEST(avg_pool, hands_each_element_its_share_of_long_rows) {
  Tensor x = zeros({1, 1, 5, 700}).set_requires_grad();
  sum(avg_pool2d(x, 3, 1, 1)).backward();
  const std::vector<float> dx = x.grad().to_vector<float>();
  for (int h = 0; h < 5; ++h)
    for (int w = 0; w < 700; ++w) {
      const int windows = (h % 4 == 0 ? 2 : 3) * (w % 699 == 0 ? 2 : 3);
      EXPECT_FLOAT_EQ(dx[static_cast<size_t>(h * 700 + w)], static_cast<float>(windows) / 9);
    }
}

TEST(avg_pool, is_differentiable_twice_in_every_dimension) {
  const auto one = [](const std::vector<Tensor>& v) {
    const Tensor y = avg_pool1d(v[0], 3, 2, 1, true);
    return sum(y * y * y);
  };
  const auto two = [](const std::vector<Tensor>& v) {
    const Tensor y = avg_pool2d(v[0], {2, 3}, {1, 2}, 1, true, false);
    return sum(y * y * y);
  };
  const auto three = [](const std::vector<Tensor>& v) {
    const Tensor y = avg_pool3d(v[0], {2, 3, 2}, {1, 2, 2}, 1, true, false);
    return sum(y * y * y);
  };
  const auto parts = [](const std::vector<Tensor>& v) {
    const Tensor y = adaptive_avg_pool3d(v[0], {2, 3, 2});
    return sum(y * y * y);
  };
  expect_right_derivatives(one, {random_tensor({2, 9}, 1, DType::f64)});
  expect_right_derivatives(two, {random_tensor({2, 5, 6}, 1, DType::f64)});
  for (const auto& f : {std::function<Tensor(const std::vector<Tensor>&)>(three),
                        std::function<Tensor(const std::vector<Tensor>&)>(parts)}) {
    expect_right_derivatives(f, {random_tensor({2, 3, 5, 4}, 1, DType::f64)});
  }
}

TEST(adaptive_avg_pool2d, to_one_is_the_mean) {
  const Tensor x = random_tensor({2, 3, 5, 7}, 1, DType::f64), y = adaptive_avg_pool2d(x, {1, 1}),
               m = mean(x, {2, 3}, true);
  for (size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(y.to_vector<double>()[i], m.to_vector<double>()[i], 1e-14);
}

TEST(pooling, gives_the_same_bits_with_any_number_of_threads_and_strides) {
  const Tensor x = random_tensor({2, 5, 9, 11});
  expect_same_bits_with_two_threads([&] { return max_pool2d(x, 3, 2, 1); });
  expect_same_bits_with_two_threads([&] { return avg_pool2d(x, 3, 2, 1); });
  expect_same_bits(max_pool2d(scattered(x), 3, 2, 1), max_pool2d(x, 3, 2, 1));
}

TEST(pooling, refuses_windows_that_do_not_fit) {
  const Tensor x = ones({1, 4, 4});
  EXPECT_THROW(max_pool2d(x, 5), EagerError);
  EXPECT_THROW(max_pool2d(x, 2, 0), EagerError);
  EXPECT_THROW(avg_pool2d(x, 2, 1, 2), EagerError);
  EXPECT_THROW(avg_pool2d(x, {1, 2, 3}), EagerError);
}

TEST(adaptive_max_pool, names_the_first_of_equal_maxima_and_any_nan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from<float>({7, 7, 1, nan, 7, 7, 2, 9}, {1, 2, 4});
  const auto [values, indices] = adaptive_max_pool2d(x, {1, 2});
  EXPECT_EQ(values.to_vector<float>()[0], 7);
  EXPECT_TRUE(std::isnan(values.to_vector<float>()[1]));
  EXPECT_EQ(indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 3}));
}

TEST(fractional_max_pool2d, takes_the_largest_of_windows_that_reach_both_ends) {
  const Tensor x = reshape(arange(0, 49, 1, DType::f32), {1, 7, 7});
  for (const float at : {0.0f, 0.4f, 0.999f}) {
    const auto [values, indices] =
        fractional_max_pool2d(x, 2, {3, 3}, full({1, 1, 2}, static_cast<double>(at)));
    EXPECT_EQ(values.to_vector<float>().back(), 48);
    EXPECT_EQ(values.to_vector<float>()[0], 8);
  }
  const auto pooled = [&](const Tensor& samples) { fractional_max_pool2d(x, 2, {3, 3}, samples); };
  EXPECT_THROW(pooled(full({1, 1, 2}, NAN)), EagerError);
  EXPECT_THROW(pooled(ones({1, 2, 2})), EagerError);
  EXPECT_THROW(fractional_max_pool2d(x, 6, {3, 3}, zeros({1, 1, 2})), EagerError);
}

TEST(max_unpool2d, puts_maxima_back_and_refuses_a_place_outside) {
  const Tensor x = random_tensor({2, 4, 6});
  const auto [values, indices] = max_pool2d_with_indices(x, 2);
  const Tensor back = max_unpool2d(values, indices, {4, 6});
  const auto again = max_pool2d_with_indices(abs(back), 2);
  expect_same_bits(std::get<0>(again), abs(values));
  EXPECT_THROW(max_unpool2d(values, indices, {2, 3}), EagerError);
  EXPECT_THROW(max_unpool2d(values, indices, {4}), EagerError);
  EXPECT_THROW(max_unpool2d(values, slice(indices, 1, 0, 1), {4, 6}), EagerError);
}

TEST(im2col, and_col2im_are_each_others_gradient) {
  const auto columns = [](const std::vector<Tensor>& v) {
    const Tensor y = im2col(v[0], {2, 3}, {1, 2}, {1, 2}, {2, 1});
    return sum(y * y * y);
  };
  expect_right_derivatives(columns, {random_tensor({2, 4, 6}, 1, DType::f64)});
  const auto image = [](const std::vector<Tensor>& v) {
    const Tensor y = col2im(v[0], {4, 5}, {2, 3}, 1, {1, 0}, {1, 2});
    return sum(y * y * y);
  };
  expect_right_derivatives(image, {random_tensor({12, 10}, 1, DType::f64)});
}

TEST(col2im, counts_how_many_windows_cover_an_element) {
  const Tensor x = ones({1, 3, 3});
  EXPECT_EQ(col2im(im2col(x, 2), {3, 3}, 2).to_vector<float>(),
            (std::vector<float>{1, 2, 1, 2, 4, 2, 1, 2, 1}));
  EXPECT_THROW(col2im(ones({4, 5}), {3, 3}, 2), EagerError);  // 4 windows
  EXPECT_THROW(col2im(ones({3, 4}), {3, 3}, 2), EagerError);  // kernels of 4
  EXPECT_THROW(im2col(x, 4), EagerError);
  EXPECT_THROW(im2col(x, 2, 1, int64_t{1} << 40), EagerError);
}

TEST(avg_pool, rounds_means_of_integers_towards_zero) {
  const Tensor x = Tensor::from<int64_t>({-3, -2, 3, 4}, {1, 1, 4});
  EXPECT_EQ(avg_pool1d(x, 2).to_vector<int64_t>(), (std::vector<int64_t>{-2, 3}));
  const Tensor least = full({1, 1, 1}, Scalar(std::numeric_limits<int64_t>::min()), DType::i64);
  EXPECT_EQ(avg_pool2d(least, 1, {}, 0, false, true, -1).to_vector<int64_t>()[0],
            std::numeric_limits<int64_t>::min());
}

}  // namespace
}  // namespace taper::eager
