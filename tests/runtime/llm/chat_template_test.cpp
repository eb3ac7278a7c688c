// All cases of chat_templates: what transformers and Jinja2 make of the same templates.
#include "taper/runtime/extension/llm/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../support/data.h"
#include "json.h"

namespace taper::llm {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;

Json read(const std::filesystem::path& path) { return Json::parse(tests::read_text(path)); }

std::tm fixed_time() {
  std::tm time{};
  time.tm_year = 126;
  time.tm_mon = 1;
  time.tm_mday = 3;
  time.tm_hour = 14;
  time.tm_min = 5;
  time.tm_sec = 6;
  time.tm_wday = 2;
  time.tm_yday = 33;
  return time;
}

std::optional<std::string> token(const Json& file, const char* name) {
  if (!file.contains(name) || file[name].is_null()) return std::nullopt;
  return file[name].get<std::string>();
}

std::string take(Json& kwargs, const char* name) {
  const std::string text = kwargs.contains(name) ? kwargs[name].dump() : "";
  kwargs.erase(name);
  return text;
}

ChatInput input_of(const Json& file, const Json& test) {
  ChatInput input;
  Json kwargs = test.value("kwargs", Json::object());
  input.messages = test["messages"].dump();
  if (test.contains("tools") && !test["tools"].is_null()) input.tools = test["tools"].dump();
  input.documents = take(kwargs, "documents");
  input.add_generation_prompt = take(kwargs, "add_generation_prompt") == "true";
  input.continue_final_message = take(kwargs, "continue_final_message") == "true";
  input.bos_token = token(file, "bos_token");
  input.eos_token = token(file, "eos_token");
  input.variables = kwargs.dump();
  input.now = fixed_time();
  return input;
}

// The text that a template gave to raise_exception.
std::string raised(const std::string& error) {
  const std::string kind = "TemplateError: ";
  return error.compare(0, kind.size(), kind) == 0 ? error.substr(kind.size()) : "";
}

void expect_case(const std::string& source, const ChatInput& input, const Json& test) {
  std::string why;
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, &why);
  if (!chat.ok()) {
    EXPECT_TRUE(test.contains("error")) << why;
    return;
  }
  const Result<std::string> text = chat.value().render(input, &why);
  if (test.contains("error")) {
    EXPECT_FALSE(text.ok()) << (text.ok() ? text.value() : "");
    EXPECT_THAT(why, HasSubstr(raised(test["error"])));
  } else {
    ASSERT_TRUE(text.ok()) << why;
    EXPECT_EQ(text.value(), test["expected"].get<std::string>());
  }
}

TEST(chat_template, renders_conversations_as_transformers_does) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "chat_templates");
  size_t compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json" || entry.path().stem() == "jinja_features") continue;
    const Json file = read(entry.path());
    for (const Json& test : file["cases"]) {
      SCOPED_TRACE(entry.path().stem().string() + " " + test["id"].get<std::string>());
      expect_case(file["template"], input_of(file, test), test);
      ++compared;
    }
  }
  EXPECT_GT(compared, 400u);
}

TEST(chat_template, has_the_features_of_jinja) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "chat_templates");
  const Json file = read(folder / "jinja_features.json");
  Json context = file["context"];
  ChatInput input;
  input.messages = context["messages"].dump();
  input.tools = context["tools"].dump();
  input.variables = context.dump();
  input.add_generation_prompt = true;
  input.now = fixed_time();
  for (const Json& test : file["cases"]) {
    SCOPED_TRACE(test["id"].get<std::string>() + " " + test["template"].get<std::string>());
    expect_case(test["template"], input, test);
  }
}

std::string why_not(const std::string& source) {
  std::string why;
  const Result<ChatTemplate> chat = ChatTemplate::parse(source, &why);
  if (!chat.ok()) return why;
  ChatInput input;
  input.messages = messages_json({{"user", "Hello"}});
  EXPECT_FALSE(chat.value().render(input, &why).ok()) << source;
  return why;
}

