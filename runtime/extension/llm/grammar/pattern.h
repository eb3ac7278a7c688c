#pragma once
#include <string>

#include "taper/runtime/extension/llm/grammar/rules.h"

namespace taper::llm {

/// The texts in which a regular expression of JavaScript (ECMA-262, with the flag `u`) finds
/// something, as a schema's `pattern` asks for. Refuses what finite automata cannot do: looking
/// around, word boundaries and references to groups.
Rules rules_of_pattern(const std::string& pattern);

/// The texts of a format of JSON schema: date, ipv4, uuid. Null for others, which only annotate.
const char* grammar_of_format(const std::string& format);

}  // namespace taper::llm
