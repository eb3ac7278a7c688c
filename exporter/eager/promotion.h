// Type promotion: the one host function that brings arguments to common dtypes before rules and
// kernels see them.
#pragma once
#include <functional>
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// The dtype that both convert to: bool < integers < floating, the wider wins, u8 with a signed
/// type widens (PyTorch's table).
DType promote_types(DType a, DType b);

/// The common dtype of the arguments `among` (bit i: argument i) by PyTorch's rule. Tensors with
/// dimensions decide. A 0-dim tensor, and after it a Scalar, counts only if its category (bool <
/// integer < floating) is higher.
DType result_type(const OperatorInfo& info, const Boxed* arguments, uint32_t among);

/// Keeps the tensors alive that arguments were cast to.
struct Casts {
  std::vector<Tensor> tensors;
  std::vector<std::vector<Tensor>> lists;
};
/// Replaces the tensors of the arguments `which` (bit i: argument i) by casts to what `target`
/// makes of their dtype.
void recast(const OperatorInfo& info, uint32_t which, Boxed* arguments, Casts& casts,
            const std::function<DType(DType)>& target, const Location& here);
/// Replaces tensor arguments by casts where the operator's `Promotion` asks for it.
void promote(const OperatorInfo& info, Boxed* arguments, Casts& casts, const Location& here);

/// The tensor in another dtype, differentiably; itself if it has it.
Tensor cast(const Tensor& tensor, DType dtype, const Location& here = Location::current());

}  // namespace taper::eager
