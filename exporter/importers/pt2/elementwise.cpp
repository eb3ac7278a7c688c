#include "taper/exporter/importers/pt2/elementwise.h"

#include <unordered_set>

#include "taper/exporter/ir/pointwise.h"

namespace taper::pt2 {
namespace {

/// Rows that decompose into pointwise ones, or that cast, select or draw.
bool is_made_of_pointwise(const Operator& op) {
  static const std::unordered_set<const Operator*> rows = {
      // casts and copies
      &ops::_to_copy, &ops::to_dtype, &ops::to_dtype_layout, &ops::to_device, &ops::to_other,
      &ops::type_as, &ops::clone, &ops::positive, &ops::dropout, &ops::zeros_like, &ops::ones_like,
      &ops::full_like, &ops::empty_like,
      // selection
      &ops::where_self, &ops::where_ScalarOther, &ops::where_ScalarSelf, &ops::where_Scalar,
      &ops::masked_fill_Scalar, &ops::masked_fill_Tensor, &ops::clamp_Tensor,
      &ops::clamp_min_Tensor, &ops::clamp_max_Tensor, &ops::clip, &ops::clip_Tensor,
      &ops::threshold, &ops::heaviside,
      // logic
      &ops::bitwise_not, &ops::logical_and, &ops::logical_or, &ops::logical_xor,
      &ops::__and___Tensor, &ops::__and___Scalar, &ops::__or___Tensor, &ops::__or___Scalar,
      &ops::__xor___Tensor, &ops::__xor___Scalar, &ops::__lshift___Tensor, &ops::__lshift___Scalar,
      &ops::__rshift___Tensor, &ops::__rshift___Scalar, &ops::isfinite, &ops::isposinf,
      &ops::isneginf, &ops::isclose,
      // arithmetic
      &ops::rsub_Tensor, &ops::rsub_Scalar, &ops::square, &ops::absolute, &ops::multiply_Tensor,
      &ops::subtract_Tensor, &ops::divide_Tensor, &ops::true_divide_Tensor,
      &ops::float_power_Tensor_Scalar, &ops::float_power_Tensor_Tensor, &ops::frac, &ops::logit,
      &ops::sinc, &ops::deg2rad, &ops::rad2deg, &ops::ldexp_Tensor,
      // activations
      &ops::relu6, &ops::selu, &ops::celu, &ops::log_sigmoid};
  return rows.contains(&op);
}

}  // namespace

bool is_elementwise(const Operator& op) { return ir::is_pointwise(op) || is_made_of_pointwise(op); }

}  // namespace taper::pt2
