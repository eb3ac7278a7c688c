// Attention in texts that are there as a whole: without a cache, in operators that have
// derivatives.
#pragma once
#include "taper/exporter/eager/eager.h"

namespace taper::llm {

/// What `attention_cached` gives for positions 0, 1, …, n - 1 of an empty cache, but for rounding:
///   queries (batch, heads, n, features), keys and values (batch, own heads, n, features)
///   -> (batch, n, heads, features)
/// `bias` is added to the scores, broadcast to (batch, heads, n, n), and hides what a query must
/// not see; undefined: a query sees its own position and those before it, and `options.window`.
eager::Tensor causal_attention(const eager::Tensor& queries, const eager::Tensor& keys,
                               const eager::Tensor& values,
                               const eager::CachedAttentionOptions& options,
                               const eager::Tensor& bias = {});

}  // namespace taper::llm
