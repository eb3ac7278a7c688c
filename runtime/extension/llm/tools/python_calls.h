#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/tools.h"

namespace taper::llm {

/// Calls as Python writes them: `weather(city="Rome", days=3)`, several in a list, or inside of
/// `print()`. Arguments have names, and are literals. Empty if anything else is there.
std::vector<ToolCall> read_python_calls(std::string_view text);

}  // namespace taper::llm
