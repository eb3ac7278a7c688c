#include "taper/exporter/nn/embedding.h"

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/nn/check.h"
#include "taper/exporter/nn/init.h"

namespace taper::nn {
namespace {

using eager::call;

Tensor make_table(int64_t rows, int64_t columns, const std::optional<int64_t>& given,
                  int64_t& padding_idx, const std::string& name, Location here) {
  internal::check_sizes(name, {{"num_embeddings", rows}, {"embedding_dim", columns}}, here);
  Tensor table = init::normal_(Tensor::empty({rows, columns}));
  padding_idx = given.value_or(-1);
  if (!given) return table;
  if (padding_idx < 0) padding_idx += rows;
  if (padding_idx < 0 || padding_idx >= rows)
    throw EagerError(here, name + ": padding_idx " + std::to_string(*given) + " is outside [-" +
                               std::to_string(rows) + ", " + std::to_string(rows) + ")");
  Tensor row = table[padding_idx];
  row.zero_();
  return table;
}

/// Scales the rows that `indices` name and whose norm is greater than `max_norm`, in place.
void renormalize(Tensor weight, const Tensor& indices, double max_norm, double norm_type) {
  eager::NoGrad guard;
  const Tensor flat = indices.reshape({indices.numel()});
  const Tensor rows = eager::index_select(weight, 0, flat);
  const Tensor norm =
      call<ops::linalg_vector_norm>(rows, Scalar(norm_type), Dims{Dim(1)}, true, std::nullopt);
  const Tensor factor = eager::full_like(norm, max_norm) / (norm + 1e-7);
  const Tensor scaled = eager::where(eager::gt(norm, max_norm), rows * factor, rows);
  weight.copy_(eager::index_copy(weight, 0, flat, scaled));
}

}  // namespace

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions options,
                     Location here)
    : options_(options) {
  weight = make_table(num_embeddings, embedding_dim, options.padding_idx, padding_idx_, "Embedding",
                      here);
  set_names();
}

Tensor Embedding::forward(const Tensor& indices, Location here) {
  const PlaceScope scope(here);
  if (options_.max_norm) renormalize(weight, indices, *options_.max_norm, options_.norm_type);
  return call<ops::embedding>(weight, indices, Dim(padding_idx_), options_.scale_grad_by_freq,
                              false);
}

EmbeddingBag::EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim,
                           EmbeddingBagOptions options, Location here)
    : options_(options) {
  weight = make_table(num_embeddings, embedding_dim, options.padding_idx, padding_idx_,
                      "EmbeddingBag", here);
  set_names();
}

Tensor EmbeddingBag::forward(const Tensor& indices, const Tensor& offsets,
                             const Tensor& per_sample_weights, Location here) {
  const PlaceScope scope(here);
  Tensor flat = indices, starts = offsets, factors = per_sample_weights;
  if (indices.rank() == 2) {
    if (offsets.defined())
      throw EagerError(here, "EmbeddingBag: indices (bags, length) need no offsets");
    const Dim count = indices.numel(), length = indices.size(1);
    flat = indices.reshape({count});
    const Tensor ones = eager::ones({indices.size(0)}, DType::i64);  // a bag
    const Tensor numbers = eager::cumsum(ones, 0) - 1;
    starts = length.is_constant() ? numbers * length.value()
                                  : numbers * eager::sum(eager::ones({length}, DType::i64));
    if (factors.defined()) factors = factors.reshape({count});
  } else if (!offsets.defined()) {
    throw EagerError(here, "EmbeddingBag: indices " + eager::to_string(indices.sizes()) +
                               " need offsets, or two dimensions (bags, length)");
  }
  if (options_.max_norm) renormalize(weight, flat, *options_.max_norm, options_.norm_type);
  const bool last = options_.include_last_offset && indices.rank() == 1;
  return std::get<0>(call<ops::_embedding_bag>(
      weight, flat, starts, options_.scale_grad_by_freq, static_cast<int64_t>(options_.mode), false,
      factors.defined() ? std::optional(factors) : std::nullopt, last, padding_idx_));
}

}  // namespace taper::nn
