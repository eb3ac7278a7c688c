// Pointwise operators of one tensor: arithmetic, roundings, elementary functions, predicates.
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {

TAPER_UNARY_NUMERIC(abs, Abs)
TAPER_UNARY_NUMERIC(neg, Neg)
TAPER_UNARY_NUMERIC(sign, Sign)
TAPER_UNARY_NUMERIC(ceil, Ceil)
TAPER_UNARY_NUMERIC(floor, Floor)
TAPER_UNARY_NUMERIC(round, Round)
TAPER_UNARY_NUMERIC(trunc, Trunc)
TAPER_UNARY_PREDICATE(isnan, IsNan)
TAPER_UNARY_PREDICATE(isinf, IsInf)
TAPER_UNARY_PREDICATE(signbit, SignBit)
TAPER_UNARY_PREDICATE(logical_not, LogicalNot)
TAPER_POINTWISE(logical_not, bool, Elementwise<LogicalNot<bool>, bool, bool>)
TAPER_POINTWISE(bitwise_not, bool, Elementwise<LogicalNot<bool>, bool, bool>)
TAPER_POINTWISE(bitwise_not, i64, Elementwise<BitwiseNot<int64_t>, int64_t, int64_t>)
TAPER_POINTWISE(bitwise_not, small_integer,
                Elementwise<BitwiseNot<int64_t>, NarrowNumber, NarrowNumber>)

TAPER_UNARY_FLOATING(acos, Acos)
TAPER_UNARY_FLOATING(acosh, Acosh)
TAPER_UNARY_FLOATING(asin, Asin)
TAPER_UNARY_FLOATING(asinh, Asinh)
TAPER_UNARY_FLOATING(atan, Atan)
TAPER_UNARY_FLOATING(atanh, Atanh)
TAPER_UNARY_FLOATING(cos, Cos)
TAPER_UNARY_FLOATING(cosh, Cosh)
TAPER_UNARY_FLOATING(erf, Erf)
TAPER_UNARY_FLOATING(erfc, Erfc)
TAPER_UNARY_FLOATING(exp, Exp)
TAPER_UNARY_FLOATING(exp2, Exp2)
TAPER_UNARY_FLOATING(expm1, Expm1)
TAPER_UNARY_FLOATING(log, Log)
TAPER_UNARY_FLOATING(log10, Log10)
TAPER_UNARY_FLOATING(log1p, Log1p)
TAPER_UNARY_FLOATING(log2, Log2)
TAPER_UNARY_FLOATING(reciprocal, Reciprocal)
TAPER_UNARY_FLOATING(rsqrt, Rsqrt)
TAPER_UNARY_FLOATING(sigmoid, Sigmoid)
TAPER_UNARY_FLOATING(sin, Sin)
TAPER_UNARY_FLOATING(sinh, Sinh)
TAPER_UNARY_FLOATING(sqrt, Sqrt)
TAPER_UNARY_FLOATING(tan, Tan)
TAPER_UNARY_FLOATING(tanh, Tanh)

}  // namespace taper::portable
