#pragma once
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer/pipeline.h"
#include "taper/runtime/extension/llm/tokenizer/word_cache.h"

namespace taper::llm {

/// The tokens of valid UTF-8, before the post-processor. The ranges are bytes of the input if
/// `tracked`, and mean nothing otherwise. `cache` may be nullptr.
std::vector<Token> tokens_of(const Pipeline& pipeline, std::string_view input, bool parse_special,
                             bool tracked, WordCache* cache);

/// Leaves white space at the ends of tokens out of their ranges, as ByteLevel's `trim_offsets`.
void trim_ranges(const Pipeline& pipeline, std::vector<Token>& tokens);

}  // namespace taper::llm
