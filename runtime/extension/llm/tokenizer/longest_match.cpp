#include "taper/runtime/extension/llm/tokenizer/longest_match.h"

#include <utility>

namespace taper::llm {

LongestMatch::LongestMatch(const std::vector<std::string>& tokens, TokenId unknown)
    : unknown_(unknown) {
  std::vector<std::pair<std::string_view, int32_t>> strings;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (!tokens[id].empty()) strings.emplace_back(tokens[id], static_cast<int32_t>(id));
  }
  trie_ = ByteTrie(std::move(strings));
}

void LongestMatch::tokenize(std::string_view word, std::vector<Token>& tokens) const {
  for (size_t begin = 0; begin < word.size();) {
    Token longest{unknown_, {begin, begin + 1}};
    uint32_t node = ByteTrie::root;
    for (size_t at = begin; at < word.size(); ++at) {
      node = trie_.child(node, static_cast<uint8_t>(word[at]));
      if (node == ByteTrie::none) break;
      if (trie_.node(node).value >= 0) longest = {trie_.node(node).value, {begin, at + 1}};
    }
    if (longest.id != no_token) tokens.push_back(longest);
    begin = longest.range.end;
  }
}

}  // namespace taper::llm
