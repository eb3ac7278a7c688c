// Messages of failed calls: `softmax: dim 3 is outside [-2, 2) for self (2, 5)`.
#pragma once
#include <string>

#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

/// No kernel takes these dtypes.
class MissingKernelError : public EagerError {
 public:
  using EagerError::EagerError;
};

/// "self (2, 5), other (3)": the tensor arguments with their sizes.
std::string describe_arguments(const OperatorInfo& info, const Boxed* arguments);

/// Why an operator cannot run at all: "view: this operator has no kernel".
std::string describe_absence(const OperatorInfo& info);

std::string describe_failure(const OperatorInfo& info, const Boxed* arguments,
                             const Facts<Extent>& facts);
std::string describe_failure(const OperatorInfo& info, const Boxed* arguments,
                             const Facts<Dim>& facts);
std::string describe_failure(const OperatorInfo& info, const Boxed* arguments,
                             const ErrorInfo& failure, Error error);

}  // namespace taper::eager
