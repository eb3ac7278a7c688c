// Kernels that sum in blocks, at one block, one element less, one more, and several blocks. Sums of
// small whole numbers are exact in any order; where a formula rounds, it is written out in f64.
#include <tuple>

#include "taper/exporter/eager/eager.h"
#include "taper/tests/kernels/blocks.h"

namespace taper::eager {
namespace {

/// Rows and columns around the blocks of 16, 128, 256, 1024 and 16384 elements.
struct Matrix {
  int64_t rows, columns;
};
std::vector<Matrix> matrices() {
  std::vector<Matrix> all;
  for (const int64_t n : {15, 16, 17, 31, 33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025})
    for (const int64_t lines : {1, 3, 17, 129}) {
      all.push_back({lines, n});
      if (lines != n) all.push_back({n, lines});
    }
  for (const int64_t n : {16383, 16384, 16385, 32769}) all.push_back({2, n}), all.push_back({n, 2});
  return all;
}
/// Folds the lines of a matrix along `dim`: element by element, in double.
template <class Fold>
std::vector<double> folded(const Tensor& x, int64_t dim, double start, const Fold& fold) {
  const std::vector<double> a = elements(x);
  const size_t columns = static_cast<size_t>(x.size(1).value());
  std::vector<double> y(a.size() / static_cast<size_t>(x.size(dim).value()), start);
  for (size_t i = 0; i < a.size(); ++i) {
    double& to = y[dim == 0 ? i % columns : i / columns];
    to = fold(to, a[i]);
  }
  return y;
}
/// The same of each beginning of a line.
template <class Fold>
std::vector<double> running(const Tensor& x, int64_t dim, const Fold& fold) {
  std::vector<double> y = elements(x);
  const size_t columns = static_cast<size_t>(x.size(1).value()), step = dim == 0 ? columns : 1;
  for (size_t i = 0; i < y.size(); ++i)
    if (dim == 0 ? i >= columns : i % columns != 0) y[i] = fold(y[i - step], y[i]);
  return y;
}

TEST(sums_in_blocks, of_reductions_are_exact) {
  const auto add = [](double a, double b) { return a + b; };
  const auto most = [](double a, double b) { return std::max(a, b); };
  const auto least = [](double a, double b) { return std::min(a, b); };
  for (const auto& [rows, columns] : matrices())
    for (const DType dtype : {DType::f32, DType::f16, DType::i64}) {
      const Tensor x = whole_numbers({rows, columns}, dtype, 50);
      for (const int64_t dim : {0, 1}) {
        SCOPED_TRACE(to_string(x.sizes()) + " " + name_of(dtype) + ", " + std::to_string(dim));
        const std::vector<double> sums = folded(x, dim, 0, add);
        expect_elements(sum(x, {dim}), sums);
        expect_elements(sum(x.t().contiguous().t(), {dim}), sums);
        expect_elements(amax(x, {dim}), folded(x, dim, -100, most));
        expect_elements(amin(x, {dim}), folded(x, dim, 100, least));
      }
    }
}

TEST(sums_in_blocks, of_products_and_truths_are_exact) {
  for (const auto& [rows, columns] : matrices()) {
    const Tensor signs = where(whole_numbers({rows, columns}) > 0, full({}, 1.0), full({}, -1.0));
    for (const int64_t dim : {0, 1}) {
      expect_elements(prod(signs, dim),
                      folded(signs, dim, 1, [](double a, double b) { return a * b; }));
      // one true or false element, in the last place of the lines
      Tensor only = zeros({rows, columns}, DType::boolean);
      only.select(dim, -1).fill_(1);
      EXPECT_EQ(sum(any(only, dim)).item<int64_t>(), dim == 0 ? columns : rows);
      EXPECT_EQ(sum(all(logical_not(only), dim)).item<int64_t>(), 0);
    }
  }
}

TEST(sums_in_blocks, of_variances_follow_the_formula) {
  for (const auto& [rows, columns] : matrices())
    for (const int64_t dim : {0, 1}) {
      const Tensor x = whole_numbers({rows, columns}, DType::f32, 50);
      const double n = static_cast<double>(dim == 0 ? rows : columns);
      const std::vector<double> sums = folded(x, dim, 0, [](double a, double b) { return a + b; });
      std::vector<double> want = folded(x, dim, 0, [](double a, double b) { return a + b * b; });
      for (size_t i = 0; i < want.size(); ++i) want[i] = (want[i] - sums[i] * sums[i] / n) / n;
      expect_close(var(x, Ints{dim}, 0.0), want, 1e-5);
    }
}

TEST(sums_in_blocks, of_running_sums_are_exact) {
  for (const auto& [rows, columns] : matrices())
    for (const int64_t dim : {0, 1}) {
      const Tensor x = whole_numbers({rows, columns}, DType::f32, 50);
      SCOPED_TRACE(to_string(x.sizes()) + ", " + std::to_string(dim));
      const std::vector<double> sums = running(x, dim, [](double a, double b) { return a + b; });
      expect_elements(cumsum(x, dim), sums);
      expect_elements(cumsum(x.to(DType::i64), dim), sums);
      expect_elements(cumsum(x.t().contiguous().t(), dim), sums);
      const Tensor signs = where(x > 0, full({}, 1.0), full({}, -1.0));
      expect_elements(cumprod(signs, dim),
                      running(signs, dim, [](double a, double b) { return a * b; }));
      expect_close(logcumsumexp(x / 50, dim),
                   running(x / 50, dim,
                           [](double a, double b) { return std::log(std::exp(a) + std::exp(b)); }),
                   1e-5);
    }
}

TEST(sums_in_blocks, of_softmax_follow_the_formula) {
  for (const auto& [rows, columns] : matrices())
    for (const int64_t dim : {0, 1}) {
      const Tensor x = whole_numbers({rows, columns}, DType::f32, 5),
                   dy = whole_numbers({rows, columns}, DType::f32, 5, 2);
      const Tensor e = exp(x.to(DType::f64)), y = e / sum(e, {dim}, true), wide = dy.to(DType::f64);
      x.set_requires_grad();
      SCOPED_TRACE(to_string(x.sizes()) + ", " + std::to_string(dim));
      expect_close(softmax(x, dim), elements(y), 1e-6);
      expect_close(log_softmax(x, dim), elements(log(y)), 4e-6);
      expect_close(grad({softmax(x, dim)}, {x}, {dy})[0],
                   elements(y * (wide - sum(wide * y, {dim}, true))), 1e-5);
      expect_close(grad({log_softmax(x, dim)}, {x}, {dy})[0],
                   elements(wide - y * sum(wide, {dim}, true)), 1e-5);
    }
}

TEST(sums_in_blocks, of_matrix_products_are_exact) {
  const std::tuple<int64_t, int64_t, int64_t> sizes[] = {
      {3, 127, 5},   {3, 128, 5},  {2, 129, 17},  {63, 255, 15}, {64, 256, 16}, {65, 257, 17},
      {1, 511, 33},  {1, 512, 32}, {1, 513, 31},  {5, 1025, 31}, {129, 40, 65}, {11, 100, 130},
      {257, 20, 33}, {513, 7, 20}, {20, 3, 1025}, {7, 64, 513}};
  for (const DType dtype :
       {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64})
    for (const auto& [m, k, n] : sizes) {
      SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(m) + " x " +
                   std::to_string(k) + " x " + std::to_string(n));
      const Tensor a = whole_numbers({m, k}, dtype, 3, 1), b = whole_numbers({k, n}, dtype, 3, 2),
                   bias = whole_numbers({n}, dtype, 3, 3);
      const std::vector<double> x = elements(a), y = elements(b), z = elements(bias);
      const size_t depth = static_cast<size_t>(k), width = static_cast<size_t>(n);
      std::vector<double> want(static_cast<size_t>(m) * width), with_bias(want.size());
      for (size_t i = 0; i < static_cast<size_t>(m); ++i)
        for (size_t p = 0; p < depth; ++p) {
          const double factor = x[i * depth + p];
          const double* from = &y[p * width];
          double* to = &want[i * width];
          for (size_t j = 0; j < width; ++j) to[j] += factor * from[j];
        }
      for (size_t i = 0; i < want.size(); ++i) with_bias[i] = want[i] + z[i % width];
      const Tensor columns = b.t().contiguous();
      expect_elements(mm(a, b), want);
      expect_elements(mm(a, columns.t()), want);
      expect_elements(mm(a.t().contiguous().t(), b), want);
      expect_elements(linear(a, columns, bias), with_bias);
    }
}

struct Image {
  int64_t channels, results, height, width, kernel, groups;
};

TEST(sums_in_blocks, of_convolutions_are_exact) {
  const Image images[] = {{51, 3, 7, 8, 1, 1},    {255, 15, 4, 5, 1, 1}, {256, 16, 3, 5, 1, 1},
                          {257, 17, 3, 4, 1, 1},  {28, 33, 6, 7, 3, 1},  {29, 16, 5, 17, 3, 1},
                          {114, 5, 4, 4, 3, 1},   {2, 3, 5, 257, 3, 1},  {3, 15, 9, 33, 3, 1},
                          {33, 33, 5, 19, 3, 33}, {5, 5, 6, 129, 3, 5},  {34, 18, 5, 9, 3, 2},
                          {1, 64, 4, 65, 3, 1},   {16, 65, 4, 9, 2, 1}};
  for (const Image& s : images)
    for (const DType dtype : {DType::f32, DType::f64}) {
      SCOPED_TRACE(std::to_string(s.channels) + " to " + std::to_string(s.results) + " " +
                   std::to_string(s.width) + " " + name_of(dtype));
      const int64_t inputs = s.channels / s.groups, outputs = s.results / s.groups,
                    height = s.height - s.kernel + 1, width = s.width - s.kernel + 1;
      const Tensor x = whole_numbers({1, s.channels, s.height, s.width}, dtype, 3, 1),
                   w = whole_numbers({s.results, inputs, s.kernel, s.kernel}, dtype, 3, 2),
                   dy = whole_numbers({1, s.results, height, width}, dtype, 3, 3);
      const std::vector<double> image = elements(x), taps = elements(w), slopes = elements(dy);
      std::vector<double> y(slopes.size()), dx(image.size()), dw(taps.size());
      for (int64_t o = 0; o < s.results; ++o)
        for (int64_t c = 0; c < inputs; ++c)
          for (int64_t i = 0; i < s.kernel; ++i)
            for (int64_t j = 0; j < s.kernel; ++j) {
              const auto tap =
                  static_cast<size_t>(((o * inputs + c) * s.kernel + i) * s.kernel + j);
              for (int64_t h = 0; h < height; ++h) {
                const auto to = static_cast<size_t>((o * height + h) * width),
                           from = static_cast<size_t>(
                               ((o / outputs * inputs + c) * s.height + h + i) * s.width + j);
                for (size_t v = 0; v < static_cast<size_t>(width); ++v) {
                  y[to + v] += taps[tap] * image[from + v];
                  dx[from + v] += taps[tap] * slopes[to + v];
                  dw[tap] += slopes[to + v] * image[from + v];
                }
              }
            }
      x.set_requires_grad(), w.set_requires_grad();
      const Tensor result = conv2d(x, w, {}, 1, 0, 1, s.groups);
      expect_elements(result, y);
      const std::vector<Tensor> gradients = grad({result}, {x, w}, {dy});
      expect_elements(gradients[0], dx);
      expect_elements(gradients[1], dw);
    }
}

/// A normalisation, and its formula in f64: both of x, weight and bias.
using Normalisation = std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& b)>;

