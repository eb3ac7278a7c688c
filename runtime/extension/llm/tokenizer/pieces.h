#pragma once
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer/bpe.h"
#include "taper/runtime/extension/llm/tokenizer/pipeline.h"

namespace taper::llm {

/// The types of tokens, with the numbers of SentencePiece and of GGUF.
enum class PieceType : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

/// A SentencePiece model, from its own file or from a GGUF file.
struct Pieces {
  std::vector<std::string> tokens;
  std::vector<float> scores;
  std::vector<int32_t> types;
  bool unigram = false;  ///< or byte-pair encoding
  std::string character_map;
  bool adds_prefix = true;            ///< a blank before the text
  bool removes_extra_blanks = false;  ///< at both ends, and one of several
  TokenId unknown = no_token, begin = no_token, end = no_token;
  bool adds_begin = false, adds_end = false;
};

Pipeline pipeline_of(Pieces pieces);

/// Texts of SentencePiece are one word. This cuts them before blanks if no merge reaches across, so
/// that the tokens of words that come again are known.
void cut_long_words(const PairTable& merges, const BpeOptions& options, Pipeline& pipeline);

/// Control and unknown tokens are special; those that a user defined are found in texts, too.
std::vector<AddedToken> added_by_type(const std::vector<std::string>& tokens,
                                      const std::vector<int32_t>& types);

/// `begin` before a text, and `end` behind it, unless they are no_token.
PostProcessor around(TokenId begin, TokenId end);

}  // namespace taper::llm
