#include "taper/exporter/nn/dropout.h"

#include "taper/exporter/eager/eager.h"
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
  const PlaceScope scope(here);
  return input * eager::dropout(eager::ones(sizes, input.dtype()), p_, true);
}
template class FeatureDropout<1>;
template class FeatureDropout<2>;
template class FeatureDropout<3>;

AlphaDropout::AlphaDropout(double p, Location here) : p_(probability("AlphaDropout", p, here)) {}
Tensor AlphaDropout::forward(const Tensor& input, Location here) {
  return eager::alpha_dropout(input, p_, training(), here);
}

FeatureAlphaDropout::FeatureAlphaDropout(double p, Location here)
    : p_(probability("FeatureAlphaDropout", p, here)) {}
Tensor FeatureAlphaDropout::forward(const Tensor& input, Location here) {
  return eager::feature_alpha_dropout(input, p_, training(), here);
}

}  // namespace taper::nn
