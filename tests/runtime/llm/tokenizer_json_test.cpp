// All cases of tokenizer_json: what Hugging Face's tokenizers makes of the same files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../support/data.h"
#include "json.h"
#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {
namespace {

using tests::Json;
using Ids = std::vector<TokenId>;

constexpr const char* kinds[] = {
    "bpe_clip",         "bpe_deepseek_splits", "bpe_gpt2",
    "bpe_llama3",       "bpe_qwen2",           "bpe_starcoder_digits",
    "spm_bpe_gemma",    "spm_bpe_llama2",      "spm_bpe_metaspace_first",
    "unigram_nmt_nfkc", "unigram_t5",          "wordpiece_uncased"};

Tokenizer load(const std::filesystem::path& path) {
  std::string why;
  Result<Tokenizer> tokenizer = Tokenizer::load(path.string(), &why);
  if (!tokenizer.ok()) throw std::runtime_error(why);
  return std::move(tokenizer).value();
}

// The characters before a byte of a text.
size_t characters_before(const std::string& text, size_t byte) {
  size_t count = 0;
  for (size_t i = 0; i < byte; ++i) count += (text[i] & 0xC0) != 0x80;
  return count;
}

void expect_offsets(const Tokenizer& tokenizer, const Json& test, const std::string& text) {
  EncodeOptions options;
  options.add_special_tokens = false;
  options.offsets = true;
  Json offsets = Json::array();
  for (const Encoding::Offsets& range : tokenizer.encode_with_details(text, options).offsets) {
    // a token of a part of a character has the whole character
    size_t end = characters_before(text, range.end);
    offsets.push_back({characters_before(text, range.begin), end});
  }
  EXPECT_EQ(offsets, test["offsets"]) << test.dump();
}

std::string decode_one_by_one(const Tokenizer& tokenizer, const Ids& ids, bool skip) {
  StreamDecoder decoder(tokenizer, skip);
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = decoder.push(id);
    EXPECT_NO_THROW(Json(piece).dump()) << "a piece ends inside of a character";
    text += piece;
  }
  return text + decoder.finish();
}

class tokenizer_json : public testing::TestWithParam<const char*> {};

TEST_P(tokenizer_json, encodes_as_hugging_face_does) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizer_json");
  const Tokenizer tokenizer = load(folder / GetParam());
  const Json golden = tests::read_json(folder / GetParam() / "golden.json");
  EXPECT_EQ(tokenizer.vocabulary_size(), golden["vocab_size"]);
  ASSERT_GT(golden["cases"].size(), 100u);
  EncodeOptions plain;
  plain.add_special_tokens = false;
  for (const Json& test : golden["cases"]) {
    const std::string text = test["text"];
    const Ids ids = test["ids"];
    EXPECT_EQ(tokenizer.encode(text, plain), ids) << test.dump();
    EXPECT_EQ(tokenizer.encode(text),
              test.contains("ids_with_special") ? test["ids_with_special"].get<Ids>() : ids)
        << test.dump();
    if (test.contains("offsets")) expect_offsets(tokenizer, test, text);
  }
}

TEST_P(tokenizer_json, encodes_pairs_as_hugging_face_does) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizer_json");
  const Tokenizer tokenizer = load(folder / GetParam());
  const Json golden = tests::read_json(folder / GetParam() / "golden.json");
  ASSERT_FALSE(golden["pairs"].empty());
  for (const Json& test : golden["pairs"]) {
    const Encoding encoding =
        tokenizer.encode_pair(test["a"].get<std::string>(), test["b"].get<std::string>());
    EXPECT_EQ(encoding.ids, test["ids"].get<Ids>()) << test.dump();
    EXPECT_EQ(encoding.type_ids, test["type_ids"].get<Ids>()) << test.dump();
  }
}

TEST_P(tokenizer_json, decodes_as_hugging_face_does) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "tokenizer_json");
  const Tokenizer tokenizer = load(folder / GetParam());
  const Json golden = tests::read_json(folder / GetParam() / "golden.json");
  for (const Json& test : golden["cases"]) {
    const Ids ids = test.contains("ids_with_special") ? test["ids_with_special"] : test["ids"];
    const std::string all = test["decoded_all"];
    const std::string skipped = test.contains("decoded_skip_special")
                                    ? test["decoded_skip_special"].get<std::string>()
                                    : all;
    EXPECT_EQ(tokenizer.decode(ids), all) << test.dump();
    EXPECT_EQ(tokenizer.decode(ids, true), skipped) << test.dump();
    EXPECT_EQ(decode_one_by_one(tokenizer, ids, false), all);
    EXPECT_EQ(decode_one_by_one(tokenizer, ids, true), skipped);
  }
  TokenId id = 0;
  for (const Json& text : golden["decode_single_id"]) {
    EXPECT_EQ(tokenizer.decode(Ids{id}), text.get<std::string>()) << "id " << id;
    ++id;
  }
}

INSTANTIATE_TEST_SUITE_P(all, tokenizer_json, testing::ValuesIn(kinds),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace taper::llm
