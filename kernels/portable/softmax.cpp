#include "taper/kernels/portable/softmax.h"

namespace taper::portable {

using namespace softmax;

TAPER_KERNEL(_softmax, f32, prepare<float>, forward<PlainLoops, float, false>)
TAPER_KERNEL(_softmax, f64, prepare<double>, forward<PlainLoops, double, false>)
TAPER_KERNEL(_log_softmax, f32, prepare<float>, forward<PlainLoops, float, true>)
TAPER_KERNEL(_log_softmax, f64, prepare<double>, forward<PlainLoops, double, true>)
TAPER_KERNEL(_softmax_backward_data, f32, prepare_backward<float>,
             backward<PlainLoops, float, false>)
TAPER_KERNEL(_softmax_backward_data, f64, prepare_backward<double>,
             backward<PlainLoops, double, false>)
TAPER_KERNEL(_log_softmax_backward_data, f32, prepare_backward<float>,
             backward<PlainLoops, float, true>)
TAPER_KERNEL(_log_softmax_backward_data, f64, prepare_backward<double>,
             backward<PlainLoops, double, true>)

}  // namespace taper::portable
