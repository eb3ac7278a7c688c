// Operators that give a number instead of a tensor, or check an assumption: the categories
// `symbolic` and `check` of the table. They have no kernel; their meaning stands in numbers.cpp.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "taper/exporter/eager/boxed.h"
#include "taper/exporter/eager/operator_info.h"

namespace taper::eager {

struct NumberOperator {
  const Operator* op;
  Boxed (*run)(const Boxed* arguments, Location here);
};
std::span<const NumberOperator> all_number_operators();

/// Calls one: `arguments` are those that reach kernels, all of them. Gives an integer (symbolic
/// while tracing), a real or a boolean; of a check, nothing.
///
/// While tracing, an assumption about symbols that their ranges do not prove becomes a check of the
/// graph; a number that lies in a tensor's elements is refused. Throws EagerError if the assumption
/// does not hold, or if `info` is no operator of these categories.
Boxed dispatch_number(const OperatorInfo& info, const Boxed* arguments, const Location& here);

/// What `_linalg_check_errors` says if info has an element other than 0.
std::string message_of_info(std::string_view function);

}  // namespace taper::eager
