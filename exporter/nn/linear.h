#pragma once
#include <optional>

#include "taper/exporter/nn/module.h"

namespace taper::nn {

struct LinearOptions {
  bool bias = true;
};

/// y = x · weightᵀ + bias
///   x (…, in), weight (out, in), bias (out) -> (…, out)
/// Both start even in ±1/√in.
class Linear : public Layer {
 public:
  Linear(int64_t in_features, int64_t out_features, LinearOptions options = {});

  Parameter weight, bias;  ///< bias: undefined without one
  TAPER_LAYER(weight, bias)
  Tensor forward(const Tensor& input, Location here = Location::current()) override;
};

/// y = x
class Identity : public Layer {
 public:
  Tensor forward(const Tensor& input, Location = Location::current()) override { return input; }
};

/// Joins dimensions start_dim to end_dim into one: (N, C, H, W) -> (N, C·H·W) by default.
class Flatten : public Layer {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1)
      : start_(start_dim), end_(end_dim) {}
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  int64_t start_, end_;
};

struct EmbeddingOptions {
  /// Its row starts at zero and gets no gradient; counted from the end if negative. Absent: none.
  std::optional<int64_t> padding_idx = std::nullopt;
  bool scale_grad_by_freq = false;  ///< divide each row's gradient by how often it occurs
};

/// Rows of a table: indices i64 (…) -> (…, dim). weight (count, dim) starts normal with
/// deviation 1.
class Embedding : public Layer {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, EmbeddingOptions options = {});

  Parameter weight;
  TAPER_LAYER(weight)
  Tensor forward(const Tensor& indices, Location here = Location::current()) override;

 private:
  int64_t padding_idx_;  // -1: none
  bool scale_grad_by_freq_;
};

/// While training: zeroes each element with probability p and divides the others by 1 - p. Else:
/// nothing.
class Dropout : public Layer {
 public:
  /// Throws EagerError unless 0 <= p <= 1.
  explicit Dropout(double p = 0.5, Location here = Location::current());
  Tensor forward(const Tensor& input, Location here = Location::current()) override;

 private:
  double p_;
};

}  // namespace taper::nn