TEST(chat_template, names_the_line_of_an_error) {
  EXPECT_EQ(why_not("a\n{% if x %}\n"), "line 2: the block 'if' does not end");
  EXPECT_EQ(why_not("a\n\n{{ 1 + }}"), "line 3: an expression is missing before ''");
  EXPECT_EQ(why_not("a\n{{ x.y }}"), "line 2: 'x' is undefined");
  EXPECT_EQ(why_not("{% for m in messages %}\n{{ m.role + 1 }}\n{% endfor %}"),
            "line 2: can only concatenate str (not \"int\") to str");
  EXPECT_EQ(why_not("{{ 'a' | nothing }}"), "line 1: No filter named 'nothing'.");
  EXPECT_EQ(why_not("{% unknown %}"), "line 1: there is no tag 'unknown'");
}

TEST(chat_template, ends_what_would_run_for_ever) {
  EXPECT_THAT(why_not("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("calls are nested deeper than 100"));
  EXPECT_THAT(
      why_not("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"),
      HasSubstr("the template takes more than 5000000 steps"));
  EXPECT_THAT(why_not("{{ range(1000000) }}"), HasSubstr("a range has more than 100000 numbers"));
  EXPECT_THAT(why_not("{{ 'x' * 100000000 }}"), HasSubstr("a repetition becomes too long"));
  EXPECT_THAT(why_not("{% set n = namespace(x=[]) %}{% for i in range(1000) %}"
                      "{% set n.x = [n.x] %}{% endfor %}"),
              HasSubstr("values are nested deeper than 200"));
  EXPECT_THAT(why_not("{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}"),
              HasSubstr("nested deeper than 200"));
  std::string sum = "1", filters = "1";
  for (int i = 0; i < 100000; ++i) {
    sum += "+1";
    filters += "|abs";
  }
  EXPECT_THAT(why_not("{{ " + sum + " }}"), HasSubstr("an expression has more than 1000 parts"));
  EXPECT_THAT(why_not("{{ " + filters + " }}"),
              HasSubstr("an expression has more than 1000 parts"));
  std::string nots;
  for (int i = 0; i < 150; ++i) nots += "not ";
  EXPECT_THAT(why_not("{% macro m() %}{{ " + nots + "m() }}{% endmacro %}{{ m() }}"),
              HasSubstr("blocks and expressions are nested deeper than 1000"));
  EXPECT_THAT(why_not("{{ 9223372036854775807 + 1 }}"), HasSubstr("an integer becomes too large"));
}

TEST(chat_template, lets_a_namespace_hold_itself) {
  std::string why;
  const Result<ChatTemplate> chat =
      ChatTemplate::parse("{% set n = namespace() %}{% set n.me = [n] %}{{ n == n }}", &why);
  ASSERT_TRUE(chat.ok()) << why;
  ChatInput input;
  input.messages = messages_json({{"user", "Hello"}});
  EXPECT_EQ(chat.value().render(input).value(), "True");
}

TEST(chat_template, ends_a_caller_with_its_block) {
  EXPECT_THAT(
      why_not("{% set ns = namespace() %}{% macro m() %}{% set ns.f = caller %}{% endmacro %}"
              "{% for i in [1] %}{% call m() %}{{ i }}{% endcall %}{% endfor %}{{ ns.f() }}"),
      HasSubstr("caller() is called behind the end of its block"));
}

// Each level has the one before it twice: 2^60 elements.
TEST(chat_template, neither_writes_nor_compares_lists_that_double) {
  const std::string doubles =
      "{% set ns = namespace() %}{% set ns.x = [1] %}{% set ns.y = [1] %}"
      "{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}"
      "{% endfor %}";
  EXPECT_THAT(why_not(doubles + "{{ ns.x }}"), HasSubstr("becomes too long"));
  EXPECT_THAT(why_not(doubles + "{{ ns.x | tojson }}"), HasSubstr("becomes too long"));
  EXPECT_THAT(why_not(doubles + "{{ ns.x == ns.y }}"), HasSubstr("too large to be compared"));
}

TEST(chat_template, refuses_input_that_is_not_a_conversation) {
  const Result<ChatTemplate> chat = ChatTemplate::parse("x");
  std::string why;
  ChatInput input;
  for (const auto& [messages, reason] :
       std::vector<std::pair<std::string, std::string>>{{"", "messages is not JSON"},
                                                        {"{}", "messages is not a list"},
                                                        {"[]", "there are no messages"},
                                                        {"[1]", "a message is not an object"}}) {
    input.messages = messages;
    EXPECT_FALSE(chat.value().render(input, &why).ok());
    EXPECT_EQ(why, reason);
  }
}

}  // namespace
}  // namespace taper::llm
