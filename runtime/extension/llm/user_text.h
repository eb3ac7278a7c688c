#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {

/// Keeps texts of users from being read as special tokens: `<|im_end|>` in a question must not end
/// the user's turn. Before a template writes such a text, marks stand for the texts of special
/// tokens. When the prompt is encoded, a mark becomes that text again, as ordinary characters.
/// Other texts are encoded as if there were no marks.
class UserText {
 public:
  explicit UserText(const Tokenizer& tokenizer);

  /// Marks the texts of special tokens in what users and tools say. `messages` is a JSON list;
  /// what is none is returned as it is.
  std::string mark_messages(const std::string& messages) const;
  /// The tokens of a prompt that a template wrote.
  std::vector<TokenId> encode(std::string_view prompt) const;

 private:
  std::string mark(std::string_view text) const;

  Tokenizer tokenizer_;
  std::vector<std::string> special_;  ///< the longest first
};

}  // namespace taper::llm
