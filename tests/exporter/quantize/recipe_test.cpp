#include "taper/exporter/quantize/recipe.h"

#include <gmock/gmock.h>

#include <fstream>
#include <random>

#include "taper/exporter/base/error.h"
#include "taper/exporter/quantize/static_recipe.h"
#include "taper/tests/support/data.h"

namespace taper::quantize {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string refusal(const std::string& text) {
  try {
    parse_recipe(text, "my.json");
  } catch (const ExportError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(recipe, has_rules_in_order) {
  const Recipe r = parse_recipe(
      R"([{"match": "embedding", "scheme": "int8"},
          {"match": "*.down", "scheme": {"weights": ["q4_k", "q5_1"], "method": "hqq",
                                         "activations": "float"}},
          {"match": "head", "scheme": {"weights": "int8-channel", "activations": "int8-static"}},
          {"match": "*", "scheme": "float"}])",
      "my.json");
  ASSERT_EQ(r.rules.size(), 4u);
  EXPECT_EQ(r.rules[0].match, "embedding");
  EXPECT_THAT(r.rules[0].scheme.layouts, ElementsAre(Layout::q8_0));
  EXPECT_EQ(r.rules[0].scheme.method, Method::best);
  EXPECT_THAT(r.rules[1].scheme.layouts, ElementsAre(Layout::q4_k, Layout::q5_1));
  EXPECT_EQ(r.rules[1].scheme.method, Method::hqq);
  EXPECT_EQ(r.rules[1].scheme.activations, Activations::floats);
  EXPECT_EQ(r.rules[2].scheme.weights, Scheme::Weights::int8_channel);
  EXPECT_EQ(r.rules[2].scheme.activations, Activations::int8_static);
  EXPECT_EQ(r.rules[3].scheme.weights, Scheme::Weights::floats);
}

TEST(recipe, has_formats_of_floats) {
  const Recipe r = parse_recipe(
      R"([{"match": "a", "scheme": {"weights": ["mxfp6_e2m3", "mxfp6_e3m2", "nf4"]}},
          {"match": "b", "scheme": "mxfp8_e4m3"},
          {"match": "*", "scheme": {"weights": "mxfp4", "activations": "int8-dynamic"}}])",
      "my.json");
  EXPECT_THAT(r.rules[0].scheme.layouts,
              ElementsAre(Layout::mxfp6_e2m3, Layout::mxfp6_e3m2, Layout::nf4));
  EXPECT_THAT(r.rules[1].scheme.layouts, ElementsAre(Layout::mxfp8_e4m3));
  EXPECT_THAT(r.rules[2].scheme.layouts, ElementsAre(Layout::mxfp4));
}

TEST(recipe, says_how_a_model_is_prepared) {
  const Scheme blocks =
      parse_recipe(R"([{"match": "*", "scheme": {"weights": "int4", "awq": true}}])", "my.json")
          .rules[0]
          .scheme;
  EXPECT_TRUE(blocks.awq);
  EXPECT_FALSE(blocks.sequential);
  const auto integers = static_recipe(parse_recipe(
      R"([{"match": "*", "scheme": {"weights": "int8-channel", "activations": "int8-static",
                                    "equalize": true, "smooth": 0.25, "weight-bits": 4}}])",
      "my.json"));
  ASSERT_TRUE(integers);
  EXPECT_TRUE(integers->equalize);
  EXPECT_EQ(integers->smooth, 0.25);
  EXPECT_EQ(integers->options.weight_bits, 4);
  const auto of_static = [](const std::string& more) {
    return refusal(R"([{"match": "*", "scheme": {"weights": "int8-channel",
                        "activations": "int8-static", )" +
                   more + "}}]");
  };
  EXPECT_THAT(of_static("\"smooth\": 2"), HasSubstr("\"smooth\" must be a number in 0..1"));
  EXPECT_THAT(of_static("\"weight-bits\": 1"), HasSubstr("\"weight-bits\" must be 2 to 8"));
  EXPECT_THAT(of_static("\"equalize\": 1"), HasSubstr("\"equalize\" must be true or false"));
  EXPECT_THAT(of_static("\"awq\": true"), HasSubstr("\"awq\" is for weights in blocks"));
  EXPECT_THAT(of_static("\"sequential\": true"),
              HasSubstr("\"sequential\" is for weights in blocks"));
  EXPECT_THAT(refusal(R"([{"match": "*", "scheme": {"weights": "int4", "smooth": 0.5}}])"),
              HasSubstr("\"smooth\" is for int8-static activations"));
}

