// Softmax and attention, for floating dtypes. f16 and bf16 are computed in f32. Errors: a dim that
// self does not have, sizes or dtypes that do not fit each other.
#pragma once
#include <optional>

#include "taper/exporter/eager/call.h"

namespace taper::eager {

/// exp(self), scaled so that the sum along `dim` is 1. self is cast to `dtype` first, and the
/// result has this dtype.
inline Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = {},
                      Location here = Location::current()) {
  return call<ops::softmax_int>(here, self, dim, dtype);
}
/// log(softmax(self, dim)), computed without overflow.
inline Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = {},
                          Location here = Location::current()) {
  return call<ops::log_softmax_int>(here, self, dim, dtype);
}
/// softmax(query key^T scale + mask) value. The tensors are (…, length, features), and the leading
/// dimensions broadcast.
///   attn_mask   bool: true = attend; or a float that is added. Broadcasts to (…, queries, keys)
///   dropout_p   the probability of dropping an attention weight; the others are scaled up
///   is_causal   query i attends only to keys up to i
///   scale       1 / sqrt(features) if not given
///   enable_gqa  each head of key and value serves several heads of query (dimension -3)
/// A query that may attend to nothing gives zeros. Vaswani et al., arXiv:1706.03762. Kernels that
/// take the arguments never hold the matrix of all scores (Dao et al., arXiv:2205.14135).
inline Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key,
                                           const Tensor& value, const Tensor& attn_mask = {},
                                           double dropout_p = 0, bool is_causal = false,
                                           std::optional<double> scale = {},
                                           bool enable_gqa = false,
                                           Location here = Location::current()) {
  return call<ops::scaled_dot_product_attention>(here, query, key, value, attn_mask, dropout_p,
                                                 is_causal, scale, enable_gqa);
}

}  // namespace taper::eager
