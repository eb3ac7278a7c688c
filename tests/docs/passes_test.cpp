// The lists of passes on the pages are those of the code.
#include "taper/exporter/passes/passes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace taper::passes {
namespace {

/// The lines of a page from the heading `## title` to the next one.
std::vector<std::string> section(const std::string& page, const std::string& title) {
  std::ifstream in(TAPER_SOURCE_FOLDER "/docs/" + page);
  std::vector<std::string> lines;
  bool is_inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) is_inside = line == "## " + title;
    if (is_inside) lines.push_back(line);
  }
  return lines;
}

TEST(documentation, shows_the_way_through_all_passes_in_their_order) {
  std::vector<std::string> expected, shown;
  for (const Pass& pass : all_passes()) expected.emplace_back(pass.name);
  const std::regex line(R"(  (\w+)( .*)?)");
  for (const std::string& l : section("architecture.md", "The way through the passes"))
    if (std::smatch part; std::regex_match(l, part, line)) shown.push_back(part[1]);
  EXPECT_EQ(shown, expected);
}

TEST(documentation, describes_each_pass_and_whether_it_is_exact) {
  std::map<std::string, std::string> expected, shown;
  for (const Pass& pass : all_passes())
    expected[pass.name] = pass.runs == Pass::Runs::always ? "yes" : "no";
  const std::regex row(R"(\| `(\w+)` \| (yes|no) \| .+ \|)");
  for (const std::string& l : section("ir.md", "Passes"))
    if (std::smatch part; std::regex_match(l, part, row)) shown[part[1]] = part[2];
  EXPECT_EQ(shown, expected);
}

}  // namespace
}  // namespace taper::passes
