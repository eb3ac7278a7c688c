#pragma once
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "taper/runtime/extension/llm/tokenizer/model.h"
#include "taper/runtime/extension/llm/tokenizer/pair_table.h"

namespace taper::llm {

struct BpeOptions {
  bool byte_level = false;        ///< words are bytes, and tokens write them as visible characters
  bool byte_fallback = false;     ///< an unknown character becomes the tokens of its bytes
  bool fuse_unknown = false;      ///< unknown characters in a row become one token
  bool ignore_merges = false;     ///< a word that is a token stays whole
  TokenId unknown = no_token;     ///< no_token: unknown characters are dropped
  std::string continuing_prefix;  ///< before each character of a word but the first
  std::string end_suffix;         ///< behind the last character of a word
};

/// Byte-pair encoding (Sennrich, Haddow and Birch, 2016): the two neighbours with the lowest rank
/// become one, until none can. A heap finds them, so a word of n characters takes O(n log n).
class Bpe : public WordModel {
 public:
  Bpe(std::shared_ptr<const Vocabulary> vocabulary, PairTable merges, BpeOptions options);
  void tokenize(std::string_view word, std::vector<Token>& tokens) const override;

 private:
  struct Symbol;
  void append_symbol(std::string_view character, Range range, bool first, bool last,
                     std::vector<Symbol>& symbols) const;
  void append_unknown(std::string_view character, Range range, std::vector<Symbol>& symbols) const;
  std::vector<Symbol> symbols_of(std::string_view word) const;
  void merge(std::vector<Symbol>& symbols) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  PairTable merges_;
  BpeOptions options_;
  std::array<TokenId, 256> bytes_;  // the token of each byte: visible, or `<0x0A>`
};

/// The merges of a list of pairs, in their order. Throws a Failure for tokens that are not in the
/// vocabulary.
PairTable merges_in_order(const Vocabulary& vocabulary,
                          const std::vector<std::pair<std::string, std::string>>& pairs,
                          const std::string& continuing_prefix);

/// The tokens of a merge that is written with a blank between them. Tokens may contain blanks, too:
/// the first blank with a token on each side counts.
std::pair<std::string, std::string> parse_merge(const std::string& text,
                                                const Vocabulary& vocabulary);

/// True if a word may be cut before each `mark` that does not follow another one: no merge reaches
/// across.
bool cuts_before(const std::string& mark, const Vocabulary& vocabulary, const PairTable& merges);

/// SentencePiece's rule: every two tokens may become a token that is written as both, and the
/// highest score comes first.
PairTable merges_by_score(const Vocabulary& vocabulary, const std::vector<float>& scores);

}  // namespace taper::llm
