// Guesses of what a language model writes next, which it then reads all at once. Its answer stays
// the same. Y. Leviathan and others, "Fast Inference from Transformers via Speculative Decoding",
// arXiv:2211.17192.
#pragma once
#include <vector>

#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {

/// What followed where the last tokens stood before: at most `most` tokens, none if they are new.
/// Three tokens count, or two.
std::vector<TokenId> look_up(const std::vector<TokenId>& text, int64_t most);

}  // namespace taper::llm
