#pragma once
#include <initializer_list>
#include <string>
#include <string_view>

#include "taper/runtime/core/error.h"

namespace taper {

/// An error in words. In a text, `{}` is the next of the values, `{dtype}` the next one as a DType,
/// and `{subject}` the subject:
///   "take (gather.cpp:3, instruction 0, argument 1): index 3 is outside [0, 3)"
/// `input` is the name of the input whose index is `info.argument`, if the caller knows one:
///   "x (input 0): batch = 10 is outside 1..8"
std::string describe(const ErrorInfo& info, const char* input = nullptr);

/// The parts of a message as one text. Additions of strings would be more code in every caller.
std::string joined(std::initializer_list<std::string_view> parts);

}  // namespace taper
