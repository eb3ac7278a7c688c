// Mantissa and exponent of floating numbers.
#include <cmath>

#include "taper/kernels/kernel.h"
#include "taper/kernels/portable/pointwise.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
namespace {

// The C library leaves the exponent of infinities and NaN open; here it is 0, as in PyTorch.
template <class T>
Error frexp(Context& context, View<const T> self, View<T> mantissa, View<int32_t> exponent) {
  const index_t count = self.numel();
  parallel_for(context.threads, (count + pointwise_grain - 1) / pointwise_grain, [&](index_t task) {
    const index_t begin = task * pointwise_grain,
                  end = begin + pointwise_grain < count ? begin + pointwise_grain : count;
    for (index_t i = begin; i < end; ++i) {
      const T x = self.data()[i];
      int power = 0;
      mantissa.data()[i] = std::isfinite(x) ? std::frexp(x, &power) : x;
      exponent.data()[i] = power;
    }
  });
  return Error::ok;
}

}  // namespace

TAPER_KERNEL(frexp_Tensor, f32, frexp<float>)
TAPER_KERNEL(frexp_Tensor, f64, frexp<double>)

}  // namespace taper::portable
