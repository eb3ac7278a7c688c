#pragma once
#include <string_view>

#include "taper/runtime/extension/llm/grammar/rules.h"

namespace taper::llm {

/// Reads the notation of llama.cpp: `root ::= "yes" | [0-9]+ # a comment`. Refuses what is wrong
/// with the line.
Rules read_gbnf(std::string_view text);

}  // namespace taper::llm
