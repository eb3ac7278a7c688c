// The scans of recurrent layers with the plain matrix product.
#include "taper/kernels/portable/recurrent.h"

#include "taper/kernels/kernel.h"

namespace taper::portable {
namespace {

template <class Element>
struct Plain {
  using T = Element;
  struct Plan {};
  static constexpr index_t steps_worth_a_copy = 0;

  static size_t plan(Context&, Plan&, index_t, index_t, index_t) { return 0; }
  static void run(Context& context, const Plan&, const Product<T>& p) { multiply(context, p); }
};

}  // namespace

#define TAPER_SCAN(name)                                                           \
  TAPER_KERNEL(taper_##name##_scan, f32, recurrent::prepare_##name<Plain<float>>,  \
               recurrent::name<Plain<float>>)                                      \
  TAPER_KERNEL(taper_##name##_scan, f64, recurrent::prepare_##name<Plain<double>>, \
               recurrent::name<Plain<double>>)                                     \
  TAPER_KERNEL(taper_##name##_scan_backward, f32,                                  \
               recurrent::prepare_##name##_backward<Plain<float>>,                 \
               recurrent::name##_backward<Plain<float>>)                           \
  TAPER_KERNEL(taper_##name##_scan_backward, f64,                                  \
               recurrent::prepare_##name##_backward<Plain<double>>,                \
               recurrent::name##_backward<Plain<double>>)

TAPER_SCAN(rnn)
TAPER_SCAN(lstm)
TAPER_SCAN(gru)

}  // namespace taper::portable
