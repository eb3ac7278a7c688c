#include "taper/exporter/nn/init.h"

#include <cmath>
#include <numbers>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"

namespace taper::nn::init {
namespace {

double kaiming_deviation(const Tensor& weight, double a, Mode mode, Nonlinearity nonlinearity) {
  const Fans fans = fans_of(weight);
  return gain_of(nonlinearity, a) /
         std::sqrt(static_cast<double>(mode == Mode::fan_in ? fans.in : fans.out));
}
double xavier_deviation(const Tensor& weight, double gain) {
  const Fans fans = fans_of(weight);
  return gain * std::sqrt(2.0 / static_cast<double>(fans.in + fans.out));
}
/// An even distribution in [-bound, bound] has the deviation bound / √3.
Tensor even_with_deviation(const Tensor& weight, double deviation) {
  const double bound = std::numbers::sqrt3 * deviation;
  return uniform_(weight, -bound, bound);
}

void need_rank(const Tensor& tensor, int least, int greatest, const char* name) {
  if (tensor.rank() < least || tensor.rank() > greatest)
    throw EagerError({}, std::string(name) + ": takes " + std::to_string(least) +
                             (greatest > least ? " to " + std::to_string(greatest) : "") +
                             " dimensions, this is " + eager::to_string(tensor.sizes()));
}
/// The first extent, and the product of the others.
std::pair<int64_t, int64_t> matrix_sizes(const Tensor& weight) {
  int64_t others = 1;
  for (int d = 1; d < weight.rank(); ++d) others *= weight.size(d).value();
  return {weight.size(0).value(), others};
}
Tensor write(Tensor tensor, const std::vector<float>& values) {
  eager::NoGrad guard;
  return tensor.copy_(
      Tensor::from(values, {static_cast<int64_t>(values.size())}).view(tensor.sizes()));
}

}  // namespace

Fans fans_of(const Tensor& weight) {
  if (weight.rank() < 2)
    throw EagerError({}, "fans_of: a weight has two dimensions or more, this is " +
                             eager::to_string(weight.sizes()));
  int64_t kernel = 1;
  for (int d = 2; d < weight.rank(); ++d) kernel *= weight.size(d).value();
  return {weight.size(1).value() * kernel, weight.size(0).value() * kernel};
}

double gain_of(Nonlinearity nonlinearity, double negative_slope) {
  switch (nonlinearity) {
    case Nonlinearity::tanh:
      return 5.0 / 3.0;
    case Nonlinearity::relu:
      return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu:
      return std::sqrt(2.0 / (1 + negative_slope * negative_slope));
    case Nonlinearity::selu:
      return 0.75;
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid:
      return 1;
  }
  return 1;
}

Tensor uniform_(Tensor tensor, double low, double high) {
  eager::NoGrad guard;
  return tensor.copy_(
      eager::add(eager::mul(eager::rand(tensor.sizes()), Scalar(high - low)), Scalar(low)));
}

Tensor normal_(Tensor tensor, double mean, double deviation) {
  eager::NoGrad guard;
  return tensor.copy_(
      eager::add(eager::mul(eager::randn(tensor.sizes()), Scalar(deviation)), Scalar(mean)));
}

Tensor trunc_normal_(Tensor tensor, double mean, double deviation, double low, double high) {
  if (!(low < high) || mean < low - 2 * deviation || mean > high + 2 * deviation)
    throw EagerError(
        {}, "trunc_normal_: [low, high] is empty or more than two deviations away from the mean");
  eager::NoGrad guard;
  const int64_t count = tensor.numel().value();
  std::vector<float> values;
  while (static_cast<int64_t>(values.size()) < count)  // a share of each round of draws is kept
    for (const float draw : eager::randn({count}).to_vector<float>())
      if (const double value = mean + deviation * draw;
          value >= low && value <= high && static_cast<int64_t>(values.size()) < count)
        values.push_back(static_cast<float>(value));
  return tensor.copy_(Tensor::from(values, {count}).view(tensor.sizes()));
}

Tensor constant_(Tensor tensor, double value) {
  eager::NoGrad guard;
  return tensor.fill_(value);
}

Tensor xavier_uniform_(Tensor weight, double gain) {
  return even_with_deviation(weight, xavier_deviation(weight, gain));
}
Tensor xavier_normal_(Tensor weight, double gain) {
  return normal_(weight, 0, xavier_deviation(weight, gain));
}

Tensor kaiming_uniform_(Tensor weight, double a, Mode mode, Nonlinearity nonlinearity) {
  return even_with_deviation(weight, kaiming_deviation(weight, a, mode, nonlinearity));
}
Tensor kaiming_normal_(Tensor weight, double a, Mode mode, Nonlinearity nonlinearity) {
  return normal_(weight, 0, kaiming_deviation(weight, a, mode, nonlinearity));
}

Tensor eye_(Tensor matrix) {
  need_rank(matrix, 2, 2, "eye_");
  const auto [rows, columns] = matrix_sizes(matrix);
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows && i < columns; ++i)
    values[static_cast<size_t>(i * columns + i)] = 1;
  return write(matrix, values);
}

