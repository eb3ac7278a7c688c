#include "taper/kernels/portable/matmul_functions.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/portable/widened.h"

namespace taper::portable {
namespace {

// A file may hold f32 weights in halves or panels.
constexpr Packing reads_weight[] = {
    reads_from<1>(Layout::dense, Layout::panels_of_first),
    reads_from<1>(Layout::dense_f16, Layout::f16_panels_of_first),
    reads_from<1>(Layout::dense_bf16, Layout::bf16_panels_of_first)};

template <const Operator& op, class E>
constexpr Span<const Packing> packings_of = {};
template <>
constexpr WidenedPackings<1> packings_of<ops::mm, float> = {
    to_f32_layout<1, Layout::panels_of_last>};
template <>
constexpr WidenedPackings<2> packings_of<ops::addmm, float> = {
    to_f32_layout<2, Layout::panels_of_last>};
template <>
constexpr WidenedPackings<1> packings_of<ops::linear, float> = {reads_weight};

}  // namespace

#define TAPER_PRODUCT_OF(variant, E, op) \
  TAPER_RECORD(op, op##_##variant, {}, (packings_of<ops::op, E>), op<E>)
#define TAPER_PRODUCT(op)             \
  TAPER_NUMBERS(TAPER_PRODUCT_OF, op) \
  TAPER_PRODUCT_OF(f16, Half, op) TAPER_PRODUCT_OF(bf16, BFloat16, op)

TAPER_PRODUCT(mm)
TAPER_PRODUCT(bmm)
TAPER_PRODUCT(addmm)
TAPER_PRODUCT(baddbmm)
TAPER_PRODUCT_OF(f32, float, linear)
TAPER_PRODUCT_OF(f64, double, linear)
TAPER_PRODUCT_OF(i64, int64_t, linear)
TAPER_PRODUCT_OF(f16, Half, linear)
TAPER_PRODUCT_OF(bf16, BFloat16, linear)

}  // namespace taper::portable
