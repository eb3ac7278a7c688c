// Tools: what templates do with them, and how calls are written.
#include "taper/runtime/extension/llm/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../../support/data.h"
#include "json.h"
#include "taper/runtime/extension/llm/grammar.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;
using tests::Json;

constexpr char weather_tool[] = R"([{"type": "function", "function": {"name": "weather",
  "description": "The weather.", "parameters": {"type": "object", "properties": {
  "city": {"$ref": "#/$defs/City"}}, "required": ["city"],
  "$defs": {"City": {"type": "string", "maxLength": 20}}}}},
  {"type": "function", "function": {"name": "time"}}])";

ChatTemplate golden_template(const std::filesystem::path& folder, const std::string& name) {
  const Json data = tests::read_json(folder / (name + ".json"));
  std::string why;
  Result<ChatTemplate> chat = ChatTemplate::parse(data["template"].get<std::string>(), &why);
  EXPECT_TRUE(chat.ok()) << why;
  return std::move(chat).value();
}

TEST(tools, tells_what_templates_do_with_them) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "chat_templates");
  const std::pair<const char*, ToolStyle> with_tools[] = {{"qwen25", ToolStyle::tagged},
                                                          {"hermes_tools_macro", ToolStyle::tagged},
                                                          {"llama31_tools", ToolStyle::plain},
                                                          {"mistral_v3_tools", ToolStyle::listed}};
  for (const auto& [name, style] : with_tools) {
    const ToolSupport support = tool_support_of(golden_template(folder, name));
    EXPECT_TRUE(support.describes) << name;
    EXPECT_EQ(support.style, style) << name;
  }
  for (const char* name : {"smollm", "chatml", "gemma", "llama2", "phi3", "zephyr"})
    EXPECT_FALSE(tool_support_of(golden_template(folder, name)).describes) << name;
  for (const char* name : {"gemma", "gemma3"})
    EXPECT_EQ(tool_support_of(golden_template(folder, name)).style, ToolStyle::fenced) << name;
  const ToolSupport deepseek = tool_support_of(golden_template(folder, "deepseek_r1"));
  EXPECT_FALSE(deepseek.describes);
  EXPECT_TRUE(deepseek.writes_calls);
  EXPECT_EQ(deepseek.style, ToolStyle::sectioned);
}

// Short ones, with the marks of the families' own templates.
TEST(tools, tells_styles_and_forms_of_templates) {
  const auto support = [](const std::string& call, const std::string& answer) {
    std::string why;
    const Result<ChatTemplate> chat = ChatTemplate::parse(
        "{{ tools }}{% for m in messages %}{% if m.tool_calls %}{% set c = m.tool_calls[0] %}" +
            call + "{% elif m.role == 'assistant' %}" + answer +
            "{% else %}{{ m.content }}{% endif %}{% endfor %}",
        &why);
    EXPECT_TRUE(chat.ok()) << why;
    return tool_support_of(chat.value());
  };
  const ToolSupport gpt_oss = support(
      "<|start|>assistant to=functions.{{ c.function.name }}<|channel|>commentary "
      "json<|message|>{{ c.function.arguments }}<|call|>",
      "<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>");
  EXPECT_EQ(gpt_oss.style, ToolStyle::channels);
  EXPECT_EQ(gpt_oss.form, AnswerForm::channels);
  const ToolSupport command =
      support("<|START_ACTION|>[{\"tool_name\": \"{{ c.function.name }}\"}]<|END_ACTION|>",
              "<|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>");
  EXPECT_EQ(command.style, ToolStyle::actions);
  EXPECT_EQ(command.form, AnswerForm::sections);
  const ToolSupport magistral =
      support("[TOOL_CALLS]{{ c.function.name }}[ARGS]{}", "[THINK]x[/THINK]");
  EXPECT_EQ(magistral.style, ToolStyle::listed);
  EXPECT_EQ(magistral.form, AnswerForm::bracketed);
  EXPECT_EQ(support("<tool_call>{{ c.function.name }}", "{{ m.content }}").form, AnswerForm::plain);
}