Tensor dirac_(Tensor weight, int64_t groups) {
  need_rank(weight, 3, 5, "dirac_");
  const int64_t out = weight.size(0).value(), in = weight.size(1).value();
  if (groups < 1 || out % groups != 0)
    throw EagerError({}, "dirac_: " + std::to_string(out) + " channels are no multiple of " +
                             std::to_string(groups) + " groups");
  int64_t kernel = 1, centre = 0;
  for (int d = 2; d < weight.rank(); ++d) {
    const int64_t extent = weight.size(d).value();
    kernel *= extent, centre = centre * extent + extent / 2;
  }
  std::vector<float> values(static_cast<size_t>(out * in * kernel));
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < in && i < out / groups; ++i)
      values[static_cast<size_t>(((g * (out / groups) + i) * in + i) * kernel + centre)] = 1;
  return write(weight, values);
}

// The Q of a normal matrix's QR decomposition is evenly distributed where R has a positive diagonal
// (Mezzadri, "How to generate random matrices from the classical compact groups", 2007), which is
// what Gram-Schmidt gives; done twice, its vectors are orthogonal to rounding.
Tensor orthogonal_(Tensor weight, double gain) {
  need_rank(weight, 2, max_rank, "orthogonal_");
  const auto [rows, columns] = matrix_sizes(weight);
  const bool wide = rows <= columns;
  const int64_t count = wide ? rows : columns, length = wide ? columns : rows;
  eager::NoGrad guard;
  const std::vector<float> drawn = eager::randn({count, length}).to_vector<float>();
  std::vector<double> v(drawn.begin(), drawn.end());
  const auto dot = [length](const double* a, const double* b) {
    double sum = 0;
    for (int64_t k = 0; k < length; ++k) sum += a[k] * b[k];
    return sum;
  };
  for (int64_t i = 0; i < count; ++i) {
    double* x = v.data() + i * length;
    for (int round = 0; round < 2; ++round) {
      for (int64_t j = 0; j < i; ++j) {
        const double* other = v.data() + j * length;
        const double share = dot(x, other);
        for (int64_t k = 0; k < length; ++k) x[k] -= share * other[k];
      }
      const double norm = std::sqrt(dot(x, x));
      for (int64_t k = 0; k < length; ++k) x[k] /= norm;
    }
  }
  std::vector<float> values(v.size());
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < length; ++k)
      values[static_cast<size_t>(wide ? i * length + k : k * count + i)] =
          static_cast<float>(gain * v[static_cast<size_t>(i * length + k)]);
  return write(weight, values);
}

Tensor sparse_(Tensor matrix, double sparsity, double deviation) {
  need_rank(matrix, 2, 2, "sparse_");
  if (!(sparsity >= 0 && sparsity <= 1))
    throw EagerError({}, "sparse_: sparsity " + std::to_string(sparsity) + " is outside [0, 1]");
  const auto [rows, columns] = matrix_sizes(matrix);
  const int64_t zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  std::vector<float> values = normal_(matrix, 0, deviation).to(DType::f32).to_vector<float>();
  for (int64_t c = 0; c < columns; ++c) {
    const std::vector<int64_t> order = eager::randperm(rows).to_vector<int64_t>();
    for (int64_t i = 0; i < zeros; ++i)
      values[static_cast<size_t>(order[static_cast<size_t>(i)] * columns + c)] = 0;
  }
  return write(matrix, values);
}

}  // namespace taper::nn::init
