// Operators that give a number instead of a tensor, or check an assumption: the categories
// `symbolic` and `check` of the table. They have no kernel; numbers.cpp computes them.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

struct NumberOperator {
  const Operator* op;
  Boxed (*run)(const Boxed* arguments);
};
std::span<const NumberOperator> all_number_operators();

/// Calls such an operator. `arguments` are all arguments that reach kernels. Returns an integer,
/// which is symbolic while tracing, a real or a boolean. A check returns nothing.
///
/// While tracing, an assumption about symbols becomes a check of the graph, unless the ranges of
/// the symbols prove it. It is an error to ask for a number in the elements of a traced tensor.
/// Throws EagerError if the assumption does not hold, or if `info` has another category.
Boxed dispatch_number(const OperatorInfo& info, const Boxed* arguments, const Location& here);

/// The message of an assertion that has none.
inline constexpr std::string_view nameless_assertion = "an assertion of the model does not hold";

/// The message of `_linalg_check_errors` if info has an element other than 0.
std::string message_of_info(std::string_view function);

}  // namespace taper::eager
