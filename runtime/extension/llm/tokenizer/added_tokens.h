#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer/byte_trie.h"
#include "taper/runtime/extension/llm/tokenizer/normalizer.h"
#include "taper/runtime/extension/llm/tokenizer/vocabulary.h"

namespace taper::llm {

/// A token that is found in a text before anything else.
struct AddedToken {
  TokenId id;
  std::string content;
  bool special = false;                            ///< decoders may skip it
  bool normalized = false;                         ///< it is looked for after the normalizer ran
  bool single_word = false;                        ///< not inside of a word
  bool strips_left = false, strips_right = false;  ///< it takes the white space beside it
};

/// A part of a text: an added token, or what lies between two.
struct Section {
  Range range;
  TokenId id;  ///< no_token: text
};

class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const std::vector<Normalizer>& normalizers);

  /// Cuts the input at tokens that are looked for before the normalizer, or after it. `special`:
  /// also at special tokens.
  std::vector<Section> find_in_input(std::string_view text, bool special) const;
  std::vector<Section> find_in_normalized(std::string_view text, bool special) const;
  bool any_normalized() const { return normalized_.size() > 1; }

  bool is_special(TokenId id) const;
  /// The token with this id, or nullptr.
  const AddedToken* find(TokenId id) const;
  const AddedToken* find(std::string_view content) const;
  const std::vector<AddedToken>& all() const { return tokens_; }

 private:
  std::vector<Section> find_in(const ByteTrie& trie, std::string_view text, bool special) const;

  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, size_t> by_id_;
  ByteTrie raw_, normalized_;  // values are indices in tokens_
};

}  // namespace taper::llm
