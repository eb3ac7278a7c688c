#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace taper::llm {

/// The metadata `tokenizer.ggml.*` of a GGUF file. Each member has the name of its key.
struct GgufVocabulary {
  std::string model;  ///< gpt2, llama, bert, t5 or rwkv
  std::string pre;    ///< of gpt2: which regular expressions cut words
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> token_type;  ///< 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused,
                                    ///< 6 byte
  std::vector<std::string> merges;  ///< two tokens with a blank between them
  std::optional<int32_t> bos_token_id, eos_token_id, unknown_token_id, separator_token_id,
      cls_token_id;
  std::optional<bool> add_bos_token, add_eos_token, add_space_prefix, remove_extra_whitespaces;
  std::string precompiled_charsmap;
};

}  // namespace taper::llm