void expect_normalisation(const Ints& sizes, const Ints& weights, const Normalisation& f,
                          const Normalisation& formula) {
  SCOPED_TRACE(to_string(Dims(sizes.begin(), sizes.end())));
  const Tensor x = whole_numbers(sizes, DType::f32, 9),
               w = whole_numbers(weights, DType::f32, 3, 2),
               b = whole_numbers(weights, DType::f32, 3, 3),
               dy = whole_numbers(sizes, DType::f32, 3, 4);
  const Tensor wx = x.to(DType::f64), ww = w.to(DType::f64), wb = b.to(DType::f64);
  for (const Tensor& t : {x, w, b, wx, ww, wb}) t.set_requires_grad();
  const Tensor got = f(x, w, b), want = formula(wx, ww, wb);
  expect_close(got, elements(want), 1e-5);
  const std::vector<Tensor> gradients = grad({got}, {x, w, b}, {dy}),
                            wanted = grad({want}, {wx, ww, wb}, {dy.to(DType::f64)});
  for (size_t i = 0; i < 3; ++i) expect_close(gradients[i], elements(wanted[i]), 1e-4);
}
Tensor normalised(const Tensor& x, const Ints& dims) {
  const Tensor d = x - mean(x, dims, true);
  return d / sqrt(mean(d * d, dims, true) + 1e-5);
}

