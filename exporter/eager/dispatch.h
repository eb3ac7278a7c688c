// Calls with erased arguments: what typed calls (call.h), the interpreter and importers by name
// come to.
#pragma once
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// The one place where an operator is run, recorded on the tape, or traced. `arguments` are those
/// that reach kernels, all of them; `results` has one undefined Tensor a result. Throws EagerError.
void dispatch(const OperatorInfo& info, Boxed* arguments, Tensor* results, const Location& here);

/// The same, and writes result 0 into `self`, which is argument 0: the in-place twin (`relu_`) of
/// an operator (`relu`). That of a view (`unsqueeze`) writes nothing: `self` becomes a handle on
/// the view, and other handles keep the old shape.
void dispatch_in_place(const OperatorInfo& info, Boxed* arguments, Tensor& self,
                       const Location& here);

/// For rows with a `Tensor[]` result (split, unbind, meshgrid): they are composites, this runs
/// their decomposition.
std::vector<Tensor> dispatch_list(const OperatorInfo& info, Boxed* arguments, const Location& here);

}  // namespace taper::eager
