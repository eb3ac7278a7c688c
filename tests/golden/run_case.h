// One golden case in eager: values, what was written in place, gradients of first and second order,
// errors.
#pragma once
#include <string>

#include "cases.h"

namespace taper::golden {

enum class Outcome {
  passed,
  failed,
  without_kernel,   ///< the operator, or one for such arguments, does not exist
  decided_by_data,  ///< no program can hold it: a number or a size that only a run knows
};
struct Verdict {
  Outcome outcome;
  std::string reason;  ///< of a failure, a line a result; or what is missing
};

/// The row of an overload, and whether the overload is its in-place twin. Throws NotHere.
struct Target {
  const eager::OperatorInfo* info;
  bool in_place;
};
Target target_of(const std::string& overload);
/// The same of a case: where it has a tensor for a number, the row is another one, `narrow.Tensor`
/// of `narrow`.
Target target_of(const std::string& overload, const Json& golden);

Verdict run_eager(const CaseFile& file, const Json& golden, const Target& target);

/// The results or gradients of a case, one for each element of a list.
std::vector<Json> flat_outputs(const Json& outputs);

/// The results of a call whose arguments are boxed. Results of an in-place call: its first
/// argument.
std::vector<Tensor> call(Call& arguments, const Target& target);

}  // namespace taper::golden
