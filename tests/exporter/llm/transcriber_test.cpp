// Transcription with a small Whisper: its tokens against those of transformers, and the rules of
// generation_config.json.
#include "taper/exporter/llm/transcriber.h"

#include <gmock/gmock.h>

#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/llm/golden_values.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

using nlohmann::json;

/// Whisper in eager, and the sound that goes with its golden results.
struct Tiny {
  explicit Tiny(const std::filesystem::path& folder)
      : model(load_seq2seq(folder.string())),
        runner(*model),
        file(io::read_safetensors(folder / "golden.safetensors")),
        golden(file),
        features(golden.tensor("input_features")) {}
  std::unique_ptr<Seq2Seq> model;
  EagerSeq2SeqRunner runner;
  io::SafeTensors file;
  GoldenValues golden;
  Tensor features;
};

/// The prompt of the recorded continuation, in the places of start, language, task and no_times.
SpeechTokens tokens_of(const Tiny& tiny) {
  const std::vector<int64_t> prompt = tiny.golden.ids("greedy.prompt");
  SpeechTokens t;
  t.start = prompt.at(0), t.languages["en"] = prompt.at(1), t.task = prompt.at(2);
  t.no_times = prompt.at(3);
  return t;
}

TEST(transcriber, writes_the_recorded_tokens) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/whisper");
  Tiny tiny(folder);
  const std::vector<int64_t> want = tiny.golden.ids("greedy.tokens");
  Transcriber transcriber(tiny.runner, tokens_of(tiny));
  const auto most = static_cast<int64_t>(want.size()) + 3;
  EXPECT_EQ(transcriber.write(tiny.features, "en", most).ids, want);
}

TEST(transcriber, stops_at_an_end_and_leaves_out_what_is_suppressed) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/whisper");
  Tiny tiny(folder);
  const std::vector<int64_t> want = tiny.golden.ids("greedy.tokens");
  SpeechTokens tokens = tokens_of(tiny);
  const auto end = std::ranges::find_if(want, [&](int64_t id) { return id != want[0]; });
  ASSERT_NE(end, want.end());
  tokens.ends = {*end};
  EXPECT_EQ(Transcriber(tiny.runner, tokens).write(tiny.features, "en", 48).ids,
            std::vector<int64_t>(want.begin(), end));
  tokens.ends.clear(), tokens.never_first = {want[0]};
  const auto other = Transcriber(tiny.runner, tokens).write(tiny.features, "en", 10).ids;
  EXPECT_NE(other.at(0), want[0]);
  tokens.never = want;
  for (const int64_t id : Transcriber(tiny.runner, tokens).write(tiny.features, "en", 20).ids)
    EXPECT_EQ(std::ranges::find(want, id), want.end());
}

TEST(transcriber, hears_the_likeliest_language) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/whisper");
  Tiny tiny(folder);
  SpeechTokens tokens = tokens_of(tiny);
  tokens.start = tiny.golden.ids("decoder_input_ids").at(0);
  const std::span<const float> logits = tiny.golden.floats("logits");
  tokens.languages = {{"a", 20}, {"b", 21}, {"c", 22}};
  std::string want = "a";
  for (const auto& [name, id] : tokens.languages)
    if (logits[static_cast<size_t>(id)] > logits[static_cast<size_t>(tokens.languages.at(want))])
      want = name;
  EXPECT_EQ(Transcriber(tiny.runner, tokens).write(tiny.features, "", 8).language, want);
  EXPECT_EXPORT_ERROR(Transcriber(tiny.runner, tokens).write(tiny.features, "xx", 8),
                      "no language \"xx\"");
}

TEST(speech_tokens, are_those_of_the_configuration) {
  const SpeechTokens t =
      read_speech_tokens({{"decoder_start_token_id", 50258},
                          {"eos_token_id", 50257},
                          {"lang_to_id", {{"<|de|>", 50261}, {"<|en|>", 50259}}},
                          {"task_to_id", {{"transcribe", 50359}, {"translate", 50358}}},
                          {"no_timestamps_token_id", 50363},
                          {"suppress_tokens", {1, 2}},
                          {"begin_suppress_tokens", {220, 50257}}},
                         json::object({{"eos_token_id", 7}}));
  EXPECT_EQ(t.start, 50258);
  EXPECT_EQ(t.languages.at("de"), 50261);
  EXPECT_EQ(t.task, 50359);
  EXPECT_EQ(t.no_times, 50363);
  EXPECT_THAT(t.ends, testing::ElementsAre(50257));
  EXPECT_THAT(t.never, testing::ElementsAre(1, 2));
  EXPECT_THAT(t.never_first, testing::ElementsAre(220, 50257));
  EXPECT_EXPORT_ERROR(read_speech_tokens(json::object(), json::object()),
                      "decoder_start_token_id is missing");
  EXPECT_EXPORT_ERROR(
      read_speech_tokens({{"decoder_start_token_id", 1}, {"lang_to_id", 3}}, json::object()),
      "lang_to_id must be an object");
}

}  // namespace
}  // namespace taper::llm
