// The example of docs/text.md, with a model that says "hi", and then the end of its turn.
#include <gtest/gtest.h>

#include <fstream>

#include "../../support/data.h"
#include "taper/runtime/extension/llm/chat_template.h"
#include "taper/runtime/extension/llm/sampler.h"
#include "taper/runtime/extension/llm/stop_strings.h"
#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper::llm {
namespace {

constexpr const char* vocabulary = R"({
  "added_tokens": [{"id": 4, "content": "<|end|>", "special": true}],
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"h": 0, "i": 1, ":": 2, "u": 3}, "merges": []}})";

std::vector<float> logits_of(const std::vector<int32_t>& ids) {
  std::vector<float> logits(5);
  logits[ids.back() == 2 ? 0 : ids.back() == 0 ? 1 : 4] = 100;
  return logits;
}

TEST(text, answers_as_the_page_shows) {
  const std::string folder = tests::scratch_file("").string();
  std::ofstream(folder + "/tokenizer.json") << vocabulary;
  const std::string source =
      "{% for m in messages %}{{ m.content }}<|end|>{% endfor %}"
      "{% if add_generation_prompt %}:{% endif %}";

  std::string why;
  Result<Tokenizer> tokenizer = Tokenizer::load(folder, &why);
  ASSERT_TRUE(tokenizer.ok()) << why;
  Result<ChatTemplate> chat = ChatTemplate::parse(source, &why);
  ASSERT_TRUE(chat.ok()) << why;

  ChatInput input;
  input.messages = messages_json({{"user", "hu"}});
  input.add_generation_prompt = true;
  Result<std::string> prompt = chat->render(input, &why);
  ASSERT_TRUE(prompt.ok()) << why;

  SamplingOptions options;
  options.temperature = 0.7f;
  options.top_p = 0.9f;
  Sampler sampler(options);
  StreamDecoder decoder(*tokenizer);
  StopStrings stops({"user:"});
  EncodeOptions as_it_stands;
  as_it_stands.add_special_tokens = false;  // the template wrote them
  std::vector<int32_t> ids = tokenizer->encode(*prompt, as_it_stands);
  std::string answer;
  while (!stops.stopped()) {
    std::vector<float> logits = logits_of(ids);
    const int32_t next = sampler.sample(logits, ids);
    if (next == tokenizer->id_of("<|end|>")) break;
    ids.push_back(next);
    answer += stops.push(decoder.push(next));
  }
  answer += stops.push(decoder.finish()) + stops.finish();
  EXPECT_EQ(answer, "hi");
}

}  // namespace
}  // namespace taper::llm
