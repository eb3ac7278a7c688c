#pragma once
#include <vector>

#include "taper/runtime/extension/llm/text_parts.h"

namespace taper::llm {

/// How the answer behind a prompt is taken apart: the form of the model's family, and whether the
/// prompt ends inside of thoughts. Calls are ordinary text, unless the caller sets `tools`.
AnswerStyle answer_style_behind(const std::vector<TokenId>& prompt, const TextParts& text);

}  // namespace taper::llm
