// JSON schemas: texts that another implementation (jsonschema 4.26) accepts and refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <regex>

#include "../../support/peak_memory.h"
#include "json.h"
#include "taper/runtime/extension/llm/grammar.h"
#include "tokens.h"

namespace taper::llm {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using tests::Json;

Grammar schema(std::string_view text) {
  std::string why;
  Result<Grammar> read = Grammar::from_json_schema(text, &why);
  EXPECT_TRUE(read.ok()) << why << " in " << text;
  return std::move(read).value();
}
std::string refusal(std::string_view text) {
  std::string why;
  EXPECT_FALSE(Grammar::from_json_schema(text, &why).ok()) << text.substr(0, 200);
  return why;
}

const TokenTexts& no_tokens() {
  static const TokenTexts none{std::vector<std::string>()};
  return none;
}
bool accepts(GrammarMatcher& matcher, std::string_view text) {
  matcher.reset();
  return matcher.accept(text) && matcher.may_end();
}
bool accepts(std::string_view schema_text, std::string_view text) {
  GrammarMatcher matcher(schema(schema_text), no_tokens());
  return accepts(matcher, text);
}

/// The files of the golden data.
std::vector<Json> schemas(const std::filesystem::path& folder) {
  std::vector<Json> all;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".json") all.push_back(tests::read_json(file.path()));
  }
  return all;
}

TEST(json_schema, accepts_and_refuses_the_texts_of_the_golden_data) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "json_schema");
  const std::vector<Json> all = schemas(folder);
  EXPECT_EQ(all.size(), 24u);
  for (const Json& data : all) {
    SCOPED_TRACE(data["name"].get<std::string>());
    GrammarMatcher matcher(schema(data["schema"].dump()), no_tokens());
    for (const std::string text : data["valid"]) EXPECT_TRUE(accepts(matcher, text)) << text;
    for (const Json& test : data["invalid"]) {
      EXPECT_FALSE(accepts(matcher, test["text"].get<std::string>())) << test;
    }
    for (const std::string text : data["not_json"]) EXPECT_FALSE(accepts(matcher, text)) << text;
  }
}

TEST(json_schema, allows_the_tokens_of_valid_texts_one_by_one) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "json_schema");
  int texts = 0, others = 0;
  for (const Tokenizer& tokenizer : tests::golden_tokenizers()) {
    const TokenTexts tokens(tokenizer);
    for (const Json& data : schemas(folder)) {
      SCOPED_TRACE(data["name"].get<std::string>());
      GrammarMatcher matcher(schema(data["schema"].dump()), tokens);
      for (const std::string text : data["valid"]) {
        if (!tests::can_be_written(tokenizer, text)) continue;
        matcher.reset();
        EXPECT_TRUE(tests::is_written(matcher, tokenizer, text)) << text;
        ++texts;
      }
      for (const Json& test : data["invalid"]) {
        matcher.reset();
        EXPECT_FALSE(tests::is_written(matcher, tokenizer, test["text"])) << test;
        ++others;
      }
    }
  }
  EXPECT_GE(texts, 1000);
  EXPECT_GE(others, 1000);
}

TEST(json_schema, allows_what_it_accepts) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "json_schema");
  const std::vector<std::string> texts = {
      "{",     "}",     "[",       "]",      ",",      ":",    "\"",   "\"a\"", "{\"", "\":",
      "\",\"", "1",     "0",       ".5",     "e2",     "-",    "true", "null",  "\"}", " ",
      "\n",    "\\",    "\\u00e9", "a",      "ab",     "name", "x",    "5\"",   "é",   "\xC3",
      "]}",    "},{\"", "2026-",   "\"US\"", "\"type", "v1",   "AA:",  "12",    "s_",  "card"};
  int compared = 0, differ = 0;
  for (const Json& data : schemas(folder)) {
    SCOPED_TRACE(data["name"].get<std::string>());
    const Grammar grammar = schema(data["schema"].dump());
    GrammarMatcher matcher(grammar, TokenTexts(texts));
    GrammarMatcher probe(grammar, TokenTexts(texts));
    const std::string text = data["valid"].back();
    for (size_t end = 0; end <= text.size(); ++end) {
      matcher.reset();
      ASSERT_TRUE(matcher.accept(text.substr(0, end)));
      const uint64_t allowed = matcher.allowed()[0];
      for (size_t id = 0; id < texts.size(); ++id) {
        probe.reset();
        probe.accept(text.substr(0, end));
        const bool is_allowed = (allowed >> id & 1) != 0, is_accepted = probe.accept(texts[id]);
        EXPECT_TRUE(is_allowed || !is_accepted) << text.substr(0, end) << texts[id];
        differ += is_allowed != is_accepted;
        ++compared;
      }
    }
  }
  EXPECT_GE(compared, 20000);
  EXPECT_LE(differ, 20);  // keys that are there twice, and items that must be unique
}

