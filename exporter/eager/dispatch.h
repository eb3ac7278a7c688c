// Calls whose arguments have no C++ types. Typed calls (call.h), the interpreter and importers all
// end up here.
#pragma once
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// The one place where an operator runs, is recorded on the tape, or is traced. `arguments` are all
/// arguments that reach kernels. `results` holds one undefined Tensor for each result. Throws
/// EagerError.
void dispatch(const OperatorInfo& info, Boxed* arguments, Tensor* results, const Location& here);

/// Calls the in-place twin (`relu_`) of an operator (`relu`), which also writes result 0 into
/// `self`, argument 0. The twin of a view (`unsqueeze_`) writes nothing: the handle `self` then
/// stands for the view, and other handles keep the old shape.
void dispatch_in_place(const OperatorInfo& info, Boxed* arguments, Tensor& self,
                       const Location& here);

/// The same for an operator with a decomposition. The decomposition runs even if there are kernels.
void dispatch_in_parts(const OperatorInfo& info, Boxed* arguments, Tensor* results,
                       const Location& here);

/// Calls a row with a `Tensor[]` result (split, unbind, meshgrid). Such rows are composites: this
/// runs the decomposition.
std::vector<Tensor> dispatch_list(const OperatorInfo& info, Boxed* arguments, const Location& here);

}  // namespace taper::eager
