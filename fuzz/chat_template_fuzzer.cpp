// Any bytes are a template or an error, and a template gives a text or an error.
#include <cstdint>
#include <string_view>

#include "taper/runtime/extension/llm/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace taper::llm;
  constexpr size_t most = 4096;  // longer ones only take longer
  const std::string_view text(reinterpret_cast<const char*>(data), size < most ? size : most);
  const taper::Result<ChatTemplate> chat = ChatTemplate::parse(text);
  if (!chat.ok()) return 0;
  ChatInput input;
  input.messages =
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": " Hello "},
          {"role": "assistant", "content": "W\u00f6rld", "tool_calls": [{"id": 1}]}])";
  input.tools = R"([{"name": "f", "parameters": {"a": [1, 2.5, null, true]}}])";
  input.variables = R"({"name": "x", "n": 7, "d": {"b": 2, "a": [1]}})";
  input.bos_token = "<s>";
  input.add_generation_prompt = true;
  static_cast<void>(chat.value().render(input).ok());
  return 0;
}