// Random combinations of all keywords, judged by jsonschema 4.26.
TEST(json_schema, agrees_with_recorded_verdicts) {
  const Json cases = tests::read_json(tests::test_data("json_schema/verdicts.json"));
  EXPECT_EQ(cases.size(), 120u);
  for (const Json& data : cases) {
    SCOPED_TRACE(data["schema"].dump());
    GrammarMatcher matcher(schema(data["schema"].dump()), no_tokens());
    for (const std::string text : data["valid"]) EXPECT_TRUE(accepts(matcher, text)) << text;
    for (const std::string text : data["invalid"]) EXPECT_FALSE(accepts(matcher, text)) << text;
  }
}

TEST(json_schema, refuses_what_can_no_longer_become_right) {
  const std::pair<const char*, std::pair<const char*, const char*>> cases[] = {
      {R"({"type":"object","properties":{"ab":{},"ac":{}},"additionalProperties":false})",
       {"{\"a", "d"}},
      {R"({"type":"object","properties":{"a":{}},"additionalProperties":false})",
       {"{\"a\":1", ","}},
      {R"({"type":"object","properties":{"a":{}},"required":["a"]})", {"{", "}"}},
      {R"({"type":"array","items":{"type":"integer"},"maxItems":2})", {"[1,2", ","}},
      {R"({"prefixItems":[true],"items":false,"type":"array"})", {"[1", ","}},
      {R"({"enum":["red","green"]})", {"\"r", "x"}},
      {R"({"anyOf":[{"const":"ab"},{"const":"cd"}]})", {"\"a", "d"}},
      {R"({"type":"string","maxLength":2})", {"\"é\\u00e9", "x"}},
      {R"({"type":"string","minLength":2})", {"\"é", "\""}},
      {R"({"type":"string","pattern":"^[a-f]+$"})", {"\"abc", "g"}},
      {R"({"type":"integer","minimum":10,"maximum":30})", {"", "4"}},
      {R"({"type":"integer","maximum":30})", {"3", "1"}},
      {R"({"type":"integer"})", {"1.", "5"}},
      {R"({"type":"number","exclusiveMaximum":-1})", {"-", "0"}},
      {R"({"type":"string","format":"ipv4"})", {"\"2", "56"}},
      {R"({"oneOf":[{"properties":{"k":{"const":1}},"required":["k"]},
                    {"properties":{"k":{"const":2}},"required":["k"]}],"type":"object"})",
       {"{\"k\":", "3"}},
  };
  for (const auto& [text, parts] : cases) {
    GrammarMatcher matcher(schema(text), no_tokens());
    EXPECT_TRUE(matcher.accept(parts.first)) << text << " " << parts.first;
    EXPECT_FALSE(matcher.accept(parts.second)) << text << " " << parts.second;
  }
}

/// A model that writes at random: a token of each step is chosen among those that are allowed.
struct Walks {
  int ended = 0, stuck = 0;
  std::string stuck_at;
};

