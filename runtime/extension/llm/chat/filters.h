#pragma once
#include <map>
#include <string>

#include "taper/runtime/extension/llm/chat/operations.h"

namespace taper::llm::chat {

using Filter = Value (*)(const Value& input, const ArgumentReader& in);

/// Those that work on lists.
void add_list_filters(std::map<std::string, Filter>& filters);

}  // namespace taper::llm::chat
