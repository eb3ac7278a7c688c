#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace taper::llm {

using TokenId = int32_t;
inline constexpr TokenId no_token = -1;

/// The tokens of a model by id, and the ids by token.
class Vocabulary {
 public:
  /// The list may have holes: empty texts, which have no id. Of equal texts the first one counts.
  explicit Vocabulary(std::vector<std::string> tokens);
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  TokenId size() const { return static_cast<TokenId>(tokens_.size()); }
  bool contains(TokenId id) const { return id >= 0 && id < size(); }
  const std::string& token(TokenId id) const { return tokens_[static_cast<size_t>(id)]; }
  /// The id, or no_token.
  TokenId find(std::string_view token) const;

 private:
  /// A hash table with open addresses. A tokenizer asks for each token of each merge when it is
  /// read, so most of that time is spent here.
  struct Slot {
    uint32_t hash = 0;
    TokenId id = no_token;  ///< no_token: the slot is free
  };
  /// The slot of the token, or the free one where it belongs.
  size_t slot_of(std::string_view token, uint32_t hash) const;

  std::vector<std::string> tokens_;
  std::vector<Slot> slots_;
};

/// The token for a byte where characters fall back on bytes: `<0x0A>`.
std::string byte_token(unsigned char byte);
/// The byte of such a token, or -1.
int byte_of_token(std::string_view token);

}  // namespace taper::llm