TEST(tools, describes_them_in_the_words_of_deepseek) {
  ChatInput input;
  input.messages = R"([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "",
    "tool_calls": [{"function": {"name": "time", "arguments": {}}}]}, {"role": "tool", "content": "9"}])";
  input.tools = weather_tool;
  ToolSupport support;
  support.style = ToolStyle::sectioned, support.writes_calls = true;
  const Json messages = Json::parse(with_tools_as_text(input, support).messages);
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_THAT(messages[0]["content"], HasSubstr("### weather\nDescription: The weather.\n"));
  EXPECT_THAT(messages[0]["content"],
              HasSubstr("<｜tool▁call▁begin｜>tool_call_name<｜tool▁sep｜>"));
  EXPECT_TRUE(messages[2].contains("tool_calls"));  // the template writes them
  EXPECT_EQ(messages[3]["role"], "tool");
}

TEST(tools, describes_them_to_a_template_that_knows_none) {
  ChatInput input;
  input.messages = R"([{"role": "user", "content": "hi"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function",
      "function": {"name": "weather", "arguments": {"city": "Rome"}}}]},
    {"role": "tool", "content": "sunny", "tool_call_id": "1"},
    {"role": "tool", "content": "hot", "tool_call_id": "2"}])";
  input.tools = weather_tool;
  const ChatInput changed = with_tools_as_text(input);
  EXPECT_TRUE(changed.tools.empty());
  const Json messages = Json::parse(changed.messages);
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0]["role"], "system");
  EXPECT_THAT(messages[0]["content"],
              HasSubstr(R"("name":"weather","description":"The weather.")"));
  EXPECT_EQ(messages[2], Json::parse(R"({"role": "assistant", "content":
    "<tool_call>\n{\"name\":\"weather\",\"arguments\":{\"city\":\"Rome\"}}\n</tool_call>"})"));
  EXPECT_EQ(messages[3], Json::parse(R"({"role": "user", "content":
    "<tool_response>\nsunny\n</tool_response>\n<tool_response>\nhot\n</tool_response>"})"));

  input.messages =
      R"([{"role": "system", "content": "Be kind."}, {"role": "user", "content": ""}])";
  const Json kind = Json::parse(with_tools_as_text(input).messages);
  EXPECT_THAT(kind[0]["content"], testing::StartsWith("Be kind.\n\n# Tools"));
  input.tools.clear();
  EXPECT_EQ(Json::parse(with_tools_as_text(input).messages), Json::parse(input.messages));
  input.messages = "nothing";
  EXPECT_EQ(with_tools_as_text(input).messages, "nothing");
}

// Gemma 1 and 2 take no message of the system.
TEST(tools, describes_them_to_a_template_that_takes_no_system_message) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "chat_templates");
  const ChatTemplate gemma = golden_template(folder, "gemma");
  const ToolSupport support = tool_support_of(gemma);
  EXPECT_FALSE(support.takes_system);
  EXPECT_TRUE(tool_support_of(golden_template(folder, "gemma3")).takes_system);
  ChatInput input;
  input.messages = R"([{"role": "user", "content": "Hot?"}])";
  input.tools = weather_tool, input.bos_token = "", input.eos_token = "";
  std::string why;
  const Result<std::string> text = gemma.render(with_tools_as_text(input, support), &why);
  ASSERT_TRUE(text.ok()) << why;
  EXPECT_THAT(text.value(), HasSubstr("<start_of_turn>user\n# Tools"));
  EXPECT_THAT(text.value(), HasSubstr("\n\nHot?<end_of_turn>"));
}

