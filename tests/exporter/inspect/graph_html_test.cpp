#include "taper/exporter/inspect/graph_html.h"

#include <gmock/gmock.h>

#include <sstream>

#include "taper/tests/support/page.h"

namespace taper::inspect {
namespace {

using testing::HasSubstr;
using testing::Not;
using tests::count;
using tests::data_of;

std::string page_of(const std::string& title, const std::vector<MethodGraph>& graphs) {
  std::ostringstream out;
  write_html(out, title, graphs);
  return out.str();
}

/// A graph whose every name is `name`.
MethodGraph named(const std::string& name) {
  using Kind = GraphNode::Kind;
  return {name,
          {{Kind::input, name, {name}, {}, "", ""},
           {Kind::instruction, name, {name}, {name}, name, name},
           {Kind::instruction, name, {name}, {name}, name, name},
           {Kind::output, name, {name}, {}, "", ""}},
          {{0, 1, {name}}, {1, 2, {name}}, {2, 3, {name}}}};
}

TEST(graph_html, holds_the_graphs_in_an_order_in_which_edges_lead_forward) {
  using Kind = GraphNode::Kind;
  const MethodGraph graph{
      "forward",
      {{Kind::input, "x", {"f32[2]"}, {}, "", ""},
       {Kind::instruction, "mm", {"f32[2]"}, {"w: f32[2, 2]"}, "m.py:7", "a.fc"},
       {Kind::instruction, "neg", {"f32[2]"}, {}, "m.py:9", "b"},
       {Kind::instruction, "relu", {"f32[2]"}, {}, "m.py:8", "a"}},
      {{0, 1, {"f32[2]"}}, {0, 2, {"f32[2]"}}, {1, 3, {"f32[2]"}}}};
  const auto data = data_of(page_of("m.taper", {graph}));
  EXPECT_EQ(data["title"], "m.taper");
  const auto& drawn = data["graphs"][0];
  EXPECT_EQ(drawn["groups"][1]["title"], "a");
  EXPECT_EQ(drawn["nodes"][2]["title"], "relu");  // moved to its module
  EXPECT_EQ(drawn["nodes"][2]["group"], 1);
  EXPECT_EQ(drawn["nodes"][1]["lines"][0], "w: f32[2, 2]");
  EXPECT_EQ(drawn["nodes"][1]["source"], "m.py:7");
  EXPECT_EQ(drawn["edges"], nlohmann::json::parse(R"([[0, 1, ["f32[2]"]], [0, 3, ["f32[2]"]],
                                                      [1, 2, ["f32[2]"]]])"));
}

TEST(graph_html, needs_no_other_file) {
  const std::string page = page_of("m", {named("m")});
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* reference : {" src=", " href=", "@import", "url(http", "fetch(", "import "})
    EXPECT_THAT(page, Not(HasSubstr(reference)));
  EXPECT_EQ(count(page, "http"), 2u) << "http-equiv, and the name of SVG";
  EXPECT_THAT(page, HasSubstr("http://www.w3.org/2000/svg"));
  EXPECT_EQ(count(page, "{{"), 0u) << "a part of the page is missing";
}

TEST(graph_html, shows_any_name_as_text) {
  const std::string clean = page_of("m", {named("m")});
  for (const char* name :
       {"</script><script>alert(1)</script>", "<!--<script>", "\"><img src=x onerror=alert(1)>",
        "]]>", "&lt;/script&gt;", "{{data}}", "\\u003c/script>", "\xe2\x80\xa8\xe2\x80\xae"}) {
    const std::string page = page_of(name, {named(name)});
    EXPECT_EQ(count(page, "<"), count(clean, "<")) << name;
    const auto data = data_of(page);
    EXPECT_EQ(data["title"], name);
    EXPECT_EQ(data["graphs"][0]["groups"][1]["path"], name);
    for (const auto& node : data["graphs"][0]["nodes"]) EXPECT_EQ(node["title"], name);
  }
}

TEST(graph_html, shows_control_characters_and_broken_utf8) {
  const auto data = data_of(page_of("\x1b[31m", {named(std::string("a\0\n\xff\xc3", 5))}));
  EXPECT_EQ(data["title"], "\\x1b[31m");
  EXPECT_EQ(data["graphs"][0]["name"], "a\\x00\\n\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(graph_html, draws_a_program_without_methods) {
  EXPECT_TRUE(data_of(page_of("m", {}))["graphs"].empty());
  EXPECT_EQ(data_of(page_of("m", {{"empty", {}, {}}}))["graphs"][0]["groups"].size(), 1u);
}

}  // namespace
}  // namespace taper::inspect
