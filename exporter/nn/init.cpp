#include "taper/exporter/nn/init.h"

#include <cmath>
#include <numbers>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/error.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/random.h"

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

}  // namespace taper::nn::init