TEST(tools, gives_a_schema_of_the_calls) {
  const auto accepts = [](ToolStyle style, const char* name, const char* text) {
    std::string why;
    const Result<Grammar> grammar =
        Grammar::from_json_schema(schema_of_call(style, weather_tool, name), &why);
    EXPECT_TRUE(grammar.ok()) << why;
    GrammarMatcher matcher(grammar.value(), TokenTexts(std::vector<std::string>()));
    return matcher.accept(std::string_view(text)) && matcher.is_complete();
  };
  const char* rome = R"({"name": "weather", "arguments": {"city": "Rome"}})";
  const char* time = R"({"name": "time", "arguments": {}})";
  EXPECT_TRUE(accepts(ToolStyle::tagged, "", rome));
  EXPECT_TRUE(accepts(ToolStyle::tagged, "", time));
  EXPECT_TRUE(accepts(ToolStyle::tagged, "time", time));
  EXPECT_FALSE(accepts(ToolStyle::tagged, "time", R"({"name": "time", "arguments": {"x": 1}})"));
  EXPECT_FALSE(accepts(ToolStyle::tagged, "",
                       R"({"name": "weather", "arguments": {"city": "Rome", "x": 1}})"));
  EXPECT_FALSE(accepts(ToolStyle::tagged, "time", rome));
  EXPECT_FALSE(accepts(ToolStyle::tagged, "", R"({"name": "weather", "arguments": {}})"));
  EXPECT_FALSE(accepts(ToolStyle::tagged, "",
                       R"({"name": "weather", "arguments": {"city": "123456789012345678901"}})"));
  EXPECT_TRUE(accepts(ToolStyle::plain, "", R"({"name": "time", "parameters": {}})"));
  EXPECT_FALSE(accepts(ToolStyle::plain, "", time));
  EXPECT_TRUE(accepts(ToolStyle::listed, "", R"([{"name": "time", "arguments": {}}])"));
  EXPECT_FALSE(accepts(ToolStyle::listed, "", "[]"));
  EXPECT_TRUE(accepts(ToolStyle::actions, "", R"([{"tool_name": "time", "parameters": {}}])"));
  EXPECT_FALSE(accepts(ToolStyle::actions, "", R"([{"name": "time", "parameters": {}}])"));
  for (const ToolStyle style : {ToolStyle::sectioned, ToolStyle::channels, ToolStyle::fenced})
    EXPECT_TRUE(accepts(style, "", rome));
  EXPECT_EQ(schema_of_call(ToolStyle::plain, weather_tool, "none"), "");
}

TEST(tools, closes_no_schema_that_needs_arguments_which_it_does_not_name) {
  for (const char* parameters : {R"({"type": "object", "required": ["x"]})",
                                 R"({"properties": {"y": {}}, "required": ["y", "x"]})",
                                 R"({"type": "object", "minProperties": 2})"}) {
    const std::string tool =
        R"([{"function": {"name": "f", "parameters": )" + std::string(parameters) + "}}]";
    const Grammar grammar =
        Grammar::from_json_schema(schema_of_call(ToolStyle::tagged, tool, "")).value();
    GrammarMatcher matcher(grammar, TokenTexts(std::vector<std::string>()));
    EXPECT_TRUE(matcher.accept(R"({"name": "f", "arguments": {"x": 1, "y": 2}})")) << parameters;
    EXPECT_TRUE(matcher.is_complete());
  }
}

TEST(tools, reads_calls) {
  const auto names = [](std::string_view text) {
    std::string all;
    for (const ToolCall& call : read_calls(text)) all += call.name + call.arguments + " ";
    return all;
  };
  EXPECT_EQ(names(R"({"name": "a", "arguments": {"b": [1, "}"], "a": null}})"),
            R"(a{"b":[1,"}"],"a":null} )");
  EXPECT_EQ(names(R"( {"name": "a", "parameters": {}} ; {"name": "b"} )"), "a{} b{} ");
  EXPECT_EQ(names(R"([{"name": "a", "arguments": "{\"x\": 1}"}, {"name": "b"}])"),
            R"(a{"x":1} b{} )");
  EXPECT_EQ(names(R"({"name": "a", "arguments": null}{"name": "b", "arguments": ""})"), "a{} b{} ");
  for (const char* wrong :
       {"", " ", "{", "[]]", R"({"name": 1})", R"({"name": "a", "arguments": []})", R"({"a": {}})",
        R"({"name": "a"} and more)", R"({"name": "a", "arguments": "x"})", "\"", "{\"\\", "]"})
    EXPECT_EQ(names(wrong), "") << wrong;
  EXPECT_EQ(names(std::string(100000, '[')), "");
  EXPECT_EQ(names(R"({"name": "a", "arguments": {"a":)" + std::string(1000, '[') +
                  std::string(1000, ']') + "}}"),
            "");
}

}  // namespace
}  // namespace taper::llm
