#include "taper/kernels/portable/embedding_bag.h"

#include "taper/kernels/shapes/indexing.h"

namespace taper::portable {

#define TAPER_BAG(variant, T, I)        \
  TAPER_KERNEL(_embedding_bag, variant, \
               embedding_bag::forward<PlainLoops, embedding_bag::PlainWidening, T, I>)
#define TAPER_EMBEDDING_BAG(index, I) \
  TAPER_BAG(f32_##index, float, I)    \
  TAPER_BAG(f64_##index, double, I)   \
  TAPER_BAG(f16_##index, Half, I)     \
  TAPER_BAG(bf16_##index, BFloat16, I)
TAPER_EMBEDDING_BAG(i64, int64_t)
TAPER_EMBEDDING_BAG(i32, int32_t)

}  // namespace taper::portable
