// The documentation holds together: links lead somewhere, and what the lists of exceptions excuse
// is explained.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
const fs::path root = TAPER_SOURCE_FOLDER;

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << "cannot read " << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// What follows '#' in a link to a heading: "NaN, infinities" → "nan-infinities".
std::string anchor_of(const std::string& heading) {
  std::string anchor;
  for (const unsigned char c : heading) {
    if (c == ' ')
      anchor += '-';
    else if (std::isalnum(c) || c == '-' || c == '_')
      anchor += static_cast<char>(std::tolower(c));
  }
  return anchor;
}

/// The text under each heading of a page, up to the next one, by the heading's anchor.
std::map<std::string, std::string> sections_of(const fs::path& page) {
  std::map<std::string, std::string> sections;
  std::string* section = nullptr;
  bool is_code = false;
  for (const std::string& line : lines_of(page)) {
    if (line.starts_with("```")) is_code = !is_code;
    const size_t level = line.find_first_not_of('#');
    if (!is_code && level != 0 && level < line.size() && line[level] == ' ')
      section = &sections[anchor_of(line.substr(level + 1))];
    else if (section != nullptr)
      *section += line + '\n';
  }
  return sections;
}

/// Whether an operator is named as code, in any overload: `norm`, `norm.Scalar`.
bool names(const std::string& text, const std::string& op) {
  return text.find('`' + op + '`') != std::string::npos ||
         text.find('`' + op + '.') != std::string::npos;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> pages = {root / "README.md", root / "CONTRIBUTING.md"};
  for (const auto& entry : fs::directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md") pages.push_back(entry.path());
  std::sort(pages.begin(), pages.end());
  return pages;
}

TEST(documentation, has_links_that_lead_somewhere) {
  const std::regex link(R"(\]\(([^)#\s]*)#?([^)\s]*)\))");
  for (const fs::path& page : pages())
    for (const std::string& line : lines_of(page))
      for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at) {
        const std::string file = (*at)[1], anchor = (*at)[2];
        if (file.find("://") != std::string::npos) continue;
        const fs::path target = file.empty() ? page : page.parent_path() / file;
        EXPECT_TRUE(fs::exists(target)) << page << " links to " << file;
        if (!anchor.empty() && fs::exists(target)) {
          EXPECT_TRUE(sections_of(target).contains(anchor))
              << page << " links to " << at->str() << ", but there is no such heading";
        }
      }
}

// A line of these lists ends with the section that explains it: "gelu/v14 … [numerics.md#ties]".
// (known_properties.txt lists no deviations: what cannot be asked of an operator.)
TEST(documentation, explains_each_exception_of_the_tests) {
  std::vector<fs::path> lists = {root / "tests/conformance/known_opinfo.txt"};
  for (const auto& entry : fs::directory_iterator(root / "tests/golden"))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("known_") && name.ends_with(".txt") && name != "known_properties.txt")
      lists.push_back(entry.path());
  ASSERT_GT(lists.size(), 1u);

  std::map<std::string, std::map<std::string, std::string>> documents;
  for (const char* name : {"numerics.md", "differences.md"})
    documents[name] = sections_of(root / "docs" / name);
  const std::regex form(R"(([^/.\s]+)[^/]*/\S+ .* \[([\w.]+)#([\w-]+)\])");
  for (const fs::path& list : lists)
    for (const std::string& line : lines_of(list)) {
      if (line.empty() || line[0] == '#') continue;
      std::smatch part;
      if (!std::regex_match(line, part, form)) {
        ADD_FAILURE() << list << ": '" << line << "' does not end with [numerics.md#section]";
        continue;
      }
      const std::string op = part[1], document = part[2], anchor = part[3];
      const auto section = documents[document].find(anchor);
      if (section == documents[document].end())
        ADD_FAILURE() << list << ": " << document << " has no section #" << anchor << " for " << op;
      else
        EXPECT_TRUE(names(section->second, op))
            << list << ": " << document << "#" << anchor << " does not speak of `" << op << "`";
    }
}

}  // namespace
