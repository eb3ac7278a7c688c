// Vocabularies of GGUF files, with what llama.cpp's tests expect of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "../../support/data.h"
#include "gguf_metadata.h"
#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {
namespace {

using Ids = std::vector<TokenId>;

std::vector<std::string> split_at(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos;) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

Ids ids_of(const std::string& line) {
  std::istringstream stream(line);
  return {std::istream_iterator<TokenId>(stream), {}};
}

void expect_equal_cases(const Tokenizer& tokenizer, const std::string& stem) {
  const std::vector<std::string> texts =
      split_at(tests::read_text(stem + ".gguf.inp"), "\n__ggml_vocab_test__\n");
  const std::vector<std::string> lines = split_at(tests::read_text(stem + ".gguf.out"), "\n");
  ASSERT_GT(texts.size(), 30u);
  ASSERT_GE(lines.size(), texts.size());
  EncodeOptions options;
  options.add_special_tokens = false;
  options.parse_special_tokens = false;
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i], options), ids_of(lines[i]))
        << "text " << i << ": " << texts[i];
  }
}

class tokenizer_gguf : public testing::TestWithParam<const char*> {};

TEST_P(tokenizer_gguf, encodes_as_llama_cpp_does) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizers/gguf");
  const std::string stem = (folder / ("ggml-vocab-" + std::string(GetParam()))).string();
  std::string why;
  Result<Tokenizer> tokenizer =
      Tokenizer::from_gguf(tests::GgufMetadata(stem + ".gguf").vocabulary(), &why);
  ASSERT_TRUE(tokenizer.ok()) << why;
  expect_equal_cases(*tokenizer, stem);
}

INSTANTIATE_TEST_SUITE_P(all, tokenizer_gguf,
                         testing::Values("bert-bge", "deepseek-coder", "gpt-2", "llama-spm",
                                         "phi-3", "starcoder"));

// The vocabulary of qwen2, whose GGUF file has only cases beside it.
TEST(tokenizer_gguf, encodes_as_llama_cpp_does_with_the_vocabulary_of_qwen2) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizers");
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "qwen2";
  const tests::Json ids = tests::read_json(folder / "qwen2/vocab.json");
  vocabulary.tokens.resize(ids.size());
  for (const auto& [token, id] : ids.items()) vocabulary.tokens.at(id.get<size_t>()) = token;
  for (const std::string& line : split_at(tests::read_text(folder / "qwen2/merges.txt"), "\n")) {
    if (!line.empty() && line[0] != '#') vocabulary.merges.push_back(line);
  }
  std::string why;
  Result<Tokenizer> tokenizer = Tokenizer::from_gguf(vocabulary, &why);
  ASSERT_TRUE(tokenizer.ok()) << why;
  expect_equal_cases(*tokenizer, (folder / "gguf/ggml-vocab-qwen2").string());
}

}  // namespace
}  // namespace taper::llm
