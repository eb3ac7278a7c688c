#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace taper::llm {

/// The texts of all tokens as a tree of bytes, depth first: a node stands before those below it.
class TokenTrie {
 public:
  struct Node {
    uint32_t behind;                   ///< the first node that is not below this one
    uint32_t first_token, last_token;  ///< of `tokens()`: those that end here
    uint16_t depth;                    ///< 1 for the first byte of a token
    uint8_t byte;
  };
  /// Longer tokens are left out.
  static constexpr size_t longest = 256;

  /// `texts[id]` are the bytes of a token; an empty one stands for a token without text.
  explicit TokenTrie(std::vector<std::string> texts);

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  const std::string& text(int32_t id) const { return texts_[static_cast<size_t>(id)]; }
  size_t vocabulary_size() const { return texts_.size(); }

 private:
  std::vector<std::string> texts_;
  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;
};

}  // namespace taper::llm
