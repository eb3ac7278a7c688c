#pragma once
#include <optional>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

struct EmbeddingOptions {
  /// This row starts with zeros and gets no gradient. A negative index counts from the end. Absent:
  /// no such row.
  std::optional<int64_t> padding_idx = std::nullopt;
  bool scale_grad_by_freq = false;  ///< divide each row's gradient by how often it occurs
  /// Before a lookup, each row that is looked up and has a larger norm is scaled to this norm, in
  /// place.
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2;  ///< of that norm
};

/// Rows of a table: indices i64 (…) -> (…, dim). The initial weight (count, dim) is normal with
/// standard deviation 1.
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

/// The sum, mean or maximum of the rows that each bag of indices names: (bags, dim). The indices
/// are (bags, length), or all bags one after the other, where `offsets` says where each begins.
/// `per_sample_weights` is a factor for each index; mode sum only.
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
