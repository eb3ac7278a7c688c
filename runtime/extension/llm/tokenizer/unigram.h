#pragma once
#include <array>
#include <memory>

#include "taper/runtime/extension/llm/tokenizer/byte_trie.h"
#include "taper/runtime/extension/llm/tokenizer/model.h"

namespace taper::llm {

/// In which precision scores are added. Sums decide between equally good cuts: Hugging Face adds in
/// double precision, SentencePiece in single precision.
enum class ScoreSums : uint8_t { in_double, in_float };

/// A unigram language model (Kudo, 2018): the tokens with the highest sum of scores, which
/// Viterbi's algorithm finds. Unknown characters in a row become one token.
class Unigram : public WordModel {
 public:
  /// `scores` has one score for each token. Tokens with `usable[id]` false never match.
  Unigram(std::shared_ptr<const Vocabulary> vocabulary, std::vector<double> scores,
          const std::vector<bool>& usable, TokenId unknown, bool byte_fallback, ScoreSums sums);
  void tokenize(std::string_view word, std::vector<Token>& tokens) const override;

 private:
  void append_unknown(std::string_view word, Range range, std::vector<Token>& tokens) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::vector<double> scores_;
  ByteTrie trie_;
  TokenId unknown_;
  double unknown_score_;
  bool byte_fallback_;
  ScoreSums sums_;
  std::array<TokenId, 256> bytes_;
};

}  // namespace taper::llm