TEST(sums_in_blocks, of_normalisations_follow_the_formula) {
  for (const int64_t width : {15, 16, 17, 63, 64, 65, 129, 1025})
    for (const int64_t rows : {1, 3, 4, 63, 64, 65, 130}) {
      if (rows * width > 70000) continue;
      expect_normalisation(
          {rows, width}, {width},
          [=](const Tensor& x, const Tensor& w, const Tensor& b) {
            return layer_norm(x, {width}, w, b, 1e-5);
          },
          [](const Tensor& x, const Tensor& w, const Tensor& b) {
            return normalised(x, {1}) * w + b;
          });
    }
  for (const int64_t plane : {15, 16, 17, 128, 129, 257, 1025}) {
    const Dims by_channel{1, 4, 1};
    expect_normalisation(
        {3, 4, plane}, {4},
        [](const Tensor& x, const Tensor& w, const Tensor& b) {
          return batch_norm(x, w, b, {}, {}, true, 0.1, 1e-5);
        },
        [=](const Tensor& x, const Tensor& w, const Tensor& b) {
          return normalised(x, {0, 2}) * reshape(w, by_channel) + reshape(b, by_channel);
        });
    expect_normalisation(
        {3, 4, plane}, {4},
        [](const Tensor& x, const Tensor& w, const Tensor& b) {
          return group_norm(x, 2, w, b, 1e-5);
        },
        [=](const Tensor& x, const Tensor& w, const Tensor& b) {
          const Tensor y = normalised(reshape(x, {3, 2, 2 * plane}), {2});
          return reshape(y, {3, 4, plane}) * reshape(w, by_channel) + reshape(b, by_channel);
        });
  }
}

}  // namespace
}  // namespace taper::eager
