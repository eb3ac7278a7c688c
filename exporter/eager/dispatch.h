// Calls whose arguments have no C++ types. Typed calls (call.h), the interpreter and importers all
// end here.
#pragma once
#include <vector>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// The one place where an operator is run, recorded on the tape, or traced. `arguments` are all
/// those that reach kernels. `results` has one undefined Tensor for each result. Throws EagerError.
void dispatch(const OperatorInfo& info, Boxed* arguments, Tensor* results, const Location& here);

/// The in-place twin (`relu_`) of an operator (`relu`): it also writes result 0 into `self`, which
/// is argument 0. The twin of a view (`unsqueeze_`) writes nothing: `self` becomes a handle on the
/// view, and other handles keep the old shape.
void dispatch_in_place(const OperatorInfo& info, Boxed* arguments, Tensor& self,
                       const Location& here);

/// The same of an operator with a decomposition, which runs whether there are kernels or not.
void dispatch_in_parts(const OperatorInfo& info, Boxed* arguments, Tensor* results,
                       const Location& here);

/// For rows with a `Tensor[]` result (split, unbind, meshgrid). They are composites: this runs the
/// decomposition.
std::vector<Tensor> dispatch_list(const OperatorInfo& info, Boxed* arguments, const Location& here);

}  // namespace taper::eager
