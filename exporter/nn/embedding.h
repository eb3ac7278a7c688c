#pragma once
#include <optional>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

struct EmbeddingOptions {
  /// Its row starts at zero and gets no gradient; counted from the end if negative. Absent: none.
  std::optional<int64_t> padding_idx = std::nullopt;
  bool scale_grad_by_freq = false;  ///< divide each row's gradient by how often it occurs
  /// Before a lookup, each row that is looked up and has a greater norm is scaled to this norm, in
  /// place.
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;  ///< of that norm
};

/// Rows of a table: indices i64 (…) -> (…, dim). weight (count, dim) starts normal with
/// deviation 1.
class Embedding : public Layer {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions options = {},
            Location here = Location::current());

  Parameter weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& indices, Location here = Location::current()) override;

 private:
  EmbeddingOptions options_;
  int64_t padding_idx_;  // -1: none
};

struct EmbeddingBagOptions {
  enum class Mode { sum, mean, max } mode = Mode::mean;
  std::optional<int64_t> padding_idx = std::nullopt;  ///< this row counts for nothing
  bool scale_grad_by_freq = false;
  bool include_last_offset = false;  ///< offsets end with the number of indices
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;
};

/// The sum, mean or maximum of the rows of a bag of indices -> (bags, dim): indices (bags, length),
/// or all of them one after the other with the `offsets` at which the bags begin.
/// `per_sample_weights`: a factor for each index, with mode sum.
class EmbeddingBag : public Module {
 public:
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, EmbeddingBagOptions options = {},
               Location here = Location::current());

  Parameter weight;
  TAPER_MODULE(weight)
  Tensor forward(const Tensor& indices, const Tensor& offsets = {},
                 const Tensor& per_sample_weights = {}, Location here = Location::current());

 private:
  EmbeddingBagOptions options_;
  int64_t padding_idx_;
};

}  // namespace taper::nn
