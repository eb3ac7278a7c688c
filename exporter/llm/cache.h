// The cache of attention: keys and values of all positions so far, as a state of the program.
#pragma once
#include <cstdint>
#include <string>

#include "taper/exporter/eager/lazy_zeros.h"
#include "taper/exporter/llm/cache_type.h"
#include "taper/exporter/nn/module.h"

namespace taper::llm {

using eager::lazy_zeros;

/// (batch, heads, capacity, features), in f16, bf16 or blocks, too.
class Cache : public nn::Module {
 public:
  Cache(int64_t batch, int64_t heads, int64_t capacity, int64_t features,
        CacheType type = CacheType::f32);
  Tensor key, value;
  /// (1, features, features), or undefined. Queries, keys and values are multiplied with it before
  /// a cache of 4 bits, and the result of attention is. It is its own inverse, so scores and
  /// results stay the same; a single large feature becomes many small ones, which few bits hold
  /// better. (S. Ashkboos and others, "QuaRot", arXiv:2404.00456.)
  Tensor hadamard;
  TAPER_LAYER(key, value, hadamard)

  /// Writes keys and values of new tokens: (batch, heads, n, features). `batch` is that of a Step.
  void write(const Tensor& keys, const Tensor& values, const Tensor& start,
             const Tensor& batch = {});
  /// x (a, b, c, features) times `hadamard`, if there is one.
  Tensor turned(const Tensor& x) const;
};

}  // namespace taper::llm
