#include "taper/runtime/extension/llm/tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {
namespace {

// The start of the last character before `at`.
size_t previous_character(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool stands_alone(std::string_view text, Range range) {
  const bool word_before =
      range.begin > 0 && is_word(character_at(text, previous_character(text, range.begin)));
  const bool word_behind = range.end < text.size() && is_word(character_at(text, range.end));
  return !word_before && !word_behind;
}

size_t skip_left(std::string_view text, size_t at, size_t least) {
  while (at > least) {
    const size_t before = previous_character(text, at);
    if (before < least || !is_whitespace(character_at(text, before))) break;
    at = before;
  }
  return at;
}

size_t skip_right(std::string_view text, size_t at) {
  while (at < text.size() && is_whitespace(character_at(text, at))) {
    at += character_length(text[at]);
  }
  return at;
}

// The longest string of the trie that starts at `at`: its length (0: none), and its value.
std::pair<size_t, int32_t> longest_at(const ByteTrie& trie, std::string_view text, size_t at) {
  std::pair<size_t, int32_t> found{0, -1};
  uint32_t node = ByteTrie::root;
  for (size_t i = at; i < text.size(); ++i) {
    node = trie.child(node, static_cast<uint8_t>(text[i]));
    if (node == ByteTrie::none) break;
    if (trie.node(node).value >= 0) found = {i + 1 - at, trie.node(node).value};
  }
  return found;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const std::vector<Normalizer>& normalizers)
    : tokens_(std::move(tokens)) {
  std::vector<std::string> contents;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    by_id_.emplace(tokens_[i].id, i);
    Text content{tokens_[i].content, false, {}};
    if (!is_valid_utf8(content.bytes)) {
      content.bytes.clear();  // to be found nowhere: texts are cut between characters
    } else if (tokens_[i].normalized) {
      for (const Normalizer& normalizer : normalizers) normalizer(content);
    }
    contents.push_back(std::move(content.bytes));
  }
  std::vector<std::pair<std::string_view, int32_t>> raw, normalized;
  for (size_t i = 0; i < tokens_.size(); ++i) {
    auto& list = tokens_[i].normalized ? normalized : raw;
    list.emplace_back(contents[i], static_cast<int32_t>(i));
  }
  raw_ = ByteTrie(std::move(raw));
  normalized_ = ByteTrie(std::move(normalized));
}

std::vector<Section> AddedTokens::find_in(const ByteTrie& trie, std::string_view text,
                                          bool special) const {
  std::vector<Section> sections;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const auto [length, index] = longest_at(trie, text, at);
    if (length == 0) {
      ++at;
      continue;
    }
    Range range{at, at + length};
    at = range.end;
    const AddedToken& token = tokens_[static_cast<size_t>(index)];
    if (token.special && !special) continue;
    if (token.single_word && !stands_alone(text, range)) continue;
    if (token.strips_left) range.begin = skip_left(text, range.begin, done);
    if (token.strips_right) range.end = skip_right(text, range.end);
    if (range.begin > done) sections.push_back({{done, range.begin}, no_token});
    sections.push_back({range, token.id});
    done = range.end;
    at = std::max(at, done);
  }
  if (done < text.size()) sections.push_back({{done, text.size()}, no_token});
  return sections;
}

std::vector<Section> AddedTokens::find_in_input(std::string_view text, bool special) const {
  return find_in(raw_, text, special);
}

std::vector<Section> AddedTokens::find_in_normalized(std::string_view text, bool special) const {
  return find_in(normalized_, text, special);
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = std::find_if(tokens_.begin(), tokens_.end(), [&](const AddedToken& token) {
    return token.content == content;
  });
  return found == tokens_.end() ? nullptr : &*found;
}

bool AddedTokens::is_special(TokenId id) const {
  const AddedToken* token = find(id);
  return token != nullptr && token->special;
}

}  // namespace taper::llm
