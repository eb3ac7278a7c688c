// Sequences of small models for tests: what they read, and what they give.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "taper/exporter/llm/text_model.h"
#include "taper/tests/exporter/llm/formula_model.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::llm {

using Logits = std::vector<float>;

inline LanguageModel loaded(const std::string& folder, int64_t rows, int64_t context) {
  TextModelOptions options;
  options.rows = rows, options.context = context;
  return load_text_model(folder, options);
}

/// A folder of the family; or a GGUF file, which has a tokenizer.
inline std::string folder_of(const char* name) {
  const std::string file = std::string(name) + ".gguf";
  if (file == "rwkv6.gguf" || file == "rwkv7.gguf")
    return (tests::test_data("hf_families/gguf") / file).string();
  const std::filesystem::path folder = tests::formula_model(name);
  std::ofstream(folder / "tokenizer.json") << word_tokenizer(48);
  return folder.string();
}

inline LanguageModel family(const char* name, int64_t rows, int64_t context = 60) {
  return loaded(folder_of(name), rows, context);
}

inline LanguageModel stories(CacheType cache = CacheType::f32) {
  TextModelOptions options;
  options.cache_type = cache;
  return load_text_model(tests::test_data("../../examples/stories/stories260K.gguf").string(),
                         options);
}

inline Ids prompt(int which, int64_t length) {
  Ids ids;
  for (int64_t i = 0; i < length; ++i)
    ids.push_back(static_cast<TokenId>(2 + (i * 11 + which * 7) % 45));
  return ids;
}

inline Span<const TokenId> span_of(const Ids& ids) {
  return {ids.data(), static_cast<index_t>(ids.size())};
}

inline Logits append(Sequence& to, const Ids& ids) {
  Result<Span<float>> logits = to.append(span_of(ids));
  EXPECT_TRUE(logits.ok()) << to.message();
  return logits.ok() ? Logits(logits->begin(), logits->end()) : Logits();
}

/// The logits behind texts of a sequence that has read nothing else.
inline Logits anew(const LanguageModel& model, const std::vector<Ids>& texts) {
  Sequence sequence = Sequence::create(model).value();
  Logits last;
  for (const Ids& ids : texts)
    if (!ids.empty()) last = append(sequence, ids);
  return last;
}

inline Ids operator+(Ids a, const Ids& b) { return a.insert(a.end(), b.begin(), b.end()), a; }

}  // namespace taper::llm