TEST(recipe, names_the_rule_and_the_key_that_are_wrong) {
  EXPECT_THAT(refusal("[{"), HasSubstr("my.json: it is no JSON"));
  EXPECT_THAT(refusal("{}"), HasSubstr("a recipe is a list of rules in brackets"));
  EXPECT_THAT(refusal("[]"), HasSubstr("the recipe has no rules"));
  EXPECT_THAT(refusal("[1]"), HasSubstr("rule 1: a rule must be an object in braces"));
  EXPECT_THAT(refusal(R"([{"match": "*", "scheme": "int4"}, {"mach": "*", "scheme": "int4"}])"),
              HasSubstr("rule 2: unknown key \"mach\"; a rule has match, scheme"));
  EXPECT_THAT(refusal(R"([{"match": "*"}])"), HasSubstr("the key \"scheme\" is missing"));
  EXPECT_THAT(refusal(R"([{"match": 3, "scheme": "int4"}])"),
              HasSubstr("\"match\" must be a text"));
  EXPECT_THAT(
      refusal(R"([{"match": "*", "scheme": "int7"}])"),
      HasSubstr("unknown scheme \"int7\"; weights can be float, f8_e4m3fn, int8-channel, int8, "
                "int4, int3, int2, q4_0"));
  EXPECT_THAT(refusal(R"([{"match": "*", "scheme": {"weights": "int4", "group": 64}}])"),
              HasSubstr("unknown key \"group\"; a scheme has weights, method, activations"));
  EXPECT_THAT(refusal(R"([{"match": "*", "scheme": {"weights": "int4", "method": "magic"}}])"),
              HasSubstr("\"method\" is \"magic\"; it can be best, nearest, mse, hqq, gptq"));
  EXPECT_THAT(refusal(R"([{"match": "*", "scheme": {"weights": "q4_0", "method": "hqq"}}])"),
              HasSubstr("hqq needs a format with offsets, and q4_0 has none"));
  EXPECT_THAT(
      refusal(R"([{"match": "*", "scheme": {"weights": "nf4", "activations": "int8-dynamic"}}])"),
      HasSubstr("int8-dynamic activations are multiplied with integers, and nf4 has none"));
  EXPECT_THAT(refusal(R"([{"match": "*", "scheme": {"method": "mse"}}])"),
              HasSubstr("the scheme has no \"weights\""));
  EXPECT_THAT(refusal(R"([{"match": "*", "scheme": {"weights": []}}])"), HasSubstr("empty list"));
  EXPECT_THAT(refusal(R"([{"match": "*", "scheme": {"weights": ["q4_0", "float"]}}])"),
              HasSubstr("a list of \"weights\" has formats of blocks only"));
  EXPECT_THAT(
      refusal(R"([{"match": "*", "scheme": {"weights": "int4", "activations": "int8-static"}}])"),
      HasSubstr("int8-static activations need int8-channel weights"));
}

TEST(recipe, survives_damage) {
  const std::string good =
      R"([{"match": "*.down", "scheme": {"weights": ["q4_k", "q5_1"], "method": "hqq"}}])";
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    std::string text = good;
    for (int n = 0; n < 1 + i % 3; ++n) {
      const size_t at = random() % text.size();
      const auto byte = static_cast<char>(random() % 256);
      if (i % 2 == 0)
        text[at] = byte;
      else
        text.erase(at, 1 + random() % 8);
    }
    try {
      parse_recipe(text, "damaged");
    } catch (const ExportError& e) {
      ++refused;
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(recipe, ships_by_name_or_lies_in_a_file) {
  for (const std::string& name : recipe_names()) {
    EXPECT_TRUE(find_recipe(name).is_shipped) << name;
    EXPECT_FALSE(find_recipe(name).rules.empty()) << name;
  }
  const std::string file = tests::scratch_file("mine.json").string();
  std::ofstream(file) << R"([{"match": "*", "scheme": "q5_0"}])";
  EXPECT_EQ(find_recipe(file).rules.size(), 1u);
  try {
    find_recipe("int3");
    FAIL();
  } catch (const ExportError& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("there is no recipe int3: it is no file, and none of "
                          "int8, int8-weights, int8-dynamic, fp8, int4-g32, int3-g32, int2-g32, "
                          "8da4w, mixed"));
  }
}

TEST(recipe, compares_patterns) {
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*.down_proj*", "layers.3.down_proj.weight"));
  EXPECT_TRUE(matches("layers.?.q", "layers.3.q"));
  EXPECT_TRUE(matches("a*b*c", "a.b.b.c"));
  EXPECT_FALSE(matches("layers.?.q", "layers.13.q"));
  EXPECT_FALSE(matches("*.down", "layers.3.down_proj"));
  EXPECT_FALSE(matches("", "a"));
}

}  // namespace
}  // namespace taper::quantize
