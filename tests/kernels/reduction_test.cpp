#include "taper/kernels/portable/reduction.h"

#include <cmath>

#include "eager_check.h"
#include "taper/exporter/eager/ops/indexing.h"

namespace taper::eager {
namespace {

TEST(sum, adds_over_any_set_of_dimensions) {
  const Tensor x = random_tensor({3, 130, 2, 17}, 1, DType::f64);
  const std::vector<double> values = x.to_vector<double>();
  const int64_t sizes[] = {3, 130, 2, 17};
  for (int set = 1; set < 16; ++set) {
    Ints dims;
    for (int d = 0; d < 4; ++d)
      if (set >> d & 1) dims.push_back(d);
    std::vector<double> want(static_cast<size_t>(sum(x, dims).numel().value()), 0.0);
    for (size_t i = 0; i < values.size(); ++i) {
      size_t at = 0, rest = i, place = 1;
      for (int d = 3; d >= 0; --d) {
        const size_t n = static_cast<size_t>(sizes[d]), c = rest % n;
        rest /= n;
        if (!(set >> d & 1)) at += c * place, place *= n;
      }
      want[at] += values[i];
    }
    const std::vector<double> got = sum(x, dims).to_vector<double>();
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9) << "set " << set;
  }
}

TEST(sum, gives_the_same_bits_for_any_strides_and_threads) {
  const Tensor x = random_tensor({65, 33, 300});
  for (const Ints& dims : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 1}, Ints{1, 2}, Ints{0, 2}, Ints{}}) {
    expect_same_bits(sum(scattered(x), dims), sum(x, dims));
    expect_same_bits_with_two_threads([&] { return sum(x, dims); });
  }
}

TEST(sum, of_rows_in_several_runs_has_the_bits_of_dense_rows) {
  for (const int64_t n : {2, 100, 128, 200, 1500, 6000})
    for (const DType dtype : {DType::f32, DType::f16, DType::f64}) {
      const Tensor x = random_tensor({7, 3, n}).to(dtype);
      const Tensor dense = x.permute({1, 0, 2}).contiguous();
      expect_same_bits(sum(x, {0, 2}), sum(dense, {1, 2}));
      expect_same_bits(amax(x, {0, 2}), amax(dense, {1, 2}));
    }
}

// Images with channels last, whose rows are summed beside each other in shorter pieces.
TEST(sum, of_an_image_with_channels_last_has_the_bits_of_one_with_channels_first) {
  for (const int64_t height : {3, 23, 24, 31, 45, 64, 200}) {
    const Tensor image = random_tensor({2, height, 23, 20}), view = image.permute({0, 3, 1, 2}),
                 dense = view.contiguous();
    expect_same_bits(sum(view, {2, 3}), sum(dense, {2, 3}));
    expect_same_bits(mean(view, {-1, -2}, true), mean(dense, {-1, -2}, true));
    expect_same_bits(var(view, {2, 3}), var(dense, {2, 3}));
    expect_same_bits_with_two_threads([&] { return mean(view, {2, 3}); });
  }
}

// A program asks for memory at its largest shape, and runs with any smaller one.
TEST(sum, never_needs_less_memory_for_a_larger_image) {
  for (const index_t channels : {1, 20, 1152, 5000})
    for (index_t side = 1, most = 0; side < 300; ++side) {
      const Shape image{
          4, {2, channels, side, side}, {side * side * channels, 1, side * channels, channels}};
      const index_t values = portable::partial_values(portable::plan_reduction(image, 0b1100));
      EXPECT_GE(values, most) << channels << " channels, " << side;
      most = values;
    }
}

TEST(sum, loses_little_over_many_elements) {
  const int64_t n = 1 << 22;
  EXPECT_NEAR(sum(full({n}, 0.1)).item(), n * static_cast<double>(0.1f), 0.1);
  EXPECT_NEAR(sum(full({n / 4, 4}, 0.1), {0}).to_vector<float>()[0],
              n / 4 * static_cast<double>(0.1f), 0.1);
}

