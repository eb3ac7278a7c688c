// Attention written in other operators: what its decompositions and its second derivative share.
#pragma once
#include "taper/exporter/eager/call.h"

namespace taper::eager {

struct Attention {
  Tensor query, key, value, mask;
  bool causal = false;
  std::optional<double> scale;

  /// 1 / sqrt(features) if none is given.
  double scale_of_scores() const;
  /// query key^T scale, masked: (…, queries, keys).
  Tensor scores() const;
  /// What the values are multiplied by.
  Tensor weights(const Tensor& scores) const;
};

/// Each head of `t` (…, heads, length, features) as often as one of `query` has its turn.
Tensor repeat_heads(const Tensor& t, const Tensor& query);

}  // namespace taper::eager
