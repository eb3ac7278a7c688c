#pragma once
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// Whether some kernel takes the arguments' dtypes, or what `seen` makes of them.
bool some_kernel_fits(const OperatorInfo& info, const Boxed* arguments,
                      DType (*seen)(DType) = nullptr);

/// Runs the first kernel that takes the dtypes: the rule, the results' memory, prepare, run.
///
///   self   result 0 is this tensor, which is argument 0, where the kernel may write onto it and
///          nothing else reads it; nullptr: results are new
///
/// Throws MissingKernelError, or EagerError with what the rule or the kernel refused.
void run_kernel(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                const Tensor* self, const Location& here);

/// Calls records in place of `run_kernel`, which does the rest: for tests of the records
/// themselves.
class KernelCaller {
 public:
  virtual ~KernelCaller() = default;

  /// One of the records that take the dtypes of a call, the preferred first.
  virtual const Kernel* choose(const std::vector<const Kernel*>& fitting) = 0;
  /// `prepare` and `run`, with the scratch that the record asks for.
  virtual Error call(const Kernel& kernel, Context& context, const Slot* slots) = 0;
};
/// nullptr, the default: the preferred record is called where the tensors lie. Do not call it while
/// operators run.
void set_kernel_caller(KernelCaller* caller);

}  // namespace taper::eager
