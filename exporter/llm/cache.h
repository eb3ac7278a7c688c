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
  /// (1, features, features), or undefined. Beside a cache in blocks, queries and keys are
  /// multiplied with it: their products, the scores, stay the same. A single large feature becomes
  /// many small ones, which few bits hold better. Values of 4 bits are multiplied, too, and then
  /// the result of attention: it is its own inverse. (S. Ashkboos and others, "QuaRot",
  /// arXiv:2404.00456.)
  Tensor hadamard;
  TAPER_LAYER(key, value, hadamard)

  /// Writes keys and values of new tokens: (batch, heads, n, features). `batch` is that of a Step.
  void write(const Tensor& keys, const Tensor& values, const Tensor& start,
             const Tensor& batch = {});
  /// Queries or keys (a, b, c, features), times `hadamard` if there is one.
  Tensor turned(const Tensor& x) const;
  /// The same of values, and of results.
  Tensor turned_values(const Tensor& x) const;

 private:
  bool turns_values_;
};

}  // namespace taper::llm