TEST(sum, of_nothing_is_zero) {
  EXPECT_EQ(sum(zeros({0, 3}), {0}).to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(sum(zeros({0})).item(), 0);
  EXPECT_TRUE(std::isnan(mean(zeros({0})).item()));
}

TEST(sum, of_bools_counts_them) {
  EXPECT_EQ(sum(random_tensor({1000}) < 10).item<int64_t>(), 1000);
}

TEST(amax, refuses_an_empty_dimension) {
  EXPECT_THROW(amax(zeros({0, 3}), {0}), ExportError);
  EXPECT_EQ(amax(zeros({0, 3}), {1}).size(0).value(), 0);
}

TEST(amax, finds_the_largest_and_a_nan_wherever_they_stand) {
  for (const int64_t n : {1, 15, 63, 64, 130, 1000, 40000}) {
    std::vector<float> x(static_cast<size_t>(2 * n), -5);
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      x[static_cast<size_t>(at)] = -1, x[static_cast<size_t>(n + at)] = NAN;
      const Tensor t = Tensor::from(x, {2, n});
      for (const Tensor& rows : {t, t.t().contiguous().t()}) {
        const std::vector<float> most = amax(rows, {1}).to_vector<float>();
        EXPECT_EQ(most[0], -1) << n << " " << at;
        EXPECT_TRUE(std::isnan(most[1])) << n << " " << at;
      }
      x[static_cast<size_t>(at)] = -5, x[static_cast<size_t>(n + at)] = -5;
    }
  }
}

TEST(max, takes_the_first_of_equals_and_the_first_nan) {
  const Tensor x = Tensor::from(std::vector<float>{1, 3, 3, NAN, 5, NAN}, {2, 3});
  const auto [values, indices] = max(x, 1);
  EXPECT_EQ(indices.to_vector<int64_t>(), (std::vector<int64_t>{1, 0}));
  EXPECT_TRUE(std::isnan(values.to_vector<float>()[1]));
  EXPECT_EQ(argmin(Tensor::from(std::vector<int64_t>{4, 2, 2}, {3})).item<int64_t>(), 1);
}

/// Numbers with ties, and a NaN and infinities among them if `special`.
Tensor tied(const Ints& sizes, DType dtype, bool special) {
  const Tensor x = to(to(random_tensor(sizes) * 3, DType::i64), DType::f32);
  return to(special ? div(x, relu(x + 1)) : x, dtype);
}
/// Where the first extreme of x[0 … i] stands, or (`last`) the last, for every i of every line; the
/// lines are behind one another.
std::vector<int64_t> running_extremes(const Tensor& lines, bool greatest, bool last) {
  const std::vector<double> x = to(lines, DType::f64).to_vector<double>();
  const auto extent = static_cast<size_t>(lines.size(-1).value());
  std::vector<int64_t> found;
  for (size_t begin = 0; begin < x.size(); begin += extent)
    for (size_t i = 0, best = 0; i < extent; ++i) {
      const double a = x[begin + i], b = x[begin + best];
      const bool passes = greatest ? a > b : a < b;
      if ((std::isnan(a) && (last || !std::isnan(b))) || (!std::isnan(b) && passes) ||
          (last && a == b))
        best = i;
      found.push_back(static_cast<int64_t>(best));
    }
  return found;
}

TEST(extremes, stand_where_a_walk_along_each_line_finds_them) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i64, DType::i32})
    for (const Ints& sizes : std::vector<Ints>{{7, 40, 3}, {3, 17, 300}, {9000, 2}, {2, 9000}})
      for (int64_t dim = 0; dim < static_cast<int64_t>(sizes.size()); ++dim)
        for (const bool special : {false, true}) {
          if (special && !is_floating(dtype)) continue;
          const Tensor x = tied(sizes, dtype, special), lines = contiguous(transpose(x, dim, -1));
          for (const bool greatest : {false, true}) {
            const auto same = [&](const Tensor& indices, const std::vector<int64_t>& want) {
              EXPECT_EQ(contiguous(transpose(indices, dim, -1)).to_vector<int64_t>(), want)
                  << name_of(dtype) << " " << to_string(x.sizes()) << " " << dim;
            };
            const std::vector<int64_t> running = running_extremes(lines, greatest, false);
            std::vector<int64_t> ends;
            const auto extent = static_cast<size_t>(lines.size(-1).value());
            for (size_t i = extent - 1; i < running.size(); i += extent) ends.push_back(running[i]);
            for (const Tensor& t : {x, scattered(x)}) {
              same(greatest ? argmax(t, dim, true) : argmin(t, dim, true), ends);
              const auto [values, indices] = greatest ? max(t, dim, true) : min(t, dim, true);
              same(indices, ends);
              expect_same_bits(values, gather(x, dim, indices));
              const auto [run, places] = greatest ? cummax(t, dim) : cummin(t, dim);
              same(places, running_extremes(lines, greatest, true));
              expect_same_bits(run, gather(x, dim, places));
            }
          }
        }
}

