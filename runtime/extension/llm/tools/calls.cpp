#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "taper/runtime/extension/llm/tools.h"
#include "taper/runtime/extension/llm/tools/escaped_calls.h"
#include "taper/runtime/extension/llm/tools/marks.h"
#include "taper/runtime/extension/llm/tools/python_calls.h"

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

Json parsed(std::string_view text) {
  const bool is_value = length_of_value(text) == text.size();
  return is_value ? Json::parse(text, nullptr, /*allow_exceptions=*/false) : Json();
}

bool add_call(const Json& call, std::vector<ToolCall>& calls) {
  const char* const name = call.is_object() && call.contains("tool_name") ? "tool_name" : "name";
  if (!call.is_object() || !call.contains(name) || !call[name].is_string()) return false;
  const char* const key = call.contains("arguments") ? "arguments" : "parameters";
  Json arguments = call.value(key, Json());
  if (arguments.is_null() || arguments == "") arguments = Json::object();
  if (arguments.is_string()) arguments = parsed(arguments.get<std::string>());
  if (!arguments.is_object()) return false;
  calls.push_back({call[name].get<std::string>(), arguments.dump()});
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

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

/// Without the fence of a block of code around it.
std::string_view unfenced(std::string_view text) {
  text = trimmed(text);
  constexpr std::string_view fence = "```";
  if (text.size() < 2 * fence.size() || text.substr(0, fence.size()) != fence ||
      text.substr(text.size() - fence.size()) != fence)
    return text;
  const size_t line = text.find('\n');
  if (line == std::string_view::npos) return text;
  return trimmed(text.substr(line, text.size() - fence.size() - line));
}

/// `arguments`: an object in JSON, or nothing.
bool add_named(std::string_view name, std::string_view arguments, std::vector<ToolCall>& calls) {
  const Json object = trimmed(arguments).empty() ? Json::object() : parsed(trimmed(arguments));
  const bool is_name = !trimmed(name).empty() &&
                       trimmed(name).find_first_of(" \t\r\n<>{}[]\"") == std::string_view::npos;
  if (!is_name || !object.is_object()) return false;
  calls.push_back({std::string(trimmed(name)), object.dump()});
  return true;
}

/// DeepSeek: `function<sep>NAME`, then the arguments in a block; or `NAME<sep>` and the arguments.
std::vector<ToolCall> read_sections(std::string_view text) {
  constexpr std::string_view begin = "<｜tool▁call▁begin｜>", end = "<｜tool▁call▁end｜>",
                             middle = "<｜tool▁sep｜>";
  std::vector<ToolCall> calls;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    if (text.substr(0, begin.size()) != begin) return {};
    text.remove_prefix(begin.size());
    const std::string_view call = text.substr(0, text.find(end));
    text.remove_prefix(std::min(call.size() + end.size(), text.size()));
    const size_t at = call.find(middle);
    if (at == std::string_view::npos) return {};
    std::string_view name = call.substr(0, at), rest = call.substr(at + middle.size());
    if (const size_t line = rest.find('\n');
        trimmed(name) == "function" && line != std::string_view::npos)
      name = rest.substr(0, line), rest.remove_prefix(line);
    if (!add_named(name, unfenced(rest), calls)) return {};
  }
  return calls;
}

/// Mistral: `NAME[ARGS]{…}`, several with the mark of calls between them. An id may stand behind
/// the name.
std::vector<ToolCall> read_named(std::string_view text) {
  constexpr std::string_view mark = "[TOOL_CALLS]", args = "[ARGS]", id = "[CALL_ID]";
  std::vector<ToolCall> calls;
  while (!text.empty()) {
    const std::string_view call = text.substr(0, text.find(mark));
    text.remove_prefix(std::min(call.size() + mark.size(), text.size()));
    const size_t at = call.find(args);
    if (at == std::string_view::npos) return {};
    const std::string_view name = call.substr(0, at);
    if (!add_named(name.substr(0, name.find(id)), call.substr(at + args.size()), calls)) return {};
  }
  return calls;
}

std::vector<ToolCall> read_own_form(std::string_view text, ToolStyle style) {
  switch (style) {
    case ToolStyle::sectioned:
      return read_sections(text);
    case ToolStyle::listed:
      return read_named(text);
    case ToolStyle::fenced: {
      std::vector<ToolCall> calls = read_python_calls(unfenced(text));
      return calls.empty() ? read_escaped_call(text) : calls;
    }
    default:
      return {};
  }
}

std::vector<ToolCall> read_json_calls(std::string_view text) {
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

}  // namespace

std::vector<ToolCall> read_calls(std::string_view text, ToolStyle style) {
  std::vector<ToolCall> calls = read_json_calls(style == ToolStyle::fenced ? unfenced(text) : text);
  return calls.empty() ? read_own_form(text, style) : calls;
}

std::vector<ToolCall> calls_between_marks(std::string_view text, ToolStyle style,
                                          const std::string& name) {
  if (name.empty()) return read_calls(text, style);
  std::vector<ToolCall> calls;
  return add_named(name, text, calls) ? calls : std::vector<ToolCall>();
}

}  // namespace taper::llm
