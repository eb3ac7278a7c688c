#pragma once
#include <array>
#include <cstring>
#include <mutex>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer/model.h"

namespace taper::llm {

/// Remembers the tokens of short words: most words of a text came before. A word has one place,
/// and takes it from the word that was there. One thread at a time uses the cache; another one that
/// comes meanwhile does without.
class WordCache {
 public:
  WordCache() : entries_(slots) {}

  std::mutex& mutex() { return mutex_; }

  void tokenize(const WordModel& model, std::string_view word, std::vector<Token>& tokens) {
    if (word.size() > max_bytes) return model.tokenize(word, tokens);
    Entry& entry = entries_[hash(word) % slots];
    if (entry.word() == word) return entry.append_to(tokens);
    const size_t first = tokens.size();
    model.tokenize(word, tokens);
    entry.store(word, tokens, first);
  }

 private:
  static constexpr size_t slots = 1 << 14, max_bytes = 22, max_tokens = 6;

  struct Entry {
    std::array<char, max_bytes> bytes;
    uint8_t size = 0, count = 0;
    std::array<TokenId, max_tokens> ids;
    std::array<uint8_t, max_tokens> begins, ends;

    std::string_view word() const { return {bytes.data(), size}; }
    void append_to(std::vector<Token>& tokens) const {
      for (size_t i = 0; i < count; ++i) tokens.push_back({ids[i], {begins[i], ends[i]}});
    }
    void store(std::string_view word, const std::vector<Token>& tokens, size_t first) {
      if (tokens.size() - first > max_tokens) return;
      std::memcpy(bytes.data(), word.data(), word.size());
      size = static_cast<uint8_t>(word.size());
      count = static_cast<uint8_t>(tokens.size() - first);
      for (size_t i = 0; i < count; ++i) {
        ids[i] = tokens[first + i].id;
        begins[i] = static_cast<uint8_t>(tokens[first + i].range.begin);
        ends[i] = static_cast<uint8_t>(tokens[first + i].range.end);
      }
    }
  };

  // FNV-1a (Fowler, Noll and Vo)
  static size_t hash(std::string_view word) {
    uint64_t h = 0xCBF29CE484222325u;
    for (const char c : word) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
    return static_cast<size_t>(h ^ h >> 32);
  }

  std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace taper::llm
