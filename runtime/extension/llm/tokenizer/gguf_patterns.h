#pragma once
#include <string>
#include <vector>

namespace taper::llm {

/// How a tokenizer that GGUF files call `tokenizer.ggml.pre` cuts texts into words.
struct GgufPattern {
  std::vector<std::string> splits;  ///< one after the other
  bool ignores_merges = false;      ///< a word that is a token stays whole
};

/// Throws a Failure that lists the known names.
const GgufPattern& gguf_pattern(const std::string& name);

}  // namespace taper::llm
