#include "taper/runtime/extension/llm/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <regex>

#include "../../support/data.h"
#include "../../support/peak_memory.h"
#include "json.h"
#include "tokens.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Grammar grammar(std::string_view text) {
  std::string why;
  Result<Grammar> read = Grammar::from_gbnf(text, &why);
  EXPECT_TRUE(read.ok()) << why << " in " << text;
  return std::move(read).value();
}
std::string refusal(std::string_view text) {
  std::string why;
  EXPECT_FALSE(Grammar::from_gbnf(text, &why).ok()) << text;
  return why;
}

constexpr char json_rules[] = R"gbnf(
root    ::= blank value
value   ::= (object | array | string | number | "true" | "false" | "null") blank
object  ::= "{" blank (member ("," blank member)*)? "}"
member  ::= string blank ":" blank value
array   ::= "[" blank (value ("," blank value)*)? "]"
string  ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number  ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
blank   ::= [ \t\n\r]*    # also behind the text
)gbnf";

TEST(gbnf, describes_the_same_texts_as_a_regular_expression) {
  const std::pair<const char*, const char*> pairs[] = {
      {R"(root ::= "a"* ("b" | "c" "a")+ "c"?)", "a*(b|ca)+c?"},
      {R"(root ::= [ab]{2,3} [^a]{1,} | "c"{2})", "[ab]{2,3}[bc]{1,}|c{2}"},
      {R"(root ::= x{0,2} y | "" 
          x ::= "a" | "ab"
          y ::= "b"? "c")",
       "(a|ab){0,2}b?c|"},
      {R"(root ::= (("a"?)* "b" )* )", "((a?)*b)*"},
      {R"(root ::= x y x
          x ::= "a" x | ""
          y ::= ("b" | x "c"){1,2})",
       "a*(b|a*c){1,2}a*"},
  };
  const TokenTexts none{std::vector<std::string>()};
  for (const auto& [rules, pattern] : pairs) {
    GrammarMatcher matcher(grammar(rules), none);
    const std::regex reference(pattern);
    std::vector<std::string> texts = {""};
    for (size_t i = 0; i < texts.size(); ++i) {
      if (texts[i].size() < 7) {
        for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
      }
      matcher.reset();
      EXPECT_EQ(matcher.accept(texts[i]) && matcher.may_end(),
                std::regex_match(texts[i], reference))
          << texts[i] << " by " << rules;
    }
  }
}

TEST(gbnf, follows_rules_inside_of_themselves) {
  GrammarMatcher matcher(grammar(R"gbnf(root ::= "(" root ")" root | "[" root "]" root | "")gbnf"),
                         TokenTexts(std::vector<std::string>()));
  EXPECT_TRUE(matcher.accept("([()[]])[") && !matcher.may_end());
  EXPECT_FALSE(matcher.accept(")"));
  EXPECT_TRUE(matcher.accept("]") && matcher.may_end());
  matcher.reset();
  EXPECT_TRUE(matcher.accept(std::string(900, '(')));
  EXPECT_TRUE(matcher.accept(std::string(900, ')')) && matcher.may_end());
}

TEST(gbnf, keeps_many_readings_small) {
  // 2 ^ 500 stacks
  GrammarMatcher matcher(grammar(R"(root ::= "a" root "b" | "a" root "c" | "")"),
                         TokenTexts(std::vector<std::string>()));
  EXPECT_TRUE(matcher.accept(std::string(500, 'a')));
  EXPECT_TRUE(matcher.accept(std::string(499, 'c')) && !matcher.may_end());
  EXPECT_TRUE(matcher.accept("b") && matcher.may_end());
  EXPECT_FALSE(matcher.accept("b"));
}

TEST(gbnf, knows_every_character_of_unicode) {
  const TokenTexts none{std::vector<std::string>()};
  GrammarMatcher greek(grammar(R"(root ::= [α-ωé\U0001F600-\U0001F64F]+)"), none);
  EXPECT_FALSE(greek.accept("λόγος"));  // ό lies outside of the range
  greek.reset();
  EXPECT_TRUE(greek.accept("λογοσé😀🙏") && greek.may_end());
  for (const char* other : {"a", "Α", "ϊ", "🙐", "😀\x80"}) {
    greek.reset();
    EXPECT_FALSE(greek.accept(other)) << other;
  }
  GrammarMatcher others(grammar("root ::= [^a-z]{2}"), none);
  for (const char* text : {"é€", "\x7f\xF0\x9F\x98\x80", "A\n"}) {
    others.reset();
    EXPECT_TRUE(others.accept(text) && others.may_end()) << text;
  }
  others.reset();
  EXPECT_FALSE(others.accept("\xED\xA0\x80"));  // a surrogate
  others.reset();
  EXPECT_FALSE(others.accept("\xC0\x80"));  // longer than needed
}

