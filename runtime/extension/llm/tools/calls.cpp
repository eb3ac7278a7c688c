#include <nlohmann/json.hpp>
#include <utility>

#include "taper/runtime/extension/llm/tools.h"

namespace taper::llm {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_depth = 64;

/// The length of the object or list that a text begins with; 0: it does not end.
size_t length_of_value(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
      continue;
    }
    in_string = c == '"';
    if ((c == '{' || c == '[') && ++depth > most_depth) return 0;
    if ((c == '}' || c == ']') && --depth <= 0) return i + 1;
  }
  return 0;
}

bool add_call(const Json& call, std::vector<ToolCall>& calls) {
  if (!call.is_object() || !call.contains("name") || !call["name"].is_string()) return false;
  const char* const key = call.contains("arguments") ? "arguments" : "parameters";
  Json arguments = call.value(key, Json::object());
  if (arguments.is_string()) {
    const std::string text = arguments.get<std::string>();
    const bool is_value = length_of_value(text) == text.size();
    arguments = is_value ? Json::parse(text, nullptr, /*allow_exceptions=*/false) : Json();
  }
  if (!arguments.is_object()) return false;
  calls.push_back({call["name"].get<std::string>(), arguments.dump()});
  return true;
}

/// An object, or a list of them.
bool add_calls(std::string_view text, std::vector<ToolCall>& calls) {
  const Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_array()) return add_call(value, calls);
  for (const Json& call : value)
    if (!add_call(call, calls)) return false;
  return true;
}

}  // namespace

std::vector<ToolCall> read_calls(std::string_view text) {
  constexpr std::string_view between = " \t\r\n,;";
  std::vector<ToolCall> calls;
  for (size_t at; (at = text.find_first_not_of(between)) != std::string_view::npos;) {
    text.remove_prefix(at);
    const size_t length = text[0] == '{' || text[0] == '[' ? length_of_value(text) : 0;
    if (length == 0 || !add_calls(text.substr(0, length), calls)) return {};
    text.remove_prefix(length);
  }
  return calls;
}

}  // namespace taper::llm
