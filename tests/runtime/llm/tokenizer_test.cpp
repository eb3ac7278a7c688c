#include "taper/runtime/extension/llm/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "../../support/data.h"

namespace taper::llm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<TokenId>;

// Words of bytes; tokens for "a", "b", "ab", and those of é's two bytes.
constexpr const char* small_bpe = R"({
  "added_tokens": [{"id": 6, "content": "<end>", "special": true},
                   {"id": 7, "content": "end", "special": false, "normalized": false,
                    "single_word": true, "lstrip": true, "rstrip": true}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ã": 4, "©": 5},
            "merges": ["a b"]}})";

Tokenizer small() {
  std::string why;
  Result<Tokenizer> tokenizer = Tokenizer::from_json(small_bpe, &why);
  if (!tokenizer.ok()) throw std::runtime_error(why);
  return std::move(tokenizer).value();
}

std::string why_refused(const std::string& json) {
  std::string why;
  EXPECT_FALSE(Tokenizer::from_json(json, &why).ok()) << json;
  return why;
}

TEST(tokenizer, merges_neighbours) { EXPECT_THAT(small().encode("aabb"), ElementsAre(0, 2, 1)); }

TEST(tokenizer, reads_special_tokens_only_if_it_may) {
  EncodeOptions of_a_user;
  of_a_user.parse_special_tokens = false;
  EXPECT_THAT(small().encode("a<end>"), ElementsAre(0, 6));
  EXPECT_THAT(small().encode("a<end>", of_a_user), ElementsAre(0));
}

TEST(tokenizer, finds_added_tokens_that_stand_alone_and_takes_blanks_beside_them) {
  EXPECT_THAT(small().encode("a end b"), ElementsAre(0, 7, 1));
  EXPECT_THAT(small().encode("abendb"), ElementsAre(2, 1));
}

TEST(tokenizer, streams_characters_only_when_they_are_complete) {
  StreamDecoder decoder(small());
  EXPECT_EQ(decoder.push(4), "");
  EXPECT_EQ(decoder.push(5), "é");
  EXPECT_EQ(decoder.push(4), "");
  EXPECT_EQ(decoder.push(0), "\uFFFDa");
  EXPECT_EQ(decoder.push(4), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
}

TEST(tokenizer, tells_the_bytes_of_tokens) {
  EXPECT_EQ(small().bytes_of(3), " ");
  EXPECT_EQ(small().bytes_of(4), "\xC3");
  EXPECT_EQ(small().bytes_of(6), "");
  EXPECT_EQ(small().bytes_of(100), "");
}

TEST(tokenizer, reads_bytes_that_are_no_text_as_replacement_characters) {
  const Tokenizer tokenizer = small();
  EXPECT_EQ(tokenizer.encode("a\xFF"
                             "b"),
            tokenizer.encode("a\uFFFDb"));
}

TEST(tokenizer, decodes_tokens_that_are_a_part_of_a_character) {
  GgufVocabulary v;
  v.model = "llama";
  v.tokens = {"<unk>", "a", "\xf0", "\xf0\x9f"};
  v.scores = {0, -1, -2, -3}, v.token_type = {2, 1, 1, 1};
  std::string why;
  Result<Tokenizer> tokenizer = Tokenizer::from_gguf(v, &why);
  ASSERT_TRUE(tokenizer.ok()) << why;
  for (const TokenId id : {2, 3}) {
    const TokenId ids[] = {1, id};
    EXPECT_THAT(tokenizer->decode(ids), testing::StartsWith("a"));
    EXPECT_FALSE(tokenizer->bytes_of(id).empty());
  }
}

TEST(tokenizer, encodes_the_same_in_many_threads) {
  const Tokenizer tokenizer = small();
  std::vector<std::thread> threads;
  std::vector<int> wrong(8);
  for (int& count : wrong) {
    threads.emplace_back([&tokenizer, &count] {
      for (int i = 0; i < 500; ++i) {
        const std::string text = std::string(static_cast<size_t>(i % 7), 'a') + "b";
        count += tokenizer.encode(text).size() != static_cast<size_t>(std::max(i % 7, 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

TEST(tokenizer, takes_long_words_in_little_more_than_linear_time) {
  EXPECT_EQ(small().encode(std::string(1 << 20, 'a')).size(), 1u << 20);
}

TEST(tokenizer, refuses_what_it_does_not_understand) {
  EXPECT_EQ(why_refused("[1"), "this is not a JSON object");
  EXPECT_EQ(why_refused("{}"), "`model` is not an object");
  EXPECT_EQ(why_refused(R"({"model": {"type": "New", "vocab": {}}})"),
            "model: no such kind of tokenizer as New");
  EXPECT_EQ(why_refused(R"({"model": {"type": "BPE", "vocab": {"a": 4000000000}, "merges": []}})"),
            "the id of token \"a\" is not a number from 0 to 16777215");
  EXPECT_EQ(why_refused(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
            "the merge \"a b\" is not two tokens of the vocabulary that make a third");
  EXPECT_EQ(why_refused(R"({"model": {"type": "BPE", "vocab": {}, "merges": []},
                            "normalizer": {"type": "Odd"}})"),
            "normalizer Odd is not supported");
  EXPECT_THAT(why_refused(R"({"model": {"type": "BPE", "vocab": {}, "merges": []},
                "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"},
                                  "behavior": "Isolated"}})"),
              HasSubstr("the regular expression \"(a\" is wrong at byte 2: missing closing"));
}

TEST(tokenizer, names_the_file_that_it_cannot_read) {
  std::string why;
  EXPECT_EQ(Tokenizer::load("/nowhere/tokenizer.json", &why).error(), Error::invalid_argument);
  EXPECT_EQ(why, "/nowhere/tokenizer.json: the file cannot be read");
}

TEST(tokenizer, names_the_pre_tokenizers_of_gguf_that_it_knows) {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "unheard-of";
  vocabulary.tokens = {"a"};
  std::string why;
  EXPECT_EQ(Tokenizer::from_gguf(vocabulary, &why).error(), Error::not_supported);
  EXPECT_THAT(why, HasSubstr("\"unheard-of\" is not among those supported: gpt-2, phi-2"));
}

}  // namespace
}  // namespace taper::llm