TEST(gbnf, reads_the_notation) {
  const TokenTexts none{std::vector<std::string>()};
  GrammarMatcher matcher(grammar("# first\n\nroot ::= # the start\n  one-2 \"\\x41\\u00e9\\\"\" |\n"
                                 "  ( \"b\"\n\n | [\\]\\-] )\r\none-2::=\"x\"\n# last"),
                         none);
  for (const char* text : {"xA\xC3\xA9\"", "b", "]", "-"}) {
    matcher.reset();
    EXPECT_TRUE(matcher.accept(text) && matcher.may_end()) << text;
  }
}

TEST(gbnf, says_in_which_line_something_is_wrong) {
  EXPECT_EQ(refusal(""), "line 1: there is no rule 'root', where texts begin");
  EXPECT_EQ(refusal("root ::= \"a\" b\n"), "line 1: there is no rule 'b'");
  EXPECT_EQ(refusal("root ::= \"a\"\nroot ::= \"b\""), "line 2: the rule 'root' is there twice");
  EXPECT_EQ(refusal("root ::= \"a\n"), "line 1: a literal does not end: '\"' is missing");
  EXPECT_EQ(refusal("root ::= [a"), "line 1: a class does not end: ']' is missing");
  EXPECT_EQ(refusal("root ::= [b-a]"), "line 1: a range of characters ends before it begins");
  EXPECT_EQ(refusal("\n\nroot ::= (\"a\"\n"), "line 4: ')' should be here, but the text ends");
  EXPECT_EQ(refusal("root ::= \"a\" )"), "line 1: the rule should end here, but there is ')'");
  EXPECT_EQ(refusal("root = \"a\""), "line 1: '::=' should be here, but there is '='");
  EXPECT_EQ(refusal("root ::= \"\\q\""), "line 1: behind a backslash there is 'q'");
  EXPECT_EQ(refusal("root ::= \"\\ud800\""), "line 1: an escape names no character of Unicode");
  EXPECT_EQ(refusal("root ::= \"a\"{3,2}"), "line 1: a repetition ends before it begins");
  EXPECT_EQ(refusal("root ::= \"\xFF\""), "line 1: the bytes are not UTF-8");
}

TEST(gbnf, refuses_rules_that_lead_nowhere) {
  EXPECT_EQ(refusal("root ::= x\nx ::= x"),
            "line 2: the rule 'x' begins with itself; let it begin with something else");
  EXPECT_THAT(refusal("root ::= root \"a\" | \"b\""), HasSubstr("'root' begins with itself"));
  EXPECT_THAT(refusal("root ::= a\na ::= (b | \"x\")* c\nb ::= \"y\"\nc ::= b? a"),
              HasSubstr("begins with itself"));
  EXPECT_EQ(refusal("root ::= \"a\" | x\nx ::= \"(\" x \")\""),
            "line 2: the rule 'x' never comes to an end");
  EXPECT_EQ(refusal("root ::= []"), "line 1: the rule 'root' never comes to an end");
}

TEST(gbnf, refuses_what_would_take_too_much_memory_or_time) {
  const std::string long_text = "root ::= \"" + std::string(64 << 20, 'a') + "\"";
  const size_t before = tests::peak_memory();
  EXPECT_THAT(refusal("root ::= \"a\"{1000001}"), StartsWith("line 1: a repetition of more than"));
  EXPECT_THAT(refusal("root ::= ((\"a\"{1000}){1000}){1000}"), HasSubstr("parts when all"));
  EXPECT_THAT(refusal("root ::= ((\"\"{1000000}){1000000}){1000000}"),
              HasSubstr("repetitions are too many"));
  EXPECT_THAT(refusal("root ::= " + std::string(100000, '(')), HasSubstr("groups are one inside"));
  EXPECT_THAT(refusal(long_text), StartsWith("the grammar has 67108875 bytes"));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 50000; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " \"a\"?\n";
  }
  EXPECT_THAT(refusal(chain + "r50000 ::= r0"), HasSubstr("begins with itself"));
  EXPECT_LT(tests::peak_memory() - before, size_t{512} << 20);
}

