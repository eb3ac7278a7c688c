// What answers are made of: thoughts, texts and calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <random>
#include <string>

#include "taper/runtime/extension/llm/tools.h"

namespace taper::llm {
namespace {

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

void expect_parts(const AnswerStyle& style, const char* answer, const char* parts) {
  for (const size_t piece : {1u, 2u, 3u, 7u, 1000u})
    EXPECT_EQ(taken_apart(style, answer, piece), parts) << answer << " in pieces of " << piece;
}

TEST(tools, reads_the_calls_of_deepseek) {
  AnswerStyle style{ToolStyle::sectioned}, thinks = style, forced = style;
  thinks.begins_with_thoughts = forced.begins_with_call = true;
  expect_parts(style,
               "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n"
               "{\"city\": \"Rome\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function"
               "<｜tool▁sep｜>time\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
               "||weather{\"city\":\"Rome\"}time{}");
  expect_parts(style,
               "Let me see.\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>"
               "{\"city\": \"Rome\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
               "|Let me see.|weather{\"city\":\"Rome\"}");
  expect_parts(thinks,
               "\nThe time?\n</think>\n\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>time"
               "<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
               "The time?||time{}");
  expect_parts(forced, "{\"name\": \"time\", \"arguments\": {}}", "||time{}");
  // broken: the text is there, and no mark is
  expect_parts(style, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\":",
               "|weather{\"city\":|");
  expect_parts(style, "<｜tool▁calls▁begin｜>", "||");
  expect_parts(style,
               "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a<｜tool▁sep｜>[1]<｜tool▁call▁end｜>"
               "<｜tool▁calls▁end｜> b",
               "|a[1] b|");
}

TEST(tools, reads_the_calls_of_command) {
  AnswerStyle style{ToolStyle::actions}, thinks;
  style.form = thinks.form = AnswerForm::sections;
  thinks.begins_with_thoughts = true;
  expect_parts(style,
               "<|START_THINKING|>I look.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": "
               "\"0\", \"tool_name\": \"weather\", \"parameters\": {\"city\": \"Rome\"}},\n"
               "    {\"tool_call_id\": \"1\", \"tool_name\": \"time\", \"parameters\": {}}\n]"
               "<|END_ACTION|>",
               "I look.||weather{\"city\":\"Rome\"}time{}");
  expect_parts(style,
               "<|START_THINKING|>Easy.<|END_THINKING|><|START_RESPONSE|>It is 9.<|END_RESPONSE|>",
               "Easy.|It is 9.|");
  expect_parts(thinks, "Easy.<|END_THINKING|><|START_RESPONSE|>It is 9.", "Easy.|It is 9.|");
  // the older form
  AnswerStyle older{ToolStyle::actions};
  expect_parts(older,
               "Action: ```json\n[\n    {\n        \"tool_name\": \"time\",\n        "
               "\"parameters\": {}\n    }\n]```",
               "||time{}");
  expect_parts(older, "I look.\nAction:\n```json\n[{\"tool_name\": \"time\"}]\n```",
               "|I look.|time{}");
  expect_parts(older, "Action: none", "|Action: none|");
  // broken, or unasked for
  expect_parts(style, "<|START_ACTION|>[{\"tool_name\": 1}]<|END_ACTION|>",
               "|[{\"tool_name\": 1}]|");
  expect_parts(style, "<|START_ACTION|>[{\"tool_na", "|[{\"tool_na|");
  expect_parts(thinks, "x<|END_THINKING|><|START_ACTION|>[]<|END_ACTION|>", "x|[]|");
  expect_parts(thinks, "Well", "Well||");
}

TEST(tools, reads_the_channels_of_gpt_oss) {
  AnswerStyle style{ToolStyle::channels}, forced, text;
  style.form = text.form = AnswerForm::channels;
  forced = style;
  forced.begins_with_call = true;
  expect_parts(style,
               "<|channel|>analysis<|message|>The user asks.<|end|><|start|>assistant<|channel|>"
               "final<|message|>It is 9.",
               "The user asks.|It is 9.|");
  const char* call =
      "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary "
      "to=functions.weather <|constrain|>json<|message|>{\"city\": \"Rome\"}<|call|>";
  expect_parts(style, call, "I look.||weather{\"city\":\"Rome\"}");
  // the recipient may stand before the channel; arguments may be missing
  expect_parts(style, " to=functions.time<|channel|>commentary json<|message|>{}", "||time{}");
  expect_parts(style, "<|start|>assistant to=functions.time<|channel|>commentary<|message|>",
               "||time{}");
  // several calls, and a text in front of them
  expect_parts(
      style,
      "<|channel|>commentary<|message|>I look twice.<|end|><|start|>assistant<|channel|>"
      "commentary to=functions.a<|message|>{}<|call|><|start|>assistant<|channel|>commentary "
      "to=functions.b<|message|>{\"x\": 1}<|call|>",
      "|I look twice.|a{}b{\"x\":1}");
  expect_parts(forced, "{\"name\": \"time\", \"arguments\": {}}", "||time{}");
  // without tools, what goes to one is text; broken parts show no mark
  expect_parts(text, call, "I look.|{\"city\": \"Rome\"}|");
  expect_parts(style, "<|channel|>commentary to=functions.a<|message|>{\"x\": <|call|>",
               "|{\"x\": |");
  expect_parts(style, "<|channel|>final", "||");
  expect_parts(style, "<|channel|>final<|message|>a < b <|", "|a < b <||");
  expect_parts(style,
               "<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b",
               "a|b|");
  expect_parts(style, "Hello", "|Hello|");
  expect_parts(style, "<|end|><|end|>", "||");
}

TEST(tools, reads_the_calls_of_gemma) {
  const AnswerStyle style{ToolStyle::fenced};
  expect_parts(style, "```json\n{\"name\": \"time\", \"parameters\": {}}\n```", "||time{}");
  expect_parts(style, "I look.\n```tool_code\nweather(city='Rome', days=[1, 2])\n```",
               "|I look.|weather{\"city\":\"Rome\",\"days\":[1,2]}");
  expect_parts(style, "```tool_code\nprint(default_api.time())\n```", "||default_api.time{}");
  expect_parts(style, "[time(), weather(city=\"a\\\"b\", x={'y': None, 'z': -1.5, 't': True},)]",
               "||time{}weather{\"city\":\"a\\\"b\",\"x\":{\"y\":null,\"z\":-1.5,\"t\":true}}");
  expect_parts(style, "{\"name\": \"time\"}", "||time{}");
  expect_parts(style, "<tool_call>\n{\"name\": \"time\"}\n</tool_call>", "||time{}");
  expect_parts(
      style,
      "<start_function_call>call:weather{city:<escape>Rome, {x}<escape>,days:[1,2.5],of:{a:"
      "true,<escape>b c<escape>:null}}<end_function_call><start_function_call>call:time{}"
      "<end_function_call>",
      "||weather{\"city\":\"Rome, {x}\",\"days\":[1,2.5],\"of\":{\"a\":true,\"b c\":null}}time{}");
  expect_parts(style, "<start_function_call>call:weather{city:<escape>Ro",
               "|call:weather{city:<escape>Ro|");
  expect_parts(style, "<start_function_call>call:a{x:y}<end_function_call>", "|call:a{x:y}|");
  expect_parts(style, "<start_function_call>call:a{x:1}}<end_function_call>", "|call:a{x:1}}|");
  // code and JSON that are no calls
  for (const char* text :
       {"```python\nprint(1)\n```", "```json\n{\"x\": 1}\n```", "```python\nf(x)\n```", "[1, 2]",
        "```tool_code\nf(a=b)\n```", "```tool_code\nf(a='x", "{\"x\"", "``", "```tool_code\nf(a=1",
        "```python\nx = f(a=1)\n```", "[f(a=1)", "f(a=1)"})
    expect_parts(style, text, ("|" + std::string(text) + "|").c_str());
  expect_parts(style, ("[f(a=" + std::string(100, '[') + std::string(100, ']') + ")]").c_str(),
               ("|[f(a=" + std::string(100, '[') + std::string(100, ']') + ")]|").c_str());
}

// Whatever a model writes: marks in any order, cut anywhere.
TEST(tools, shows_no_special_token_of_the_family) {
  const std::vector<std::string> channels = {"<|start|>", "<|channel|>", "<|message|>",  "<|end|>",
                                             "<|call|>",  "<|return|>",  "<|constrain|>"},
                                 sections = {"<|START_THINKING|>", "<|END_THINKING|>",
                                             "<|START_RESPONSE|>", "<|END_RESPONSE|>",
                                             "<|START_ACTION|>",   "<|END_ACTION|>"},
                                 calls = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
                                          "<｜tool▁call▁begin｜>",  "<｜tool▁call▁end｜>",
                                          "<｜tool▁sep｜>",         "</think>"};
  const std::vector<std::string> texts = {
      "assistant", "analysis", "final", " to=functions.a ",         "{}",
      "x ",        "<",        "\n",    "[{\"tool_name\": \"a\"}]", "a",
      "{\"x\": 1}"};
  const auto style_of = [](std::optional<ToolStyle> tools, AnswerForm form) {
    AnswerStyle style{tools};
    style.form = form;
    return style;
  };
  const std::pair<AnswerStyle, std::vector<std::string>> families[] = {
      {style_of(ToolStyle::channels, AnswerForm::channels), channels},
      {style_of({}, AnswerForm::channels), channels},
      {style_of(ToolStyle::actions, AnswerForm::sections), sections},
      {style_of({}, AnswerForm::sections), sections},
      {style_of(ToolStyle::sectioned, AnswerForm::plain), calls}};
  std::mt19937 random(1);
  for (const auto& [style, marks] : families)
    for (int i = 0; i < 1000; ++i) {
      std::string answer;
      for (size_t n = random() % 12; n > 0; --n) {
        const std::vector<std::string>& from = random() % 2 == 0 ? marks : texts;
        answer += from[random() % from.size()];
      }
      const std::string whole = taken_apart(style, answer, answer.size() + 1);
      for (const size_t piece : {1u, 5u})
        EXPECT_EQ(taken_apart(style, answer, piece), whole) << answer;
      for (const std::string& mark : marks)
        EXPECT_TRUE(mark == "</think>" || whole.find(mark) == std::string::npos) << answer;
    }
}

// An ordinary answer stays as it is, although tools are there.
TEST(tools, gives_back_blocks_of_code_that_are_no_calls) {
  AnswerStyle gemma{ToolStyle::fenced}, command{ToolStyle::actions}, tagged{ToolStyle::tagged};
  for (const char* text :
       {"Like this:\n\n```python\nprint(1)\n```\n\nDone.", "```json\n{\"x\": 1}\n```\n",
        " \n```python\nx\n``` ", "Use\n```python", "Use \n ```json\n", "```json5\n{x: 1}\n```",
        "a\n```tool_code\n```\nb", "```cpp\nint x;\n```"})
    expect_parts(gemma, text, ("|" + std::string(text) + "|").c_str());
  expect_parts(command, "So:\nAction: ```json\n{\"x\": 1}\n```\n.",
               "|So:\nAction: ```json\n{\"x\": 1}\n```\n.|");
  expect_parts(command, "Action: ```json", "|Action: ```json|");
  expect_parts(tagged, "The tag\n<tool_call> x </tool_call>\nis it.",
               "|The tag\n<tool_call> x </tool_call>\nis it.|");
  // blanks beside the marks of thoughts are still no part of the text
  expect_parts(gemma, "<think>a</think>\n\n{\"x\": 1}", "a|{\"x\": 1}|");
  expect_parts(gemma, "<think>a</think>\n\n```json\n1\n```", "a|```json\n1\n```|");
}

TEST(tools, takes_no_block_of_code_for_a_call_of_something_else_than_the_tools) {
  AnswerStyle gemma{ToolStyle::fenced}, llama{ToolStyle::plain}, tagged{ToolStyle::tagged};
  gemma.tool_names = llama.tool_names = tagged.tool_names = {"weather", "time"};
  for (const char* text : {"```python\nmain()\n```", "{\"name\": \"Anna\"}", "[main(), time()]",
                           "```json\n{\"name\": \"Anna\", \"arguments\": {}}\n```"})
    expect_parts(gemma, text, ("|" + std::string(text) + "|").c_str());
  expect_parts(llama, "{\"name\": \"Anna\", \"age\": 31}", "|{\"name\": \"Anna\", \"age\": 31}|");
  expect_parts(llama, "{\"name\": \"time\", \"parameters\": {}}", "||time{}");
  expect_parts(gemma, "```tool_code\nprint(default_api.time())\n```", "||time{}");
  expect_parts(gemma, "[time(), weather(city=\"Rome\")]", "||time{}weather{\"city\":\"Rome\"}");
  // here the marks say that it is a call
  expect_parts(tagged, "<tool_call>{\"name\": \"x\"}</tool_call>", "||x{}");
}

// The mark of a call that must come is in the prompt.
TEST(tools, adds_no_mark_to_a_call_that_was_cut) {
  for (const ToolStyle of : {ToolStyle::tagged, ToolStyle::plain, ToolStyle::listed,
                             ToolStyle::sectioned, ToolStyle::actions, ToolStyle::fenced}) {
    AnswerStyle style{of};
    style.begins_with_call = true;
    expect_parts(style, "{\"name\": \"a\", \"argu", "|{\"name\": \"a\", \"argu|");
  }
}

TEST(tools, reads_the_strings_of_python) {
  const AnswerStyle style{ToolStyle::fenced};
  expect_parts(style, R"([f(a='it\'s \"x\"\n\t\\', b="\d+\.", c='\x41\u00e9\U0001F600')])",
               R"(||f{"a":"it's \"x\"\n\t\\","b":"\\d+\\.","c":"Aé😀"})");
  for (const char* text : {R"([f(a='\x4')])", R"([f(a='\ud800')])", R"([f(a='\U00110000')])",
                           R"([f(a='\u12)", R"([f(a='\)"})
    expect_parts(style, text, ("|" + std::string(text) + "|").c_str());
}

TEST(tools, reads_no_endless_nesting) {
  std::string prints;
  for (int i = 0; i < 200000; ++i) prints += "print(";
  for (const char* begin : {"```python\n", "["}) {
    AnswerReader reader({ToolStyle::fenced});
    const std::string text = reader.push(begin + prints).text;
    EXPECT_TRUE(text + reader.finish().text == begin + prints);
  }
  for (const char* nested : {"[f(a=", "<start_function_call>call:f{a:"}) {
    AnswerReader reader({ToolStyle::fenced});
    EXPECT_TRUE(reader.push(nested + std::string(200000, '[')).calls.empty());
    EXPECT_TRUE(reader.finish().calls.empty());
  }
}

// Each mark of a long broken call is removed in one pass.
TEST(tools, takes_no_long_time_for_a_long_answer) {
  AnswerStyle style{ToolStyle::channels};
  style.form = AnswerForm::channels;
  std::string body;
  for (int i = 0; i < 100000; ++i) body += "a<|message|>";
  AnswerReader reader(style);
  (void)reader.push("<|channel|>commentary to=functions.a<|message|>" + body);
  EXPECT_EQ(reader.finish().text, std::string(100000, 'a'));
}

// Nothing that a model writes is lost, but for marks and for blanks beside them, and pieces of any
// sizes give the same parts.
TEST(tools, keeps_all_of_what_is_no_call) {
  const std::vector<std::string> parts = {"<tool_call>",
                                          "</tool_call>",
                                          "[TOOL_CALLS]",
                                          "```json",
                                          "```python",
                                          "```tool_code",
                                          "```",
                                          "Action: ",
                                          "\n",
                                          " ",
                                          "x",
                                          "<",
                                          "{\"a\": 1}",
                                          "[",
                                          "f(",
                                          "é",
                                          "<|",
                                          "</think>",
                                          "[ARGS]",
                                          "'",
                                          "call:",
                                          "print("};
  std::mt19937 random(2);
  for (const ToolStyle tools : {ToolStyle::tagged, ToolStyle::plain, ToolStyle::listed,
                                ToolStyle::sectioned, ToolStyle::actions, ToolStyle::fenced})
    for (int i = 0; i < 700; ++i) {
      std::string answer = "x";
      for (size_t n = random() % 12; n > 0; --n) answer += parts[random() % parts.size()];
      answer += ".";  // a mark alone is not given back
      const std::string whole = taken_apart({tools}, answer, answer.size());
      EXPECT_EQ(whole, "|" + answer + "|") << static_cast<int>(tools);
      for (const size_t piece : {1u, 2u, 5u})
        EXPECT_EQ(taken_apart({tools}, answer, piece), whole) << static_cast<int>(tools);
    }
}

// All styles and forms, with marks of all of them.
TEST(tools, gives_the_same_parts_in_pieces_of_any_sizes) {
  const std::vector<std::string> parts = {"<think>",
                                          "</think>",
                                          "[THINK]",
                                          "[/THINK]",
                                          "<|START_THINKING|>",
                                          "<|END_THINKING|>",
                                          "<|START_RESPONSE|>",
                                          "<|END_RESPONSE|>",
                                          "<|START_ACTION|>",
                                          "<|END_ACTION|>",
                                          "<|channel|>",
                                          "<|message|>",
                                          "<|end|>",
                                          "<|call|>",
                                          "<|start|>",
                                          "final",
                                          "analysis",
                                          "to=functions.a ",
                                          "<tool_call>",
                                          "</tool_call>",
                                          "[TOOL_CALLS]",
                                          "[ARGS]",
                                          "a",
                                          "```json",
                                          "```",
                                          "a()",
                                          "{\"name\": \"a\"}",
                                          "[{\"tool_name\": \"a\"}]",
                                          "{}",
                                          "\n",
                                          " ",
                                          "x",
                                          "<",
                                          "<start_function_call>",
                                          "<end_function_call>",
                                          "call:a{x:1}",
                                          "<｜tool▁calls▁begin｜>",
                                          "<｜tool▁calls▁end｜>",
                                          "<｜tool▁call▁begin｜>",
                                          "<｜tool▁call▁end｜>",
                                          "<｜tool▁sep｜>",
                                          "<|python_tag|>",
                                          "Action: "};
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    AnswerStyle style;
    style.form = static_cast<AnswerForm>(random() % 4);
    if (const auto tools = random() % 8; tools < 7) style.tools = static_cast<ToolStyle>(tools);
    style.begins_with_thoughts = random() % 4 == 0;
    style.begins_with_text = random() % 8 == 0;
    style.begins_with_call = style.tools && random() % 8 == 0;
    if (random() % 2 == 0) style.tool_names = {"a"};
    std::string answer;
    for (size_t n = random() % 10; n > 0; --n) answer += parts[random() % parts.size()];
    const std::string whole = taken_apart(style, answer, answer.size() + 1);
    for (const size_t piece : {1u, 2u, 7u})
      EXPECT_EQ(taken_apart(style, answer, piece), whole)
          << answer << "\n in style " << (style.tools ? static_cast<int>(*style.tools) : -1)
          << ", form " << static_cast<int>(style.form);
  }
}

TEST(tools, reads_the_newer_calls_and_thoughts_of_mistral) {
  AnswerStyle style{ToolStyle::listed};
  style.form = AnswerForm::bracketed;
  expect_parts(style,
               "[THINK]Well.[/THINK]I look.[TOOL_CALLS]weather[CALL_ID]a1[ARGS]{\"city\": "
               "\"Rome\"}[TOOL_CALLS]time[ARGS]{}",
               "Well.|I look.|weather{\"city\":\"Rome\"}time{}");
  expect_parts(style, "[TOOL_CALLS]time[ARGS]{", "|[TOOL_CALLS]time[ARGS]{|");
  expect_parts(style, "[TOOL_CALLS]time", "|[TOOL_CALLS]time|");
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
