// Whether a result is what PyTorch gave, within the case's tolerance.
#pragma once
#include <string>

#include "cases.h"

namespace taper::golden {

/// "" if `got` equals `want`: dtype, sizes, and elements by |got - want| <= atol + rtol |want|; NaN
/// equals NaN, infinities and integers must be equal. Else what differs, and where.
std::string difference(const Tensor& got, const Tensor& want, double rtol, double atol);

/// The same against an OUT of a case: a tensor, nothing, or (random cases) a shape and a dtype.
std::string difference(const CaseFile& file, const Tensor& got, const Json& want, double rtol,
                       double atol);

}  // namespace taper::golden
