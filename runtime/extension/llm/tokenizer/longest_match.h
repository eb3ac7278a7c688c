#pragma once
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer/byte_trie.h"
#include "taper/runtime/extension/llm/tokenizer/model.h"

namespace taper::llm {

/// RWKV's "World" tokenizer: the longest token that the text begins with, then the longest one of
/// the rest. Tokens are any bytes, and each byte is a token.
class LongestMatch : public WordModel {
 public:
  /// `tokens`: the bytes of each token; empty: the token never matches.
  LongestMatch(const std::vector<std::string>& tokens, TokenId unknown);
  void tokenize(std::string_view word, std::vector<Token>& tokens) const override;

 private:
  ByteTrie trie_;
  TokenId unknown_;
};

}  // namespace taper::llm
