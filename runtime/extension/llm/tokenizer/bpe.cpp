#include "taper/runtime/extension/llm/tokenizer/bpe.h"

#include <algorithm>
#include <numeric>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/normalizer.h"

namespace taper::llm {

// A node of a list: what has become of a part of the word.
struct Bpe::Symbol {
  TokenId id;
  Range range;
  int32_t previous, next;  // -1: none
  bool alive = true;
};

namespace {

struct Candidate {
  int32_t rank, left, right;
  TokenId left_id, right_id, made;
};

// The lowest rank first, then the leftmost.
bool comes_later(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

std::string visible(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += visible_byte(static_cast<unsigned char>(byte));
  return text;
}

}  // namespace

Bpe::Bpe(std::shared_ptr<const Vocabulary> vocabulary, PairTable merges, BpeOptions options)
    : vocabulary_(std::move(vocabulary)), merges_(std::move(merges)), options_(std::move(options)) {
  for (size_t i = 0; i < bytes_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(i);
    bytes_[i] = vocabulary_->find(options_.byte_level ? visible_byte(byte) : byte_token(byte));
  }
}

void Bpe::append_unknown(std::string_view character, Range range,
                         std::vector<Symbol>& symbols) const {
  const auto id_of_byte = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
  if (options_.byte_fallback && std::all_of(character.begin(), character.end(), [&](char byte) {
        return id_of_byte(byte) != no_token;
      })) {
    for (size_t i = 0; i < character.size(); ++i) {
      const size_t at = std::min(range.begin + i, range.end - 1);
      symbols.push_back({id_of_byte(character[i]), {at, at + 1}, -1, -1});
    }
    return;
  }
  if (options_.unknown == no_token) return;
  const bool fuses = options_.fuse_unknown && !symbols.empty() &&
                     symbols.back().id == options_.unknown &&
                     symbols.back().range.end == range.begin;
  if (fuses) {
    symbols.back().range.end = range.end;
  } else {
    symbols.push_back({options_.unknown, range, -1, -1});
  }
}

void Bpe::append_symbol(std::string_view character, Range range, bool first, bool last,
                        std::vector<Symbol>& symbols) const {
  const bool has_prefix = !first && !options_.continuing_prefix.empty();
  const bool has_suffix = last && !options_.end_suffix.empty();
  TokenId id = no_token;
  std::string decorated;
  if (has_prefix || has_suffix) {
    if (has_prefix) decorated = options_.continuing_prefix;
    decorated += options_.byte_level ? visible(character) : std::string(character);
    if (has_suffix) decorated += options_.end_suffix;
    id = vocabulary_->find(decorated);
    character = decorated;
  } else if (options_.byte_level) {
    id = bytes_[static_cast<unsigned char>(character[0])];
  } else {
    id = vocabulary_->find(character);
  }
  if (id != no_token) {
    symbols.push_back({id, range, -1, -1});
  } else {
    append_unknown(character, range, symbols);
  }
}

std::vector<Bpe::Symbol> Bpe::symbols_of(std::string_view word) const {
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (size_t at = 0; at < word.size();) {
    const size_t length = options_.byte_level ? 1 : character_length(word[at]);
    const Range range{at, at + length};
    append_symbol(part(word, range), range, at == 0, range.end == word.size(), symbols);
    at = range.end;
  }
  const auto count = static_cast<int32_t>(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[static_cast<size_t>(i)].previous = i - 1;
    symbols[static_cast<size_t>(i)].next = i + 1 < count ? i + 1 : -1;
  }
  return symbols;
}

void Bpe::merge(std::vector<Symbol>& symbols) const {
  const auto at = [&](int32_t i) -> Symbol& { return symbols[static_cast<size_t>(i)]; };
  std::vector<Candidate> heap;
  heap.reserve(symbols.size());
  const auto consider = [&](int32_t left, int32_t right) {
    if (left < 0 || right < 0) return;
    const PairTable::Merge merge = merges_.find(at(left).id, at(right).id);
    if (merge.rank < 0) return;
    heap.push_back({merge.rank, left, right, at(left).id, at(right).id, merge.made});
    std::push_heap(heap.begin(), heap.end(), comes_later);
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) {
    consider(static_cast<int32_t>(i), static_cast<int32_t>(i + 1));
  }
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), comes_later);
    const Candidate best = heap.back();
    heap.pop_back();
    Symbol &left = at(best.left), &right = at(best.right);
    // one of the two may have become part of another token since
    const bool current = left.alive && right.alive && left.next == best.right &&
                         left.id == best.left_id && right.id == best.right_id;
    if (!current) continue;
    left.id = best.made;
    left.range.end = right.range.end;
    left.next = right.next;
    right.alive = false;
    if (right.next >= 0) at(right.next).previous = best.left;
    consider(left.previous, best.left);
    consider(best.left, left.next);
  }
}

