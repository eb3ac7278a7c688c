#include "taper/runtime/extension/llm/tools/escaped_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace taper::llm {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view escape = "<escape>";
constexpr int deepest_value = 32;

/// Reads from the front of a text. Each function returns false if something else is there.
class EscapedReader {
 public:
  explicit EscapedReader(std::string_view text) : text_(text) {}

  bool call(ToolCall& call) {
    Json arguments;
    if (!take("call:")) return false;
    call.name = until("{ \n");
    if (call.name.empty() || !object(arguments, 0)) return false;
    skip_blanks();
    call.arguments = arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
    return text_.empty();
  }

 private:
  void skip_blanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
  }
  bool take(std::string_view start) {
    skip_blanks();
    if (text_.substr(0, start.size()) != start) return false;
    text_.remove_prefix(start.size());
    return true;
  }
  std::string until(const char* ends) {
    skip_blanks();
    const std::string word(text_.substr(0, text_.find_first_of(ends)));
    text_.remove_prefix(word.size());
    return word;
  }
  bool escaped(std::string& found) {
    const size_t end = text_.find(escape);
    if (end == std::string_view::npos) return false;
    found = text_.substr(0, end);
    text_.remove_prefix(end + escape.size());
    return true;
  }

  bool object(Json& value, int depth) {
    value = Json::object();
    if (!take("{")) return false;
    if (take("}")) return true;
    do {
      std::string key;
      if (take(escape) ? !escaped(key) : (key = until(":,{}[] \n")).empty()) return false;
      Json member;
      if (!take(":") || !read(member, depth + 1)) return false;
      value[key] = std::move(member);
    } while (take(","));
    return take("}");
  }

  bool list(Json& value, int depth) {
    value = Json::array();
    if (take("]")) return true;
    do {
      Json element;
      if (!read(element, depth + 1)) return false;
      value.push_back(std::move(element));
    } while (take(","));
    return take("]");
  }

  bool read(Json& value, int depth) {
    skip_blanks();
    if (text_.empty() || depth > deepest_value) return false;
    if (text_[0] == '{') return object(value, depth);
    if (take("[")) return list(value, depth);
    if (take(escape)) {
      std::string found;
      if (!escaped(found)) return false;
      value = std::move(found);
      return true;
    }
    value = Json::parse(until(",]} \n"), nullptr, /*allow_exceptions=*/false);
    return value.is_number() || value.is_boolean() || value.is_null();
  }

  std::string_view text_;
};

}  // namespace

std::vector<ToolCall> read_escaped_call(std::string_view text) {
  ToolCall call;
  if (!EscapedReader(text).call(call)) return {};
  return {std::move(call)};
}

}  // namespace taper::llm
