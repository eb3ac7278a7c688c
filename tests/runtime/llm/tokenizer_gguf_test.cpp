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

// ---- RWKV: tests/data/hf_families/record_rwkv.py ----

GgufVocabulary rwkv_vocabulary() {
  return tests::GgufMetadata(tests::test_data("hf_families/gguf/rwkv6.gguf")).vocabulary();
}

TEST(tokenizer_gguf, finds_the_longest_token_of_rwkv_as_llama_cpp_does) {
  std::string why;
  Result<Tokenizer> tokenizer = Tokenizer::from_gguf(rwkv_vocabulary(), &why);
  ASSERT_TRUE(tokenizer.ok()) << why;
  const tests::Json cases = tests::read_json(tests::test_data("hf_families/gguf/texts.json"));
  ASSERT_GT(cases.size(), 4u);
  for (const tests::Json& c : cases) {
    const auto text = c["text"].get<std::string>();
    const Ids ids = tokenizer->encode(text, {false, false, false});
    EXPECT_EQ(ids, c["ids"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
}

TEST(tokenizer_gguf, reads_the_special_token_of_rwkv_only_where_it_is_allowed) {
  Result<Tokenizer> tokenizer = Tokenizer::from_gguf(rwkv_vocabulary());
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ(tokenizer->encode("<s>x", {false, true, false}), (Ids{0, 'x' + 1}));
  EXPECT_EQ(tokenizer->encode("<s>x", {false, false, false}),
            (Ids{'<' + 1, 's' + 1, '>' + 1, 'x' + 1}));
}

TEST(tokenizer_gguf, refuses_a_token_of_rwkv_that_is_no_literal) {
  for (const char* token : {"\\x", "a\\x4", "\\xg0"}) {
    GgufVocabulary vocabulary = rwkv_vocabulary();
    vocabulary.tokens[5] = token;
    std::string why;
    EXPECT_FALSE(Tokenizer::from_gguf(vocabulary, &why).ok());
    EXPECT_THAT(why, testing::HasSubstr("without two digits"));
  }
}

// Each byte of a text would look at all of it.
TEST(tokenizer_gguf, refuses_a_token_of_rwkv_that_is_very_long) {
  GgufVocabulary vocabulary = rwkv_vocabulary();
  vocabulary.tokens[5] = std::string(1025, 'a');
  std::string why;
  EXPECT_FALSE(Tokenizer::from_gguf(vocabulary, &why).ok());
  EXPECT_THAT(why, testing::HasSubstr("token 5 has 1025 bytes; 1024 are allowed"));
}

}  // namespace
}  // namespace taper::llm
