// Attention written in other operators: the part that its decompositions and its second derivative
// share.
#pragma once
#include "taper/exporter/eager/call.h"

namespace taper::eager {

struct Attention {
  Tensor query, key, value, mask;
  bool causal = false;
  std::optional<double> scale;

  /// The scale that was given, else 1 / sqrt(features).
  double scale_of_scores() const;
  /// query key^T scale, masked: (…, queries, keys).
  Tensor scores() const;
  /// The weights that multiply the values.
  Tensor weights(const Tensor& scores) const;
};

/// The heads of `t` (…, heads, length, features), each repeated so often that there are as many as
/// heads of `query`.
Tensor repeat_heads(const Tensor& t, const Tensor& query);

}  // namespace taper::eager
