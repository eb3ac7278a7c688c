#include "known.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string_view>

namespace taper::golden {
namespace {

constexpr std::string_view on_some_processors = "on some processors: ";

}  // namespace

void Known::read(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const size_t space = line.find(' '), text = line.find_first_not_of(' ', space);
    if (text == std::string::npos)
      throw std::runtime_error(path.string() + ":" + std::to_string(number) +
                               ": a line is 'name [beginning of the message] reason'");
    Line entry{"", line.substr(text)};
    if (const size_t close = line.find("] ", text); line[text] == '[' && close != std::string::npos)
      entry = {line.substr(text + 1, close - text - 1), line.substr(close + 2)};
    lines_.emplace(line.substr(0, space), entry);
  }
}

bool Known::depends_on_the_processor(const std::string& name) const {
  const auto [begin, end] = lines_.equal_range(name);
  return begin != end && std::all_of(begin, end, [](const auto& entry) {
           return entry.second.reason.starts_with(on_some_processors);
         });
}

const std::string* Known::reason(const std::string& name, const std::string& message) const {
  const auto [begin, end] = lines_.equal_range(name);
  for (auto at = begin; at != end; ++at)
    if (message.starts_with(at->second.beginning)) return &at->second.reason;
  return nullptr;
}

std::vector<std::string> Known::stale(const std::string& name,
                                      const std::vector<std::string>& messages) const {
  std::vector<std::string> beginnings;
  const auto [begin, end] = lines_.equal_range(name);
  for (auto at = begin; at != end; ++at) {
    const Line& line = at->second;
    if (!line.reason.starts_with(on_some_processors) &&
        std::ranges::none_of(messages, [&](const std::string& message) {
          return message.starts_with(line.beginning);
        }))
      beginnings.push_back(line.beginning);
  }
  return beginnings;
}

std::set<std::string> Known::names() const {
  std::set<std::string> names;
  for (const auto& [name, line] : lines_) names.insert(name);
  return names;
}

}  // namespace taper::golden
