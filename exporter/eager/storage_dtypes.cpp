#include "taper/exporter/eager/storage_dtypes.h"

#include <bit>

#include "taper/exporter/eager/describe.h"
#include "taper/exporter/eager/run_kernel.h"
#include "taper/kernels/float8.h"

namespace taper::eager {
namespace {

constexpr DTypeSet float8s = one(DType::f8_e4m3fn) | one(DType::f8_e5m2);
constexpr DTypeSet short_unsigned = one(DType::u16) | one(DType::u32);
constexpr DTypeSet all_unsigned = short_unsigned | one(DType::u64);
constexpr DTypeSet integers = one(DType::boolean) | one(DType::u8) | one(DType::i8) |
                              one(DType::i16) | one(DType::i32) | one(DType::i64);

struct ComputedOperator {
  const Operator* op;
  DTypeSet dtypes;
};
/// What PyTorch computes on these dtypes, and i64 or f32 computes exactly, or with one rounding at
/// the end. i64 orders large u64 below 0, so operators that order elements do not take u64.
constexpr ComputedOperator computed[] = {
    {&ops::mul_Tensor, float8s | all_unsigned},
    {&ops::mul_Scalar, float8s | all_unsigned},
    {&ops::eq_Tensor, float8s | all_unsigned},
    {&ops::eq_Scalar, float8s | all_unsigned},
    {&ops::ne_Tensor, float8s | all_unsigned},
    {&ops::ne_Scalar, float8s | all_unsigned},
    {&ops::isnan, float8s | all_unsigned},
    {&ops::isinf, float8s | all_unsigned},
    {&ops::abs, float8s},
    {&ops::bitwise_and_Tensor, all_unsigned},
    {&ops::bitwise_and_Scalar, all_unsigned},
    {&ops::bitwise_or_Tensor, all_unsigned},
    {&ops::bitwise_or_Scalar, all_unsigned},
    {&ops::bitwise_xor_Tensor, all_unsigned},
    {&ops::bitwise_xor_Scalar, all_unsigned},
    {&ops::maximum, short_unsigned},
    {&ops::minimum, short_unsigned},
    {&ops::clamp, short_unsigned},
    {&ops::clamp_min, short_unsigned},
    {&ops::clamp_max, short_unsigned},
    {&ops::sort, short_unsigned},
};

DTypeSet dtypes_computed_by(const Operator& op) {
  for (const ComputedOperator& c : computed)
    if (c.op == &op) return c.dtypes;
  return 0;
}

DType first_in(DTypeSet set) { return static_cast<DType>(std::countr_zero(set)); }
std::string name_of_first(DTypeSet set) { return taper::name_of(first_in(set)); }

/// The storage dtypes of the set that have no common dtype with the rest of it; 0: there are none.
DTypeSet without_company(DTypeSet set) {
  if (const DTypeSet f = set & float8s; f != 0 && set != one(first_in(f))) return f;
  const DTypeSet u = set & all_unsigned;
  if (u != 0 && (set & (integers | all_unsigned)) != one(first_in(u))) return u;
  return 0;
}

std::string remedy_for(DType dtype) {
  return std::string("cast to ") + taper::name_of(computed_dtype(dtype)) + " first";
}

}  // namespace

bool has_storage_dtype(const OperatorInfo& info, const Boxed* arguments) {
  return any_tensor(info, arguments, [](int, const Tensor& t) { return is_storage(t.dtype()); });
}

void require_common_dtype(const OperatorInfo& info, const Boxed* arguments, const Location& here) {
  DTypeSet with_dimensions = 0, numbers = 0;
  any_tensor(info, arguments, [&](int i, const Tensor& t) {
    if (info.promoted >> i & 1) (t.rank() > 0 ? with_dimensions : numbers) |= one(t.dtype());
    return false;
  });
  for (const DTypeSet set : {with_dimensions, numbers}) {
    const DTypeSet lonely = without_company(set);
    if (lonely == 0) continue;
    const DTypeSet own = one(first_in(lonely));
    throw EagerError(here, std::string(info.name) + ": " + name_of_first(own) + " and " +
                               name_of_first(set & ~own) + " have no common dtype; " +
                               remedy_for(first_in(own)));
  }
}

DType computed_dtype(DType dtype) {
  return is_float8(dtype) ? DType::f32 : is_wide_unsigned(dtype) ? DType::i64 : dtype;
}

bool computes_storage(const OperatorInfo& info, const Boxed* arguments, const Location& here) {
  DTypeSet given = 0;
  any_tensor(info, arguments, [&](int, const Tensor& t) {
    if (is_storage(t.dtype())) given |= one(t.dtype());
    return false;
  });
  if (given == 0 || info.op->category == Category::view || info.decomposition != nullptr ||
      some_kernel_fits(info, arguments))
    return false;
  if ((given & ~dtypes_computed_by(*info.op)) == 0) return true;
  const DType dtype = first_in(given & ~dtypes_computed_by(*info.op));
  throw MissingKernelError(here, std::string(info.name) + ": " + taper::name_of(dtype) +
                                     " is a dtype of storage, without arithmetic; " +
                                     remedy_for(dtype));
}

}  // namespace taper::eager
