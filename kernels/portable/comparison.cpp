// Comparisons, logic, and selection by a mask.
#include "taper/kernels/portable/binary_functions.h"
#include "taper/kernels/portable/records.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {
namespace {

template <class T>
using EqScalar = WithScalar<Eq, T>;
template <class T>
using NeScalar = WithScalar<Ne, T>;
template <class T>
using LtScalar = WithScalar<Lt, T>;
template <class T>
using LeScalar = WithScalar<Le, T>;
template <class T>
using GtScalar = WithScalar<Gt, T>;
template <class T>
using GeScalar = WithScalar<Ge, T>;

struct LogicalAnd {
  bool operator()(bool a, bool b) const { return a & b; }
};
struct LogicalOr {
  bool operator()(bool a, bool b) const { return a | b; }
};
struct LogicalXor {
  bool operator()(bool a, bool b) const { return a != b; }
};

}  // namespace

TAPER_BINARY_PREDICATE(eq_Tensor, Eq)
TAPER_UNARY_PREDICATE(eq_Scalar, EqScalar)
TAPER_BINARY_PREDICATE(ne_Tensor, Ne)
TAPER_UNARY_PREDICATE(ne_Scalar, NeScalar)
TAPER_BINARY_PREDICATE(lt_Tensor, Lt)
TAPER_UNARY_PREDICATE(lt_Scalar, LtScalar)
TAPER_BINARY_PREDICATE(le_Tensor, Le)
TAPER_UNARY_PREDICATE(le_Scalar, LeScalar)
TAPER_BINARY_PREDICATE(gt_Tensor, Gt)
TAPER_UNARY_PREDICATE(gt_Scalar, GtScalar)
TAPER_BINARY_PREDICATE(ge_Tensor, Ge)
TAPER_UNARY_PREDICATE(ge_Scalar, GeScalar)

TAPER_POINTWISE(logical_and, bool, Elementwise<LogicalAnd, bool, bool, bool>)
TAPER_POINTWISE(logical_or, bool, Elementwise<LogicalOr, bool, bool, bool>)
TAPER_POINTWISE(logical_xor, bool, Elementwise<LogicalXor, bool, bool, bool>)

// of bool the same as the bitwise ones
TAPER_POINTWISE(bitwise_and_Tensor, bool, Elementwise<LogicalAnd, bool, bool, bool>)
TAPER_POINTWISE(bitwise_or_Tensor, bool, Elementwise<LogicalOr, bool, bool, bool>)
TAPER_POINTWISE(bitwise_xor_Tensor, bool, Elementwise<LogicalXor, bool, bool, bool>)

#define TAPER_WHERE(variant, T, op) \
  TAPER_POINTWISE(op, variant, Elementwise<Where<T>, T, bool, T, T>)
TAPER_SIZES(TAPER_WHERE, where_self)

TAPER_POINTWISE(masked_fill_Scalar, f32, Elementwise<MaskedFill<float>, float, float, bool>)
TAPER_POINTWISE(masked_fill_Scalar, f64, Elementwise<MaskedFill<double>, double, double, bool>)
TAPER_POINTWISE(masked_fill_Scalar, small_float,
                Elementwise<MaskedFill<float>, SmallFloat, SmallFloat, bool>)
TAPER_POINTWISE(masked_fill_Scalar, i64, Elementwise<MaskedFill<int64_t>, int64_t, int64_t, bool>)
TAPER_POINTWISE(masked_fill_Scalar, small_integer,
                Elementwise<MaskedFill<int64_t>, SmallInteger, SmallInteger, bool>)

}  // namespace taper::portable
