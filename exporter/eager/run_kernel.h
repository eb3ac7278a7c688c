#pragma once
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// Whether any kernel takes the arguments' dtypes, after `seen` has mapped them.
bool some_kernel_fits(const OperatorInfo& info, const Boxed* arguments,
                      DType (*seen)(DType) = nullptr);

/// Runs the first kernel that takes the dtypes: the rule, memory for the results, prepare, run.
///
///   self   argument 0. If the kernel may write over it and nothing else reads it, it becomes
///          result 0. nullptr: all results are new
///
/// Throws MissingKernelError, or EagerError with the reason that the rule or the kernel gave.
void run_kernel(const OperatorInfo& info, const Boxed* arguments, Tensor* results,
                const Tensor* self, const Location& here);

/// Replaces the call of a record in `run_kernel`, so that tests can call each record in their own
/// way.
class KernelCaller {
 public:
  virtual ~KernelCaller() = default;

  /// Chooses one of the records that take the dtypes of a call; the preferred one stands first.
  virtual const Kernel* choose(const std::vector<const Kernel*>& fitting) = 0;
  /// Calls `prepare` and `run`, with the scratch that the record asks for.
  virtual Error call(const Kernel& kernel, Context& context, const Slot* slots) = 0;
};
/// nullptr, the default, calls the preferred record on the tensors as they lie. Do not call it
/// while operators run.
void set_kernel_caller(KernelCaller* caller);

}  // namespace taper::eager