void Bpe::tokenize(std::string_view word, std::vector<Token>& tokens) const {
  if (options_.ignore_merges) {
    const TokenId whole =
        options_.byte_level ? vocabulary_->find(visible(word)) : vocabulary_->find(word);
    if (whole != no_token) {
      tokens.push_back({whole, {0, word.size()}});
      return;
    }
  }
  std::vector<Symbol> symbols = symbols_of(word);
  merge(symbols);
  for (const Symbol& symbol : symbols) {
    if (symbol.alive) tokens.push_back({symbol.id, symbol.range});
  }
}

PairTable merges_in_order(const Vocabulary& vocabulary,
                          const std::vector<std::pair<std::string, std::string>>& pairs,
                          const std::string& continuing_prefix) {
  PairTable table(pairs.size());
  int32_t rank = 0;
  for (const auto& [left, right] : pairs) {
    const size_t skipped = right.substr(0, continuing_prefix.size()) == continuing_prefix
                               ? continuing_prefix.size()
                               : 0;
    const std::string made = left + right.substr(skipped);
    const TokenId ids[] = {vocabulary.find(left), vocabulary.find(right), vocabulary.find(made)};
    if (std::find(std::begin(ids), std::end(ids), no_token) != std::end(ids)) {
      refuse("merge " + std::to_string(rank) + ", \"" + left + "\" and \"" + right +
             "\": one of the tokens, or the merged one, is not in the vocabulary");
    }
    table.insert(ids[0], ids[1], {rank++, ids[2]});
  }
  return table;
}

std::pair<std::string, std::string> parse_merge(const std::string& text,
                                                const Vocabulary& vocabulary) {
  for (size_t at = 0; (at = text.find(' ', at)) != std::string::npos; ++at) {
    std::string left = text.substr(0, at), right = text.substr(at + 1);
    if (vocabulary.find(left) != no_token && vocabulary.find(right) != no_token &&
        vocabulary.find(left + right) != no_token) {
      return {std::move(left), std::move(right)};
    }
  }
  refuse("the merge \"" + text + "\" is not two tokens of the vocabulary that make a third");
}

bool cuts_before(const std::string& mark, const Vocabulary& vocabulary, const PairTable& merges) {
  if (vocabulary.find(mark) == no_token) return false;
  bool cuts = true;
  merges.for_each([&](const PairTable::Merge& merge) {
    const std::string& made = vocabulary.token(merge.made);
    const size_t start = made.find_first_not_of(mark);  // of bytes: marks at the start
    cuts = cuts && (start == std::string::npos || made.find(mark, start) == std::string::npos);
  });
  return cuts;
}

PairTable merges_by_score(const Vocabulary& vocabulary, const std::vector<float>& scores) {
  std::vector<TokenId> order(static_cast<size_t>(vocabulary.size()));
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](TokenId id) { return scores[static_cast<size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](TokenId a, TokenId b) { return score(a) > score(b); });
  PairTable table(order.size() * 4);
  int32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    // tokens with equal scores have the same rank: the leftmost comes first
    if (i > 0 && score(order[i]) != score(order[i - 1])) ++rank;
    const std::string_view made = vocabulary.token(order[i]);
    if (made.empty() || vocabulary.find(made) != order[i]) continue;
    for (size_t cut = character_length(made[0]); cut < made.size();
         cut += character_length(made[cut])) {
      const TokenId left = vocabulary.find(made.substr(0, cut));
      if (left == no_token) continue;
      const TokenId right = vocabulary.find(made.substr(cut));
      if (right != no_token) table.insert(left, right, {rank, order[i]});
    }
  }
  return table;
}

}  // namespace taper::llm
