#include "taper/runtime/extension/llm/grammar/json_source.h"

#include <nlohmann/json.hpp>
#include <vector>

namespace taper::llm::json_text {
namespace {

struct Ends {
  size_t item;    // where the last item of the innermost array or object begins
  size_t string;  // where the last string begins
};

Ends ends_of(const std::string& text) {
  std::vector<size_t> items = {0};
  size_t string = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      if (!in_string) string = i;
      in_string = !in_string;
    } else if (in_string) {
      i += c == '\\';
    } else if (c == '[' || c == '{') {
      items.push_back(i + 1);
    } else if (c == ']' || c == '}') {
      items.pop_back();
    } else if (c == ',') {
      items.back() = i + 1;
    }
  }
  return {items.back(), string};
}

}  // namespace

nlohmann::json last_item(const std::string& text) {
  return nlohmann::json::parse(text.substr(ends_of(text).item), nullptr, false);
}

std::string last_string(const std::string& text) {
  return nlohmann::json::parse(text.substr(ends_of(text).string)).get<std::string>();
}

}  // namespace taper::llm::json_text
