#pragma once
#include <string>

#include "taper/runtime/core/error.h"

namespace taper {

/// An error as a person reads it. In a text, `{}` is the next of the values, `{dtype}` the next as
/// a DType, and `{subject}` the subject:
///   "test::take (gather.cpp:3, instruction 0, argument 1): index 3 is outside
///   [0, 3)"
/// `input`: the name of the input that `info.argument` numbers, if the caller knows one:
///   "x (input 0): batch = 10 is outside 1..8"
std::string describe(const ErrorInfo& info, const char* input = nullptr);

}  // namespace taper
