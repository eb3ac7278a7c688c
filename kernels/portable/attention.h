// What the attention kernels share: where the matrices of each head lie, and how a mask works.
#pragma once
#include <cmath>

#include "taper/kernels/kernel.h"

namespace taper {
namespace portable {

/// A T is added to a score. A bool says whether the query attends to the key: true attends.
template <class T>
struct MaskElement {};
template <class T>
using AttentionMask = Maybe<AnyView<const MaskElement<T>>>;

/// Where the matrix of one head begins. The leading dimensions of the tensor broadcast to those of
/// the result.
struct Heads {
  index_t strides[max_rank] = {};
  index_t sharing = 1;  ///< query heads that one head serves (in the last leading dimension)
  index_t row = 0, column = 0;
};

struct AttentionHeads {
  int32_t rank;  ///< of the leading dimensions
  index_t sizes[max_rank], count;
  index_t queries, keys, features, values;
  Heads query, key, value, mask, result;

  index_t offset(const Heads& h, index_t head) const {
    index_t offset = 0;
    for (int d = rank - 1; d >= 0; --d) {
      const index_t i = head % sizes[d];
      offset += (d == rank - 1 ? i / h.sharing : i) * h.strides[d], head /= sizes[d];
    }
    return offset;
  }
  Heads heads_of(const Shape& t) const {
    Heads h;
    const auto stride = [&](int from_right) {
      const int i = t.rank - from_right;
      return i < 0 || t.sizes[i] == 1 ? 0 : t.strides[i];
    };
    h.column = stride(1), h.row = stride(2);
    for (int d = 0; d < rank; ++d) h.strides[d] = stride(rank - d + 2);
    const int head = t.rank - 3;
    if (head >= 0 && rank > 0 && t.sizes[head] > 1) h.sharing = sizes[rank - 1] / t.sizes[head];
    return h;
  }
};

/// What the backward pass needs besides. Keys and values have `groups` heads. Head `group` serves
/// `sharing` heads of the query: [group * sharing, (group + 1) * sharing).
struct AttentionGradientHeads : AttentionHeads {
  Heads grad_out, out;
  index_t groups, sharing;
};

/// Dropout needs a state argument for its random numbers, which the row lacks. The exporter writes
/// attention with dropout as its single steps.
inline Error no_dropout(Context& context) {
  return context.fail(Error::invalid_argument,
                      TAPER_TEXT("dropout_p must be 0 in a program; export attention with dropout "
                                 "in its parts"));
}

/// The shape of taper::attention's result with its heads before its queries.
inline Shape heads_first(const Shape& out) {
  Shape turned = out;
  const int head = out.rank - 3, query = out.rank - 2;
  turned.sizes[head] = out.sizes[query], turned.sizes[query] = out.sizes[head];
  turned.strides[head] = out.strides[query], turned.strides[query] = out.strides[head];
  return turned;
}

inline AttentionHeads attention_heads(const Shape& query, const Shape& key, const Shape& value,
                                      const Shape* mask, const Shape& out) {
  AttentionHeads a = {};
  a.rank = out.rank - 2, a.count = 1;
  for (int d = 0; d < a.rank; ++d) a.sizes[d] = out.sizes[d], a.count *= out.sizes[d];
  a.queries = query.sizes[query.rank - 2], a.features = query.sizes[query.rank - 1];
  a.keys = key.sizes[key.rank - 2], a.values = value.sizes[value.rank - 1];
  a.query = a.heads_of(query), a.key = a.heads_of(key), a.value = a.heads_of(value);
  if (mask != nullptr) a.mask = a.heads_of(*mask);
  for (int d = 0; d < a.rank; ++d) a.result.strides[d] = out.strides[d];
  a.result.row = out.strides[a.rank], a.result.column = 1;
  return a;
}

inline AttentionGradientHeads attention_gradient_heads(const Shape& grad_out, const Shape& query,
                                                       const Shape& key, const Shape& value,
                                                       const Shape* mask, const Shape& out) {
  AttentionGradientHeads a = {attention_heads(query, key, value, mask, out), {}, {}, 1, 1};
  a.grad_out = a.heads_of(grad_out), a.out = a.heads_of(out);
  for (int d = 0; d < a.rank; ++d) a.groups *= key.sizes[d];
  if (a.groups > 0) a.sharing = a.count / a.groups;
  return a;
}

/// The scale of scores: 1 / sqrt(features) if none is given.
inline double attention_scale(const Maybe<double>& scale, index_t features) {
  if (scale) return *scale;
  return features > 0 ? 1 / std::sqrt(static_cast<double>(features)) : 1;
}

/// The weights of a query are exp(score - shift). If all its scores are -inf, so is logsumexp;
/// another shift then avoids exp(-inf - -inf).
template <class T>
T shift_of(T logsumexp) {
  return logsumexp == -HUGE_VALF ? 0 : logsumexp;
}

}  // namespace portable

template <class T>
struct dtypes_of<portable::MaskElement<T>> {
  static constexpr DTypeSet set = one(DType::boolean) | dtypes_of<T>::set;
};

}  // namespace taper
