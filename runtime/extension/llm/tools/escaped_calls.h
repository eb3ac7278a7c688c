#pragma once
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/tools.h"

namespace taper::llm {

/// A call as FunctionGemma writes it: `call:weather{city:<escape>Rome<escape>,days:3}`. Empty if
/// anything else is there.
std::vector<ToolCall> read_escaped_call(std::string_view text);

}  // namespace taper::llm
