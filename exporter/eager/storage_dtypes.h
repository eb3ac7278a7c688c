// The dtypes of storage (f8_e4m3fn, f8_e5m2, u16, u32, u64) in eager. Their elements are moved and
// cast. The few operators that PyTorch computes on them run between two casts.
#pragma once
#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

bool has_storage_dtype(const OperatorInfo& info, const Boxed* arguments);

/// Throws if the arguments of one priority (tensors with dimensions, 0-dim tensors) have no common
/// dtype. As in PyTorch, floats of 8 bits have none with any other dtype, and u16, u32 and u64 have
/// none with other integers or bool.
void require_common_dtype(const OperatorInfo& info, const Boxed* arguments, const Location& here);

/// The dtype in which a storage dtype is computed: f32 for floats of 8 bits, i64 for integers.
/// Other dtypes as they are.
DType computed_dtype(DType dtype);

/// Whether the call is computed in `computed_dtype`, between two casts. Throws if a storage dtype
/// among the arguments has no such operator, and no kernel or decomposition takes it either.
bool computes_storage(const OperatorInfo& info, const Boxed* arguments, const Location& here);

}  // namespace taper::eager
