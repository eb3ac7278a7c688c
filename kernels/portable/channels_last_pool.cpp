// Pooling over height and width of images whose channels lie last.
#include "taper/kernels/portable/channels_last_pool.h"

#include "taper/kernels/portable/records.h"
#include "taper/kernels/shapes/channels_last.h"

namespace taper::portable {

#define TAPER_MAX_POOL(variant, T, op) \
  TAPER_KERNEL(op, variant, channels_last::prepare_max<T>, channels_last::max<PlainLoops, T>)
TAPER_NUMBERS(TAPER_MAX_POOL, taper_max_pool2d)

#define TAPER_AVERAGE_POOL(variant, T)                                       \
  TAPER_KERNEL(taper_avg_pool2d, variant, channels_last::prepare_average<T>, \
               channels_last::average<PlainLoops, T>)
TAPER_AVERAGE_POOL(f32, float)
TAPER_AVERAGE_POOL(f64, double)
TAPER_AVERAGE_POOL(i64, int64_t)

}  // namespace taper::portable
