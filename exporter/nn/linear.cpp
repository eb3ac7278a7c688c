#include "taper/exporter/nn/linear.h"

#include <cmath>

#include "taper/exporter/eager/call.h"
#include "taper/exporter/nn/check.h"
#include "taper/exporter/nn/init.h"

namespace taper::nn {

using eager::call;

Linear::Linear(int64_t in_features, int64_t out_features, LinearOptions options, Location here) {
  internal::check_sizes("Linear", {{"in_features", in_features}, {"out_features", out_features}},
                        here);
  weight = init::kaiming_uniform_(Tensor::empty({out_features, in_features}), std::sqrt(5.0));
  const double bound = in_features > 0 ? 1 / std::sqrt(static_cast<double>(in_features)) : 0;
  if (options.bias) bias = init::uniform_(Tensor::empty({out_features}), -bound, bound);
  set_names();
}

Tensor Linear::forward(const Tensor& input, Location here) {
  return call<ops::linear>(here, input, weight, bias);
}

Tensor Flatten::forward(const Tensor& input, Location here) {
  return call<ops::flatten_using_ints>(here, input, start_, end_);
}

Tensor Unflatten::forward(const Tensor& input, Location here) {
  return call<ops::unflatten_int>(here, input, dim_, Dims(sizes_.begin(), sizes_.end()));
}

Bilinear::Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features,
                   LinearOptions options, Location here) {
  internal::check_sizes("Bilinear",
                        {{"in1_features", in1_features},
                         {"in2_features", in2_features},
                         {"out_features", out_features}},
                        here);
  const double bound = in1_features > 0 ? 1 / std::sqrt(static_cast<double>(in1_features)) : 0;
  weight = init::uniform_(Tensor::empty({out_features, in1_features, in2_features}), -bound, bound);
  if (options.bias) bias = init::uniform_(Tensor::empty({out_features}), -bound, bound);
  set_names();
}
Tensor Bilinear::forward(const Tensor& input1, const Tensor& input2, Location here) {
  return call<ops::bilinear>(here, input1, input2, weight, bias);
}

Tensor CosineSimilarity::forward(const Tensor& x1, const Tensor& x2, Location here) {
  return call<ops::cosine_similarity>(here, x1, x2, dim_, eps_);
}
Tensor PairwiseDistance::forward(const Tensor& x1, const Tensor& x2, Location here) {
  return call<ops::pairwise_distance>(here, x1, x2, p_, eps_, keepdim_);
}

}  // namespace taper::nn