Walks walk_at_random(const Grammar& grammar, const std::vector<std::string>& texts, int count) {
  GrammarMatcher matcher(grammar, TokenTexts(texts));
  std::mt19937 random(1);
  Walks walks;
  for (int i = 0; i < count; ++i) {
    matcher.reset();
    std::string text;
    for (int step = 0; step < 200 && !matcher.is_complete(); ++step) {
      std::vector<TokenId> left;
      const Span<const uint64_t> mask = matcher.allowed();
      for (size_t id = 0; id < texts.size(); ++id)
        if (mask[static_cast<index_t>(id / 64)] >> (id % 64) & 1)
          left.push_back(static_cast<TokenId>(id));
      bool is_taken = false;
      while (!left.empty() && !is_taken) {
        const size_t which = random() % left.size();
        is_taken = matcher.accept(left[which]);
        if (is_taken) text += texts[static_cast<size_t>(left[which])];
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(which));
      }
      if (is_taken) continue;
      if (!matcher.may_end()) ++walks.stuck, walks.stuck_at = text;
      break;
    }
    walks.ended += matcher.may_end();
  }
  return walks;
}

TEST(json_schema, leads_into_no_dead_end) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "json_schema");
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.push_back(std::string(1, static_cast<char>(byte)));
  for (int i = 0; i < 24; ++i) texts.push_back(std::string(1, "\"}],:\\"[i % 6]));  // ends are near
  int ended = 0;
  for (const Json& data : schemas(folder)) {
    const Walks walks = walk_at_random(schema(data["schema"].dump()), texts, 20);
    EXPECT_EQ(walks.stuck, 0) << data["name"] << ": " << walks.stuck_at;
    ended += walks.ended;
  }
  EXPECT_GE(ended, 200);
}

/// What each step allows must be possible to the end: the only ways out are those of the schema.
TEST(json_schema, sees_conflicts_before_they_are_dead_ends) {
  struct Case {
    const char *schema, *begin, *refused, *allowed;
  };
  const Case cases[] = {
      {R"({"properties":{"ab":{}},"additionalProperties":false,"type":"object"})", R"({"\u00)", "7",
       "6"},
      {R"({"type":"string"})", R"("\uD)", "c", "8"},
      {R"({"type":"string"})", R"("\ud83d\u)", "e", "d"},
      {R"({"type":"string","maxLength":1})", R"("a)", "\\", "\""},
      {R"({"type":"string","pattern":"^a+b$","maxLength":3})", "\"aa", "a", "b"},
      {R"({"type":"string","allOf":[{"pattern":"^[ab]c"},{"pattern":"^bc|^ad"}]})", "\"", "a", "b"},
      {R"({"type":"integer","minimum":-3,"maximum":12})", "2e", "2", "0"},
      {R"({"type":"number","multipleOf":0.01})", "0.12", "3", "0"},
      {R"({"type":"number","multipleOf":0.25,"maximum":1})", "0.2", "4", "5"},
      {R"({"type":"object","maxProperties":1,"required":["a"]})", R"({"b)", "\"", "a"},
      {R"({"type":"object","required":["a"],"additionalProperties":false,
           "properties":{"a":{"enum":["x","y"]},"b":{}},
           "if":{"properties":{"a":{"const":"x"}}},"then":{"maxProperties":1}})",
       R"({"b":1,"a":")", "x", "y"},
      {R"({"not":{"const":true},"type":"boolean"})", "", "t", "f"},
      {R"({"type":"array","prefixItems":[false],"minItems":0})", "[", "1", "]"},
  };
  for (const Case& c : cases) {
    GrammarMatcher matcher(schema(c.schema), TokenTexts({c.refused, c.allowed}));
    ASSERT_TRUE(matcher.accept(std::string_view(c.begin))) << c.schema << " " << c.begin;
    EXPECT_EQ(matcher.allowed()[0], 2u) << c.schema << " behind " << c.begin;
  }
}

