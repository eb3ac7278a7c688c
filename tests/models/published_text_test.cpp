// stories260K, a Llama of 260 thousand weights, must write the text that its authors print, token
// for token: computing the whole sequence again for every token, and with a cache.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "taper/exporter/io/file.h"
#include "taper/tests/models/imported.h"

namespace taper {
namespace {

using tests::Imported;
TAPER_PUBLISHED(published_language_model);

constexpr int64_t vocabulary = 512, start_of_text = 1;

/// Greedy generation by another implementation. `tokens` follow the start of the text: the rest of
/// the prompt, then what was generated.
struct Story {
  std::string prompt;
  int64_t prompt_tokens;  ///< with the start of the text
  std::vector<int64_t> tokens;
};
std::vector<Story> golden_stories(const std::filesystem::path& path) {
  const nlohmann::json recorded = nlohmann::json::parse(std::ifstream(path));
  std::vector<Story> stories;
  for (const auto& r : recorded["runs"])
    stories.push_back({r["prompt"], static_cast<int64_t>(r["prompt_tokens"].size()),
                       r["tokens"].get<std::vector<int64_t>>()});
  return stories;
}

/// Text of tokens by llama2.c's tokenizer file: i32 longest piece, then for each token f32 score,
/// i32 length, bytes. Tokens 3 to 258 are single bytes.
std::string text_of(const std::vector<int64_t>& tokens, const std::filesystem::path& tokenizer) {
  const io::Bytes file = io::read_file(tokenizer);
  std::vector<std::string> pieces;
  for (size_t at = 4; at + 8 <= file.size();) {
    int32_t length;
    std::memcpy(&length, file.data() + at + 4, 4);
    pieces.emplace_back(reinterpret_cast<const char*>(file.data()) + at + 8, length);
    at += 8 + static_cast<size_t>(length);
  }
  std::string text;
  for (const int64_t t : tokens)
    text += t >= 3 && t < 259 ? std::string(1, static_cast<char>(t - 3)) : pieces.at(t);
  return text.starts_with(' ') ? text.substr(1) : text;  // a text begins with a space of its own
}

/// The choices after each token of `sequence`; 2 to 256 of them.
std::vector<int64_t> choices(Imported& program, const std::vector<int64_t>& sequence) {
  const auto n = static_cast<index_t>(sequence.size());
  const std::vector<OwnedTensor> logits = program.run({Input(sequence.data(), {1, n})});
  std::vector<int64_t> chosen;
  for (index_t i = 0; i < n; ++i)
    chosen.push_back(tests::index_of_largest(logits[0].data<float>() + i * vocabulary, vocabulary));
  return chosen;
}

TEST_P(published_language_model, writes_the_published_text_from_whole_sequences) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/stories260k.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "llm");
  const Story golden = golden_stories(folder / "golden/stories260K_greedy.json").front();
  ASSERT_EQ(golden.prompt, "");
  Imported program(file, exact());
  // the file takes at least two tokens; what follows a token does not change what is chosen after
  // it
  std::vector<int64_t> sequence{start_of_text};
  sequence.push_back(choices(program, {start_of_text, start_of_text})[0]);
  while (sequence.size() < 257) sequence.push_back(choices(program, sequence).back());
  sequence.erase(sequence.begin());
  EXPECT_EQ(sequence, std::vector<int64_t>(golden.tokens.begin(), golden.tokens.begin() + 256));

  std::ifstream in(folder / "golden/stories260K_published_greedy.txt");
  std::string published(std::istreambuf_iterator<char>(in), {});
  while (published.ends_with('\n')) published.pop_back();
  const std::string text = text_of(sequence, folder / "stories260K_tok512.bin");
  EXPECT_EQ(text.substr(0, published.size()), published);
}

// Row i of the logits depends on tokens up to i alone, so the choices after all tokens of a golden
// text, in one call, are those of greedy generation as long as they are right.
TEST_P(published_language_model, goes_on_with_every_prompt_as_recorded) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/stories260k.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded, "llm/golden/stories260K_greedy.json");
  Imported program(file, exact());
  for (const Story& story : golden_stories(recorded)) {
    std::vector<int64_t> sequence = story.tokens;
    sequence.insert(sequence.begin(), start_of_text);
    sequence.resize(std::min<size_t>(sequence.size(), 256));
    const std::vector<int64_t> chosen = choices(program, sequence);
    for (size_t i = static_cast<size_t>(story.prompt_tokens) - 1; i + 1 < sequence.size(); ++i)
      ASSERT_EQ(chosen[i], sequence[i + 1]) << story.prompt << ", after token " << i;
  }
}

// The cache of the file holds 64 tokens.
TEST_P(published_language_model, writes_the_published_text_with_a_cache) {
  TAPER_GOLDEN_DATA_OR_SKIP(file, "pt2/stories260k_static_cache.pt2");
  TAPER_GOLDEN_DATA_OR_SKIP(recorded, "llm/golden/stories260K_greedy.json");
  Imported program(file, exact());
  for (const Story& story : golden_stories(recorded)) {
    program.restart();
    std::vector<int64_t> written;
    for (int64_t position = 0, token = start_of_text; position < 64; ++position) {
      const std::vector<OwnedTensor> logits =
          program.run({Input(&token, {1, 1}), Input(&position, {1})});
      token = position + 1 < story.prompt_tokens
                  ? story.tokens[position]
                  : tests::index_of_largest(logits[0].data<float>(), vocabulary);
      written.push_back(token);
    }
    EXPECT_EQ(written, std::vector<int64_t>(story.tokens.begin(), story.tokens.begin() + 64))
        << story.prompt;
  }
}

}  // namespace
}  // namespace taper
