// Tools: what templates do with them, and what answers are made of.
#include "taper/runtime/extension/llm/tools.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

#include "../../support/data.h"
#include "json.h"
#include "taper/runtime/extension/llm/grammar.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;
using testing::Not;
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
  EXPECT_EQ(schema_of_call(ToolStyle::plain, weather_tool, "none"), "");
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
  for (const char* wrong :
       {"", " ", "{", "[]]", R"({"name": 1})", R"({"name": "a", "arguments": []})", R"({"a": {}})",
        R"({"name": "a"} and more)", R"({"name": "a", "arguments": "x"})", "\"", "{\"\\", "]"})
    EXPECT_EQ(names(wrong), "") << wrong;
  EXPECT_EQ(names(std::string(100000, '[')), "");
  EXPECT_EQ(names(R"({"name": "a", "arguments": {"a":)" + std::string(1000, '[') +
                  std::string(1000, ']') + "}}"),
            "");
}

/// "thoughts|text|name{arguments}…"
std::string taken_apart(const AnswerStyle& style, const std::string& answer, size_t piece) {
  AnswerReader reader(style);
  AnswerParts all;
  const auto add = [&](const AnswerParts& parts) {
    all.thoughts += parts.thoughts, all.text += parts.text;
    all.calls.insert(all.calls.end(), parts.calls.begin(), parts.calls.end());
  };
  for (size_t i = 0; i < answer.size(); i += piece) add(reader.push(answer.substr(i, piece)));
  add(reader.finish());
  std::string text = all.thoughts + "|" + all.text + "|";
  for (const ToolCall& call : all.calls) text += call.name + call.arguments;
  return text;
}

struct Example {
  AnswerStyle style;
  const char *answer, *parts;
};

TEST(tools, takes_answers_apart_however_they_are_cut) {
  const AnswerStyle text, tagged{ToolStyle::tagged}, plain{ToolStyle::plain},
      listed{ToolStyle::listed};
  AnswerStyle thinks = tagged, calls = tagged, calls_listed = listed;
  thinks.begins_with_thoughts = true;
  calls.begins_with_call = calls_listed.begins_with_call = true;
  const Example examples[] = {
      {text, "Hello <tool_call>{\"name\": \"a\"}</tool_call> \n",
       "|Hello <tool_call>{\"name\": \"a\"}</tool_call> \n|"},
      {text, "<think>\nWell.\n</think>\n\nHello", "Well.|Hello|"},
      {text, "<think>Well", "Well||"},
      {text, "<thin", "|<thin|"},
      {text, " <think>a</think> <think>b</think>", "a|<think>b</think>|"},
      {text, "A <think> b", "|A <think> b|"},
      {tagged, "Wait.\n<tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": 1}}\n</tool_call>",
       "|Wait.|a{\"x\":1}"},
      {tagged, "<tool_call>{\"name\": \"a\"}</tool_call>\n<tool_call>{\"name\": \"b\"}",
       "||a{}b{}"},
      {tagged, "<tool_call>{\"name\": }</tool_call> x", "|<tool_call>{\"name\": }</tool_call> x|"},
      {tagged, "<tool_call>{\"name\"", "|<tool_call>{\"name\"|"},
      {tagged, "a <tool", "|a <tool|"},
      {tagged, "<think>call a</think>\n<tool_call>{\"name\": \"a\"}</tool_call>", "call a||a{}"},
      {thinks, "\nWell.\n</think>\nHello", "Well.|Hello|"},
      {calls, "{\"name\": \"a\", \"arguments\": {}}", "||a{}"},
      {plain, "\n{\"name\": \"a\", \"parameters\": {\"x\": \"y\"}}", "||a{\"x\":\"y\"}"},
      {plain, "<|python_tag|>{\"name\": \"a\"}; {\"name\": \"b\"}", "||a{}b{}"},
      {plain, "{\"x\": 1}", "|{\"x\": 1}|"},
      {plain, "No {\"name\": \"a\"}", "|No {\"name\": \"a\"}|"},
      {plain, "<|python", "|<|python|"},
      {listed, "[TOOL_CALLS] [{\"name\": \"a\", \"arguments\": {}}, {\"name\": \"b\"}]",
       "||a{}b{}"},
      {listed, "Ok [TOOL_CALLS]", "|Ok|"},
      {listed, "[TOOL_CALLS] [{\"name\"", "|[TOOL_CALLS] [{\"name\"|"},
      {calls_listed, " [{\"name\": \"a\"}]", "||a{}"},
  };
  for (const Example& example : examples)
    for (const size_t piece : {1u, 2u, 3u, 7u, 1000u})
      EXPECT_EQ(taken_apart(example.style, example.answer, piece), example.parts)
          << example.answer << " in pieces of " << piece;
}

TEST(tools, takes_the_answer_apart_that_the_page_shows) {
  testing::internal::CaptureStdout();
  // clang-format off
  AnswerReader reader({ToolStyle::tagged});
  AnswerParts parts = reader.push(R"(<think>Easy.</think>One moment.<tool_call>{"name": "time"}</tool_call>)");
  std::cout << parts.thoughts << parts.text << parts.calls[0].name;
  // clang-format on
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "Easy.One moment.time");
}

TEST(tools, tells_parts_as_soon_as_they_are_known) {
  AnswerReader reader({ToolStyle::tagged});
  EXPECT_EQ(reader.push("Hello world").text, "Hello world");
  EXPECT_EQ(reader.push(" <").text, "");
  EXPECT_EQ(reader.push("3").text, " <3");
  EXPECT_EQ(reader.push("<tool_call>{\"name\": \"a\"}").calls.size(), 0u);
  EXPECT_EQ(reader.push("</tool_call>").calls.size(), 1u);
}

}  // namespace
}  // namespace taper::llm