TEST(json_schema, judges_keywords_that_the_golden_data_lack) {
  // by the rules of draft 2020-12
  const char* dependent =
      R"({"dependentSchemas":{"a":{"required":["b"]}},"propertyNames":{"pattern":"^[a-z]$"}})";
  EXPECT_TRUE(accepts(dependent, R"({"b":1})"));
  EXPECT_TRUE(accepts(dependent, R"({"a":1,"b":1})"));
  EXPECT_FALSE(accepts(dependent, R"({"a":1})"));
  EXPECT_FALSE(accepts(dependent, R"({"ab":1})"));
  EXPECT_TRUE(accepts(R"({"not":{"maxProperties":1}})", R"({"a":1,"b":1})"));
  EXPECT_FALSE(accepts(R"({"if":{"maxProperties":1},"else":false})", R"({"a":1,"b":1})"));
  EXPECT_TRUE(accepts(R"({"not":{"maxItems":1}})", "[1,2]"));
  const char* unique = R"({"uniqueItems":true})";
  EXPECT_TRUE(accepts(unique, R"([1,"1",[1],{"a":1},true])"));
  EXPECT_FALSE(accepts(unique, R"([{"a":1,"b":2},{"b":2.0,"a":1}])"));
  EXPECT_FALSE(accepts(unique, R"([[1],[1.0]])"));
  EXPECT_TRUE(accepts(R"({"not":{"uniqueItems":true}})", "[1,1]"));
  EXPECT_FALSE(accepts(R"({"not":{"uniqueItems":true}})", "[1,2]"));
  EXPECT_FALSE(accepts("{}", R"({"a":1,"a":1})"));
  EXPECT_TRUE(accepts("true", R"( [ 1e5 , -0.0 ] )"));
  EXPECT_FALSE(accepts(R"({"not":{}})", "1"));
  EXPECT_TRUE(accepts(R"({"minContains":0,"contains":{"const":1},"type":"array"})", "[2]"));
  EXPECT_TRUE(accepts(R"({"$defs":{"a/b~c%":{"const":1}},"$ref":"#/$defs/a~1b~0c%25"})", "1"));
  EXPECT_TRUE(accepts(R"({"const":"\ud83d\ude00"})", R"("\ud83D\uDE00")"));
  EXPECT_FALSE(accepts("{}", R"("\ud83d")"));
  GrammarMatcher number(schema("{}"), no_tokens());
  EXPECT_TRUE(number.accept("1") && number.may_end() && !number.is_complete());
  EXPECT_TRUE(number.accept(" ") && number.is_complete());
  EXPECT_FALSE(accepts("{}", R"("\ude00")"));
}

TEST(json_schema, finds_patterns_as_another_engine_does) {
  const char* patterns[] = {"^a", "b$",    "^ab?$",      "a|^b",       "(a|b)+c", "a.c",
                            "^$", "[^ab]", "a{2}|b{3,}", "^(?:a|bc$)", "a*?b",    "\\Bx|^[\\w]c"};
  std::vector<std::string> texts = {""};
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() < 5) {
      for (const char c : {'a', 'b', 'c'}) texts.push_back(texts[i] + c);
    }
  }
  for (const std::string pattern : patterns) {
    const std::string text = Json({{"pattern", pattern}}).dump();
    if (pattern[1] == 'B') {
      EXPECT_THAT(refusal(text), HasSubstr("'\\B' is not supported"));
      continue;
    }
    GrammarMatcher matcher(schema(text), no_tokens());
    const std::regex reference(pattern);
    for (const std::string& t : texts) {
      EXPECT_EQ(accepts(matcher, "\"" + t + "\""), std::regex_search(t, reference))
          << pattern << " in " << t;
    }
  }
}

