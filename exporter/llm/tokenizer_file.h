#pragma once
#include <string>

#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {

/// The tokenizer of a Hugging Face folder or a .gguf file. Throws ExportError, which names the
/// file, if it has none, or one that cannot be read.
Tokenizer read_tokenizer(const std::string& path);

}  // namespace taper::llm
