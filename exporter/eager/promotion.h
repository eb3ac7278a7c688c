// Type promotion: casts arguments to common dtypes before rules and kernels see them. No other code
// of the host does this.
#pragma once
#include <functional>
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// Floating or complex: what has gradients.
constexpr bool is_inexact(DType d) { return is_floating(d) || is_complex(d); }

/// The dtype that both convert to, by PyTorch's table. bool < integers < floating < complex; the
/// wider one wins. u8 and i8 give i16. Storage dtypes that have no common dtype are refused before
/// (storage_dtypes.h).
DType promote_types(DType a, DType b);

/// The common dtype of some arguments, by PyTorch's rule; bit i of `among` stands for argument i.
/// Tensors with dimensions decide. A 0-dim tensor, and after it a Scalar, counts only if its
/// category (bool < integer < floating < complex) is higher.
DType result_type(const OperatorInfo& info, const Boxed* arguments, uint32_t among);

/// Keeps the results of casts alive.
struct Casts {
  std::vector<Tensor> tensors;
  std::vector<std::vector<Tensor>> lists;
};
/// Casts the tensors of some arguments (bit i of `which`: argument i) to the dtype that `target`
/// makes of theirs.
void recast(const OperatorInfo& info, uint32_t which, Boxed* arguments, Casts& casts,
            const std::function<DType(DType)>& target, const Location& here);
/// Replaces tensor arguments by casts where the operator's `Promotion` asks for it.
void promote(const OperatorInfo& info, Boxed* arguments, Casts& casts, const Location& here);

/// The tensor in another dtype, differentiably. If it has the dtype already, the tensor itself.
Tensor cast(const Tensor& tensor, DType dtype, const Location& here = Location::current());

}  // namespace taper::eager
