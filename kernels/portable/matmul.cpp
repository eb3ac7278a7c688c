#include "taper/kernels/portable/matmul_functions.h"
#include "taper/kernels/portable/records.h"

namespace taper::portable {
namespace {

// A file may hold f32 weights in panels.
constexpr Packing reads_mat2_of_mm{1, -1, Layout::panels_of_last, nullptr, nullptr};
constexpr Packing reads_mat2_of_addmm{2, -1, Layout::panels_of_last, nullptr, nullptr};
constexpr Packing reads_weight{1, -1, Layout::panels_of_first, nullptr, nullptr};

template <const Operator& op, class E>
constexpr const Packing* packing_of = nullptr;
template <>
constexpr const Packing* packing_of<ops::mm, float> = &reads_mat2_of_mm;
template <>
constexpr const Packing* packing_of<ops::addmm, float> = &reads_mat2_of_addmm;
template <>
constexpr const Packing* packing_of<ops::linear, float> = &reads_weight;

}  // namespace

#define TAPER_PRODUCT_OF(variant, E, op) \
  TAPER_RECORD(op, op##_##variant, {}, (packing_of<ops::op, E>), op<E>)
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