TEST(extremes, of_a_tensor_without_a_dimension_are_searched_in_pieces) {
  const Tensor x = zeros({300, 300});
  EXPECT_EQ(argmax(x).item<int64_t>(), 0);
  for (const int64_t at : {0, 15, 4095, 4096, 70000, 89999}) {
    const Tensor y = x.clone();
    for (const int64_t i : {at, int64_t{89999}}) select(reshape(y, {-1}), 0, i).fill_(NAN);
    EXPECT_EQ(argmax(y).item<int64_t>(), at);
    EXPECT_EQ(argmin(y).item<int64_t>(), at);
  }
  const Tensor few = full({5, 20}, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(argmax(few, 1).to_vector<int64_t>(), std::vector<int64_t>(5, 0));
  const Tensor wide = random_tensor({100000, 3});
  expect_same_bits_with_two_threads([&] { return argmax(wide, 0); });
  expect_same_bits_with_two_threads([&] { return argmax(wide); });
}

TEST(var, is_exact_for_data_far_from_zero) {
  const Tensor x = random_tensor({10000}, 3, DType::f64) + 1e6;
  EXPECT_NEAR(var(to(x, DType::f64)).item(), 1.0, 0.05);
  EXPECT_NEAR(var(to(x, DType::f32)).item(), 1.0, 0.05);
}

TEST(var, is_finite_where_squares_are_not) {  // PyTorch's numbers
  const Tensor x = Tensor::from<float>({1e19f, 2e19f, 4e19f, 1, 2, 4, -3e38f, 3e38f, 0}, {3, 3});
  const std::vector<float> rows = var(x, Ints{1}).to_vector<float>();
  EXPECT_FLOAT_EQ(rows[0], 2.3333333e38f);
  EXPECT_FLOAT_EQ(rows[1], 2.3333333f);
  EXPECT_TRUE(std::isinf(rows[2]));
  expect_same_bits(var(contiguous(transpose(x, 0, 1)), Ints{0}), var(x, Ints{1}));
  EXPECT_FLOAT_EQ(std(x, Ints{1}).to_vector<float>()[0], 1.5275252e19f);
  EXPECT_TRUE(std::isnan(var(Tensor::from<float>({1e19f, NAN, 4e19f}, {3})).item()));
}

TEST(std, has_the_range_of_the_elements) {  // PyTorch's numbers: their squares are double
  const Tensor x = Tensor::from<float>(
      {3e38f, -3e38f, 0, 3e38f, 3e38f, 1e38f, 1e-25f, 3e-25f, 2e-25f, 7, 7, 7}, {4, 3});
  const auto [deviations, means] = std_mean(x, Ints{1});
  const std::vector<float> d = deviations.to_vector<float>(), m = means.to_vector<float>();
  for (const auto& [got, want] : {std::pair{d[0], 3e38f},
                                  {d[1], 1.1547006e38f},
                                  {d[2], 1e-25f},
                                  {d[3], 0.f},
                                  {m[1], 2.3333334e38f},
                                  {m[2], 2e-25f},
                                  {m[3], 7.f}})
    EXPECT_FLOAT_EQ(got, want);
  const Tensor turned = contiguous(transpose(x, 0, 1));
  expect_same_bits(std(turned, Ints{0}), deviations);
  expect_same_bits(std::get<1>(var_mean(turned, Ints{0})), means);
  expect_same_bits(std::get<0>(var_mean(x, Ints{1})), var(x, Ints{1}));
}

TEST(std, has_a_gradient_of_0_where_it_is_0) {
  const Tensor x = Tensor::from<float>({7, 7, 7, 1, 2, 3}, {2, 3}).set_requires_grad();
  const Tensor dx = grad({std(x, Ints{1})}, {x}, {ones({2})}, true)[0];
  const std::vector<float> half{0, 0, 0, -0.5f, 0, 0.5f};
  EXPECT_EQ(dx.to_vector<float>(), half);
  const std::vector<float> second = grad({sum(dx * dx)}, {x})[0].to_vector<float>();
  for (const float s : second) EXPECT_NEAR(s, 0, 1e-6f);
  const auto [deviation, mean] = std_mean(x, Ints{1});
  for (const float g : grad({mean}, {x}, {ones({2})})[0].to_vector<float>())
    EXPECT_FLOAT_EQ(g, 1.f / 3);
}

TEST(var, has_a_gradient_with_a_correction_above_the_count) {  // PyTorch's numbers
  const Tensor x = Tensor::from<float>({1, 2, 3}, {3}).set_requires_grad();
  const Tensor v = var(x, Ints{0}, 5.0);
  EXPECT_EQ(grad({v}, {x})[0].to_vector<float>(), (std::vector<float>{1, 0, -1}));
}

TEST(cumsum, runs_along_any_dimension) {
  const Tensor x = Tensor::from(std::vector<int64_t>{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(cumsum(x, 0).to_vector<int64_t>(), (std::vector<int64_t>{1, 2, 3, 5, 7, 9}));
  EXPECT_EQ(cumsum(transpose(x, 0, 1), 0).to_vector<int64_t>(),
            (std::vector<int64_t>{1, 4, 3, 9, 6, 15}));
}

TEST(cumsum, of_strided_and_small_elements_is_that_of_dense_ones) {
  for (const Ints& sizes : std::vector<Ints>{{4, 300}, {300, 4}, {3, 50, 200}})
    for (int64_t dim = 0; dim < static_cast<int64_t>(sizes.size()); ++dim) {
      const Tensor x = random_tensor(sizes), half = to(x, DType::f16), wide = to(half, DType::f32);
      expect_same_bits(cumsum(scattered(x), dim), cumsum(x, dim));
      expect_same_bits(cumsum(half, dim), to(cumsum(wide, dim), DType::f16));
      expect_same_bits(cumprod(scattered(half), dim), to(cumprod(wide, dim), DType::f16));
      expect_same_bits(contiguous(transpose(cumsum(transpose(x, 0, -1), dim), 0, -1)),
                       cumsum(x, static_cast<int64_t>(sizes.size()) == 2 ? 1 - dim : 2 - dim));
      expect_same_bits_with_two_threads([&] { return logcumsumexp(x, dim); });
    }
}

TEST(prod, has_right_derivatives_beside_zeros) {
  for (const int zeros_in_line : {0, 1, 2}) {
    Tensor x = random_tensor({2, 4}, 3, DType::f64);
    for (int k = 0; k < zeros_in_line; ++k) x.select(1, k + 1).zero_();
    expect_right_derivatives(
        [](const std::vector<Tensor>& v) {
          const Tensor y = cumprod(v[0], 1);
          return sum(y * y) + sum(prod(v[0], 1)) + prod(v[0] + 1);
        },
        {x});
  }
}

TEST(linear_recurrence, has_right_derivatives_along_every_dimension) {
  for (const int64_t dim : {0, 1, -1})
    expect_right_derivatives(
        [=](const std::vector<Tensor>& v) {
          const Tensor y = linear_recurrence(v[0], v[1], dim);
          return sum(y * y);
        },
        {random_tensor({3, 4}, 1, DType::f64), random_tensor({3, 4}, 2, DType::f64)});
}

TEST(logcumsumexp, does_not_overflow) {
  const Tensor y = logcumsumexp(Tensor::from<float>({1000, 1000, -1000}, {3}), 0);
  EXPECT_NEAR(y[1].item(), 1000.6931, 1e-3);
  EXPECT_NEAR(y[2].item(), 1000.6931, 1e-3);
}

}  // namespace
}  // namespace taper::eager