TEST(json_schema, says_what_is_wrong_and_where) {
  EXPECT_THAT(refusal("{"), StartsWith("the schema is not JSON"));
  EXPECT_EQ(refusal("3"), "#: a schema must be an object, true or false");
  EXPECT_EQ(refusal(R"({"properties":{"a/b":{"type":"text"}}})"),
            "#/properties/a~1b/type: there is no type \"text\"");
  EXPECT_EQ(refusal(R"({"items":{"minLength":-1}})"),
            "#/items/minLength: it must be a whole number, not below 0");
  EXPECT_EQ(refusal(R"({"$ref":"#/$defs/none"})"), "#/$ref: there is no \"#/$defs/none\"");
  EXPECT_THAT(refusal(R"({"$ref":"https://example.com/a"})"),
              StartsWith("#/$ref: only references inside"));
  EXPECT_EQ(refusal(R"({"unevaluatedProperties":false})"),
            "#/unevaluatedProperties: this keyword is not supported");
  EXPECT_EQ(refusal(R"x({"pattern":"(?=a)"})x"),
            "#/pattern: the pattern \"(?=a)\": groups that look around are not supported");
  EXPECT_THAT(refusal(R"x({"pattern":"("})x"), HasSubstr("')' is missing"));
  EXPECT_EQ(refusal(R"({"multipleOf":0})"), "#/multipleOf: it must be above 0");
}

TEST(json_schema, refuses_what_would_take_too_much_memory_or_time) {
  EXPECT_EQ(refusal(R"({"$ref":"#"})"), "#: the schema refers to itself for the same value");
  EXPECT_THAT(refusal(R"({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},true]},
                                   "b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"})"),
              HasSubstr("refers to itself"));
  std::string nested;
  nested.reserve(size_t{64} << 20);
  for (int i = 0; i < (64 << 20) / 9; ++i) nested += "{\"items\":";
  const size_t before = tests::peak_memory();
  EXPECT_THAT(refusal(nested), HasSubstr("4194304 are the most"));
  EXPECT_THAT(refusal(nested.substr(0, 1 << 20)), HasSubstr("256 values one inside"));
  EXPECT_THAT(refusal(std::string(4 << 20, '[')), HasSubstr("256 values one inside"));
  EXPECT_LT(tests::peak_memory() - before, size_t{32} << 20);
  Json doubled;
  for (int i = 0; i < 40; ++i) {
    const Json next = {{"$ref", "#/$defs/" + std::to_string(i + 1)}};
    doubled["$defs"][std::to_string(i)] = {{"allOf", {next, next}}};
  }
  doubled["$defs"]["40"] = true;
  doubled["$ref"] = "#/$defs/0";
  EXPECT_THAT(refusal(doubled.dump()), HasSubstr("more than 1000 schemas apply to one value"));
  Json chain;
  for (int i = 0; i < 20000; ++i) {
    chain["$defs"][std::to_string(i)]["items"]["$ref"] = "#/$defs/" + std::to_string(i + 1);
  }
  chain["$defs"]["20000"] = true;
  chain["$ref"] = "#/$defs/0";
  EXPECT_TRUE(accepts(chain.dump(), "[[[1]]]"));
  EXPECT_FALSE(accepts("{}", std::string(100000, '[')));
  EXPECT_FALSE(accepts("{}", std::string(100000, ' ')));
}

TEST(json_schema, finds_a_mask_of_a_large_vocabulary_in_microseconds) {
  const std::string text = R"({"type": "object", "additionalProperties": false, "properties": {
      "name": {"type": "string"}, "short": {"type": "string", "maxLength": 40}, "age": {"type": "integer"},
      "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
      "next": {"$ref": "#"}}})";
  GrammarMatcher matcher(schema(text), TokenTexts(tests::large_vocabulary(128 * 1024)));
  const char* const texts[] = {
      R"({"name": "some words", "tags": ["red", "blue"], "short": "abc def", "age": 12})",
      R"({"age": 7, "name": "other \n things", "next": {"short": "a", "name": "b", "age": 1234}})",
      R"({"short": "xyz", "tags": [], "next": {"tags": ["green"], "next": {"name": "c"}}})"};
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int round = 0; round < 2; ++round) {
    times.clear();
    for (const char* const one : texts) {
      matcher.reset();
      for (const char* c = one; *c != '\0'; ++c) {
        const auto start = Clock::now();
        static_cast<void>(matcher.allowed());
        ASSERT_TRUE(matcher.accept(std::string_view(c, 1))) << c;
        times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
      ASSERT_TRUE(matcher.may_end());
    }
    if (round == 0) {
      std::sort(times.begin(), times.end());
      RecordProperty("first_time_median_us", std::to_string(times[times.size() / 2] * 1e6));
      RecordProperty("first_time_slowest_us", std::to_string(times.back() * 1e6));
    }
  }
  std::sort(times.begin(), times.end());
  RecordProperty("median_us", std::to_string(times[times.size() / 2] * 1e6));
  RecordProperty("slowest_us", std::to_string(times.back() * 1e6));
  EXPECT_LT(times[times.size() / 2], 50e-6);
}

}  // namespace
}  // namespace taper::llm
