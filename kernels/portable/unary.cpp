// Pointwise operators of one tensor: arithmetic, roundings, elementary functions, predicates.
#include "taper/kernels/portable/unary_functions.h"
#include "taper/kernels/shapes/pointwise.h"

namespace taper::portable {

#define TAPER_ELEMENTARY(op, arguments, records, F, ...) TAPER_##arguments##_##records(op, F)
#include "taper/kernels/pointwise.def"
TAPER_POINTWISE(logical_not, bool, Elementwise<LogicalNot<bool>, bool, bool>)
TAPER_POINTWISE(bitwise_not, bool, Elementwise<LogicalNot<bool>, bool, bool>)
TAPER_POINTWISE(bitwise_not, i64, Elementwise<BitwiseNot<int64_t>, int64_t, int64_t>)
TAPER_POINTWISE(bitwise_not, small_integer,
                Elementwise<BitwiseNot<int64_t>, NarrowNumber, NarrowNumber>)

}  // namespace taper::portable
