#pragma once
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer/text.h"
#include "taper/runtime/extension/llm/tokenizer/vocabulary.h"

namespace taper::llm {

/// A token, and the bytes of the word that it stands for.
struct Token {
  TokenId id;
  Range range;
};

/// Cuts a word into tokens. Any number of threads may use a model.
class WordModel {
 public:
  virtual ~WordModel() = default;
  /// Appends the tokens of `word`, which is not empty.
  virtual void tokenize(std::string_view word, std::vector<Token>& tokens) const = 0;
};

}  // namespace taper::llm
