// What a page of HTML holds.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace taper::tests {

/// How often a part occurs.
inline size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// The data that the page shows.
inline nlohmann::json data_of(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const size_t from = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace taper::tests
