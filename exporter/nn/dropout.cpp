#include "taper/exporter/nn/dropout.h"

#include <cmath>

#include "taper/exporter/eager/ops/creation.h"
#include "taper/exporter/eager/ops/pointwise.h"
#include "taper/exporter/eager/ops/random.h"
#include "taper/exporter/eager/text.h"

namespace taper::nn {
namespace {

double probability(const std::string& name, double p, Location here) {
  if (!(p >= 0 && p <= 1))
    throw EagerError(here, name + ": p " + eager::to_text(p) + " is not a probability");
  return p;
}

}  // namespace

Dropout::Dropout(double p, Location here) : p_(probability("Dropout", p, here)) {}
Tensor Dropout::forward(const Tensor& input, Location here) {
  return eager::dropout(input, p_, training(), eager::default_generator(), here);
}

template <int n>
FeatureDropout<n>::FeatureDropout(double p, Location here)
    : p_(probability("Dropout" + std::to_string(n) + "d", p, here)) {}
template <int n>
Tensor FeatureDropout<n>::forward(const Tensor& input, Location here) {
  if (input.rank() != n + 1 && input.rank() != n + 2)
    throw EagerError(here, "Dropout" + std::to_string(n) + "d: input " +
                               eager::to_string(input.sizes()) + " has " +
                               std::to_string(input.rank()) + " dimensions, it takes " +
                               std::to_string(n + 1) + " or " + std::to_string(n + 2));
  if (!training() || p_ == 0) return input;
  Dims sizes = input.sizes();  // one factor for each channel
  for (int d = input.rank() - n; d < input.rank(); ++d) sizes[static_cast<size_t>(d)] = 1;
  const Tensor factors = eager::dropout(eager::ones(sizes, input.dtype(), here), p_, true,
                                        eager::default_generator(), here);
  return eager::mul(input, factors, here);
}
template class FeatureDropout<1>;
template class FeatureDropout<2>;
template class FeatureDropout<3>;

AlphaDropout::AlphaDropout(double p, Location here) : p_(probability("AlphaDropout", p, here)) {}
Tensor AlphaDropout::forward(const Tensor& input, Location here) {
  if (!training() || p_ == 0) return input;
  if (p_ == 1) return eager::mul(input, Scalar(0), here);
  constexpr double dropped = -1.7580993408473766;  // -λα of SELU
  const double scale = 1 / std::sqrt((1 - p_) * (1 + p_ * dropped * dropped));
  // keep is 0 or 1: a · (x keep + dropped (1 - keep)) - a p dropped
  const Tensor keep = eager::mul(eager::dropout(eager::full_like(input, Scalar(1), {}, here), p_,
                                                true, eager::default_generator(), here),
                                 Scalar(1 - p_), here);
  const Tensor kept = eager::mul(input, eager::mul(keep, Scalar(scale), here), here);
  const Tensor shift = eager::add(eager::mul(keep, Scalar(-scale * dropped), here),
                                  Scalar(scale * dropped * (1 - p_)), Scalar(1), here);
  return eager::add(kept, shift, 1, here);
}

}  // namespace taper::nn
