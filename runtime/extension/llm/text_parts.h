#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/chat_template.h"
#include "taper/runtime/extension/llm/sampler.h"
#include "taper/runtime/extension/llm/tokenizer.h"
#include "taper/runtime/extension/llm/tools.h"
#include "taper/runtime/program/program.h"

namespace taper::llm {

/// What a program file of a language model carries beside the weights. docs/format.md lists the
/// assets.
struct TextParts {
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat;  ///< none: the model only continues texts
  ToolSupport tools;                 ///< of the template
  std::optional<std::string> bos_token, eos_token;
  std::set<TokenId> ends;    ///< tokens that end an answer
  SamplingOptions sampling;  ///< what the model's authors recommend, or common values
  int64_t context = 0;       ///< the most tokens of a text
  bool rewinds = true;  ///< false: the model remembers more than a cache, and can only forget all
  std::vector<std::string> adapters;  ///< names of LoRA adapters, among which texts choose
};

/// Reads the assets of a program. `message` gets the reason of an error. Errors: invalid_argument
/// (the file has no tokenizer, or one that this version does not know), invalid_program (damaged).
Result<TextParts> read_text_parts(const Program& program, std::string* message = nullptr);

}  // namespace taper::llm
