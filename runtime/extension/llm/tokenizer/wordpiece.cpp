#include "taper/runtime/extension/llm/tokenizer/wordpiece.h"

#include <utility>

#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {

WordPiece::WordPiece(std::shared_ptr<const Vocabulary> vocabulary, TokenId unknown,
                     std::string start, std::string continuing, size_t max_characters)
    : vocabulary_(std::move(vocabulary)),
      unknown_(unknown),
      start_(std::move(start)),
      continuing_(std::move(continuing)),
      max_characters_(max_characters) {}

void WordPiece::tokenize(std::string_view word, std::vector<Token>& tokens) const {
  const size_t first = tokens.size();
  bool fits = count_characters(word) <= max_characters_;
  std::string candidate;
  for (size_t begin = 0; fits && begin < word.size();) {
    const std::string& prefix = begin == 0 ? start_ : continuing_;
    size_t end = word.size();
    TokenId id = no_token;
    while (end > begin) {
      candidate = prefix;
      candidate += word.substr(begin, end - begin);
      id = vocabulary_->find(candidate);
      if (id != no_token) break;
      --end;
      while (end > begin && (static_cast<uint8_t>(word[end]) & 0xC0) == 0x80) --end;
    }
    fits = id != no_token;
    if (fits) tokens.push_back({id, {begin, end}});
    begin = end;
  }
  if (fits) return;
  tokens.resize(first);
  if (unknown_ != no_token) tokens.push_back({unknown_, {0, word.size()}});
}

void WordLevel::tokenize(std::string_view word, std::vector<Token>& tokens) const {
  const TokenId found = vocabulary_->find(word);
  const TokenId id = found != no_token ? found : unknown_;
  if (id != no_token) tokens.push_back({id, {0, word.size()}});
}

}  // namespace taper::llm