TEST(gbnf, accepts_json_and_nothing_else_through_the_tokens_of_many_tokenizers) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "json_schema");
  const std::vector<Tokenizer> tokenizers = tests::golden_tokenizers();
  const Grammar json = grammar(json_rules);
  int texts = 0, others = 0;
  for (const Tokenizer& tokenizer : tokenizers) {
    GrammarMatcher matcher(json, TokenTexts(tokenizer));
    for (const auto& file : std::filesystem::directory_iterator(folder)) {
      if (file.path().extension() != ".json") continue;
      const tests::Json data = tests::read_json(file.path());
      for (const std::string text : data["valid"]) {
        if (!tests::can_be_written(tokenizer, text)) continue;
        matcher.reset();
        EXPECT_TRUE(tests::is_written(matcher, tokenizer, text)) << text;
        ++texts;
      }
      for (const std::string text : data["not_json"]) {
        matcher.reset();
        EXPECT_FALSE(matcher.accept(text) && matcher.may_end()) << text;
        ++others;
      }
    }
  }
  EXPECT_GE(texts, 1000);
  EXPECT_GE(others, 800);
}

TEST(grammar_matcher, allows_the_tokens_that_can_be_accepted) {
  const std::vector<std::string> texts = {"",    "{",  "{\"", "\"a", "\":",  "1",    ",",
                                          "}",   "}}", "]]",  "é",   "\xC3", "\xA9", "a\"}",
                                          "tru", "e",  "[",   "1",   " ",    "-"};
  GrammarMatcher matcher(grammar(json_rules), TokenTexts(texts));
  for (const char* before : {"", "{", "{\"", "[[", "[[1", "{\"a\":t", "\"\xC3", "[{\"a\":[", "-"}) {
    for (size_t id = 0; id < texts.size(); ++id) {
      matcher.reset();
      ASSERT_TRUE(matcher.accept(before)) << before;
      const bool is_allowed = (matcher.allowed()[0] >> id & 1) != 0;
      EXPECT_EQ(is_allowed, matcher.accept(static_cast<TokenId>(id))) << before << texts[id];
    }
  }
  EXPECT_FALSE(matcher.accept(-1));
  EXPECT_FALSE(matcher.accept(static_cast<TokenId>(texts.size())));
}

TEST(grammar_matcher, ends_a_text_only_where_the_grammar_does) {
  // 0 "y", 1 "yes", 2 "es", 3 the end
  GrammarMatcher matcher(grammar(R"(root ::= "yes")"),
                         TokenTexts(std::vector<std::string>{"y", "yes", "es", ""}));
  SamplingOptions greedy;
  greedy.temperature = 0;
  Sampler sampler(greedy);
  const std::vector<TokenId> ends = {3};
  std::vector<float> logits = {2, 1, 3, 9};
  EXPECT_EQ(matcher.sample(sampler, logits, {}, ends), 0);
  EXPECT_FALSE(matcher.is_complete());
  logits = {2, 1, 3, 9};
  EXPECT_EQ(matcher.sample(sampler, logits, {}, ends), 2);
  EXPECT_TRUE(matcher.is_complete());
  logits = {2, 1, 3, -9};
  EXPECT_EQ(matcher.sample(sampler, logits, {}, ends), 3);
  logits = {2, 1, 3, 9};
  EXPECT_EQ(matcher.sample(sampler, logits, {}, {}), -1);
}

TEST(grammar_matcher, finds_a_mask_of_a_large_vocabulary_in_microseconds) {
  const std::vector<std::string> texts = tests::large_vocabulary(128 * 1024);
  GrammarMatcher matcher(grammar(json_rules), TokenTexts(texts));
  const std::string text =
      R"({"name": "Ada", "list": [1, 2.5, {"a": null}], "text": "some words \n and more"})";
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;  // of each mask in the last round
  for (int round = 0; round < 3; ++round) {
    matcher.reset();
    times.clear();
    for (const char c : text) {
      const auto start = Clock::now();
      static_cast<void>(matcher.allowed());
      ASSERT_TRUE(matcher.accept(std::string_view(&c, 1)));
      times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2], slowest = times.back();
  RecordProperty("median_us", std::to_string(median * 1e6));
  RecordProperty("slowest_us", std::to_string(slowest * 1e6));
  EXPECT_LT(median, 50e-6);
  // other programs may run beside the test
  EXPECT_LT(slowest, 5e-3);
}

}  // namespace
}  // namespace taper::llm
