// SentencePiece's own models, with what SentencePiece makes of texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../support/data.h"
#include "json.h"
#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {
namespace {

using tests::Json;
using Ids = std::vector<TokenId>;

// Control symbols in a text are text for SentencePiece.
EncodeOptions as_sentencepiece() {
  EncodeOptions options;
  options.add_special_tokens = false;
  options.parse_special_tokens = false;
  return options;
}

Tokenizer load(const std::filesystem::path& path) {
  std::string why;
  Result<Tokenizer> tokenizer = Tokenizer::load(path.string(), &why);
  if (!tokenizer.ok()) throw std::runtime_error(why);
  return std::move(tokenizer).value();
}

TEST(tokenizer_sentencepiece, encodes_with_a_unigram_model) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizers/sentencepiece");
  const Tokenizer tokenizer = load(folder / "test_model.model");
  for (const Json& test : tests::read_json(folder / "golden_unigram.json")) {
    EXPECT_EQ(tokenizer.encode(test["text"].get<std::string>(), as_sentencepiece()),
              test["ids"].get<Ids>())
        << test.dump();
  }
}

TEST(tokenizer_sentencepiece, encodes_with_a_character_map) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizer_json/unigram_nmt_nfkc");
  const Tokenizer tokenizer = load(folder / "sentencepiece.model");
  size_t compared = 0;
  const Json golden = tests::read_json(folder / "golden.json");
  for (const Json& test : golden["cases"]) {
    if (!test.contains("sentencepiece_ids")) continue;
    EXPECT_EQ(tokenizer.encode(test["text"].get<std::string>(), as_sentencepiece()),
              test["sentencepiece_ids"].get<Ids>())
        << test.dump();
    ++compared;
  }
  EXPECT_GT(compared, 100u);
}

TEST(tokenizer_sentencepiece, encodes_with_pairs_as_llama2_does) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizers/llama2");
  const Tokenizer model = load(folder / "tokenizer.model"), json = load(folder / "tokenizer.json");
  for (const Json& test : tests::read_json(folder / "golden_long.json")) {
    const auto text = test["text"].get<std::string>();
    EXPECT_EQ(model.encode(text, as_sentencepiece()), test["ids"].get<Ids>()) << test.dump();
    EXPECT_EQ(json.encode(text, as_sentencepiece()), test["ids"].get<Ids>()) << test.dump();
    EXPECT_EQ(model.decode(test["ids"].get<Ids>()), text);
  }
}

TEST(tokenizer_sentencepiece, finds_no_part_of_a_character) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizers/sentencepiece");
  const std::string bytes = tests::read_text(folder / "test_model.model"),
                    text = "w\u00f6rld \u4e16\u754c";
  // one more piece, which its user defined: a byte in the middle of a character
  const std::string piece("\x0A\x05\x0A\x01\x96\x18\x04", 7);
  const Result<Tokenizer> model = Tokenizer::from_sentencepiece(bytes),
                          longer = Tokenizer::from_sentencepiece(bytes + piece);
  ASSERT_TRUE(model.ok() && longer.ok());
  EXPECT_EQ(longer.value().vocabulary_size(), model.value().vocabulary_size() + 1);
  EXPECT_EQ(longer.value().encode(text, as_sentencepiece()),
            model.value().encode(text, as_sentencepiece()));
}

TEST(tokenizer_sentencepiece, refuses_a_file_that_ends_too_early) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizers/sentencepiece");
  const std::string bytes = tests::read_text(folder / "test_model.model");
  std::string why;
  EXPECT_EQ(Tokenizer::from_sentencepiece(std::string_view(bytes).substr(0, 1000), &why).error(),
            Error::invalid_argument);
  EXPECT_EQ(why, "the SentencePiece model ends too early");
}

}  // namespace
}  // namespace taper::llm
