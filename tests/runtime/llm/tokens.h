// Tokens through which tests write texts.
#pragma once
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "../../support/data.h"
#include "taper/runtime/extension/llm/grammar.h"

namespace taper::tests {

/// The tokenizers of the golden data.
inline std::vector<llm::Tokenizer> golden_tokenizers() {
  std::vector<llm::Tokenizer> tokenizers;
  for (const char* name : {"bpe_gpt2", "bpe_llama3", "bpe_qwen2", "spm_bpe_llama2"}) {
    const auto folder = golden_data(std::string("tokenizer_json/") + name);
    std::string why;
    Result<llm::Tokenizer> tokenizer = llm::Tokenizer::load(folder.string(), &why);
    EXPECT_TRUE(tokenizer.ok()) << why;
    if (tokenizer.ok()) tokenizers.push_back(std::move(tokenizer).value());
  }
  return tokenizers;
}

inline std::vector<llm::TokenId> plain_tokens(const llm::Tokenizer& tokenizer,
                                              const std::string& text) {
  llm::EncodeOptions options;
  options.add_special_tokens = options.parse_special_tokens = false;
  return tokenizer.encode(text, options);
}

/// Whether the tokens of a text have its bytes. Some tokenizers put a blank before it, or lack
/// characters.
inline bool can_be_written(const llm::Tokenizer& tokenizer, const std::string& text) {
  std::string bytes;
  for (const llm::TokenId id : plain_tokens(tokenizer, text)) bytes += tokenizer.bytes_of(id);
  return bytes == text || bytes == " " + text;
}

/// Whether a matcher allows the tokens of a text, one after the other, and then its end.
inline bool is_written(llm::GrammarMatcher& matcher, const llm::Tokenizer& tokenizer,
                       const std::string& text) {
  for (const llm::TokenId id : plain_tokens(tokenizer, text)) {
    const Span<const uint64_t> allowed = matcher.allowed();
    const bool is_allowed = (allowed[id / 64] >> (id % 64) & 1) != 0;
    if (!is_allowed || !matcher.accept(id)) return false;
  }
  return matcher.may_end();
}

/// Words of letters and marks, as vocabularies of 128k have them: all bytes, and made-up words with
/// and without a blank, a quote or a comma beside them.
inline std::vector<std::string> large_vocabulary(size_t size) {
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  for (int number = 0; number < 1000; ++number) texts.push_back(std::to_string(number));
  const char* marks[] = {"\"",  "\",", "\":", "\"}", "\"]", "\":\"", "{\"",
                         "[\"", "}}",  "]}",  "},",  "  ",  "\n  "};
  texts.insert(texts.end(), std::begin(marks), std::end(marks));
  const std::string letters = "etaoinshrdlu";
  uint32_t random = 1;
  const auto draw = [&](uint32_t below) {
    random = random * 1664525u + 1013904223u;
    return (random >> 8) % below;
  };
  std::set<std::string> seen;
  while (texts.size() < size) {
    std::string word;
    if (draw(2) == 0) word += ' ';
    for (uint32_t i = 0, length = 2 + draw(9); i < length; ++i) word += letters[draw(12)];
    if (draw(40) == 0) word += marks[draw(6)];
    if (draw(200) == 0) word = "\"" + word;
    if (seen.insert(word).second) texts.push_back(word);
  }
  return texts;
}

}  // namespace taper::tests
