#pragma once
#include <memory>
#include <string>

#include "taper/runtime/extension/llm/tokenizer/model.h"

namespace taper::llm {

/// BERT's WordPiece: the longest token that the word begins with, then the longest one of the
/// rest. A word that cannot be cut so is unknown as a whole.
class WordPiece : public WordModel {
 public:
  /// `start` and `continuing` stand before tokens at the start of a word and inside of one.
  WordPiece(std::shared_ptr<const Vocabulary> vocabulary, TokenId unknown, std::string start,
            std::string continuing, size_t max_characters);
  void tokenize(std::string_view word, std::vector<Token>& tokens) const override;

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  TokenId unknown_;
  std::string start_, continuing_;
  size_t max_characters_;
};

/// A word is a token, or unknown.
class WordLevel : public WordModel {
 public:
  WordLevel(std::shared_ptr<const Vocabulary> vocabulary, TokenId unknown)
      : vocabulary_(std::move(vocabulary)), unknown_(unknown) {}
  void tokenize(std::string_view word, std::vector<Token>& tokens) const override;

 private:
  std::shared_ptr<const Vocabulary> vocabulary_;
  TokenId unknown_;
};

}  // namespace taper::llm
