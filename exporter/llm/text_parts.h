// What stands beside the weights of a language model: how text becomes tokens, what a conversation
// looks like, and which tokens end an answer. Out of a Hugging Face folder or a .gguf file.
#pragma once
#include <optional>
#include <set>
#include <string>

#include "taper/runtime/extension/llm/chat_template.h"
#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {

struct TextParts {
  std::optional<Tokenizer> tokenizer;  ///< absent if the files have none
  std::optional<ChatTemplate> chat;    ///< absent if the files have none
  std::optional<std::string> bos_token, eos_token;
  std::set<TokenId> ends;
};

/// Throws ExportError, which names the file, for a tokenizer or template that cannot be read.
TextParts read_text_parts(const std::string& path);

}  // namespace taper::llm
