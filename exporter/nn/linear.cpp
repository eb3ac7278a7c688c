#include "taper/exporter/nn/linear.h"

#include <cmath>

#include "taper/exporter/eager/autograd.h"
#include "taper/exporter/eager/call.h"
#include "taper/exporter/eager/ops/random.h"
#include "taper/exporter/nn/init.h"

namespace taper::nn {

using eager::call;

Linear::Linear(int64_t in_features, int64_t out_features, LinearOptions options) {
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

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions options)
    : padding_idx_(options.padding_idx.value_or(-1)),
      scale_grad_by_freq_(options.scale_grad_by_freq) {
  Tensor table = init::normal_(Tensor::empty({num_embeddings, embedding_dim}));
  if (options.padding_idx) {
    if (padding_idx_ < 0) padding_idx_ += num_embeddings;
    if (padding_idx_ < 0 || padding_idx_ >= num_embeddings)
      throw EagerError({}, "Embedding: padding_idx " + std::to_string(*options.padding_idx) +
                               " is outside [-" + std::to_string(num_embeddings) + ", " +
                               std::to_string(num_embeddings) + ")");
    Tensor row = table[padding_idx_];
    row.zero_();
  }
  weight = table;
  set_names();
}

Tensor Embedding::forward(const Tensor& indices, Location here) {
  return call<ops::embedding>(here, weight, indices, Dim(padding_idx_), scale_grad_by_freq_, false);
}

Dropout::Dropout(double p, Location here) : p_(p) {
  if (!(p >= 0 && p <= 1))
    throw EagerError(here, "Dropout: p " + std::to_string(p) + " is not a probability");
}

Tensor Dropout::forward(const Tensor& input, Location here) {
  return eager::dropout(input, p_, training(), eager::default_generator(), here);
}

}  // namespace taper::nn
