#include "taper/runtime/extension/llm/tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {
namespace {

// An unknown character costs as much as the rarest token, and this.
constexpr double unknown_penalty = 10.0;

// The best way to the place where a token ends.
struct Best {
  double score = -std::numeric_limits<double>::infinity();
  size_t begin = 0;
  TokenId id = no_token;
  bool reached = false;
};

}  // namespace

Unigram::Unigram(std::shared_ptr<const Vocabulary> vocabulary, std::vector<double> scores,
                 const std::vector<bool>& usable, TokenId unknown, bool byte_fallback,
                 ScoreSums sums)
    : vocabulary_(std::move(vocabulary)),
      scores_(std::move(scores)),
      unknown_(unknown),
      byte_fallback_(byte_fallback),
      sums_(sums) {
  std::vector<std::pair<std::string_view, int32_t>> strings;
  double lowest = 0;
  bool any = false;
  for (TokenId id = 0; id < vocabulary_->size(); ++id) {
    const auto index = static_cast<size_t>(id);
    if (!usable[index]) continue;
    strings.emplace_back(vocabulary_->token(id), id);
    lowest = any ? std::min(lowest, scores_[index]) : scores_[index];
    any = true;
  }
  trie_ = ByteTrie(std::move(strings));
  unknown_score_ = lowest - unknown_penalty;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    bytes_[i] = vocabulary_->find(byte_token(static_cast<unsigned char>(i)));
  }
}

void Unigram::append_unknown(std::string_view word, Range range, std::vector<Token>& tokens) const {
  const auto id_at = [&](size_t at) { return bytes_[static_cast<unsigned char>(word[at])]; };
  bool all = byte_fallback_;
  for (size_t at = range.begin; at < range.end; ++at) all = all && id_at(at) != no_token;
  if (!all) {
    if (unknown_ != no_token) tokens.push_back({unknown_, range});
    return;
  }
  for (size_t at = range.begin; at < range.end; ++at) tokens.push_back({id_at(at), {at, at + 1}});
}

void Unigram::tokenize(std::string_view word, std::vector<Token>& tokens) const {
  std::vector<Best> best(word.size() + 1);
  best[0] = {0.0, 0, no_token, true};
  const auto offer = [&](size_t begin, size_t end, double added, TokenId id) {
    double score = best[begin].score + added;
    if (sums_ == ScoreSums::in_float) score = static_cast<float>(score);
    if (!best[end].reached || score > best[end].score) best[end] = {score, begin, id, true};
  };
  for (size_t begin = 0; begin < word.size();) {
    const size_t one = begin + character_length(word[begin]);
    bool covers_one = false;
    uint32_t node = ByteTrie::root;
    for (size_t at = begin; at < word.size(); ++at) {
      node = trie_.child(node, static_cast<uint8_t>(word[at]));
      if (node == ByteTrie::none) break;
      const TokenId id = trie_.node(node).value;
      if (id < 0) continue;
      offer(begin, at + 1, scores_[static_cast<size_t>(id)], id);
      covers_one = covers_one || at + 1 == one;
    }
    if (!covers_one) offer(begin, one, unknown_score_, no_token);
    begin = one;
  }

  // the way back, on which unknown characters join
  std::vector<Token> path;
  for (size_t end = word.size(); end > 0; end = best[end].begin) {
    const bool unknown = best[end].id == no_token || best[end].id == unknown_;
    const Range range{best[end].begin, end};
    if (unknown && !path.empty() && path.back().id == no_token) {
      path.back().range.begin = range.begin;
    } else {
      path.push_back({unknown ? no_token : best[end].id, range});
    }
  }
  for (auto token = path.rbegin(); token != path.rend(); ++token) {
    if (token->id == no_token) {
      append_unknown(word, token->range, tokens);
    } else {
      tokens.push_back(*token);
    }
  }
}

}  // namespace taper::llm
