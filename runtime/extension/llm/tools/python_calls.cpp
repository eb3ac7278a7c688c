#include "taper/runtime/extension/llm/tools/python_calls.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>

#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {
namespace {

using Json = nlohmann::ordered_json;

constexpr int most_depth = 32;

bool is_character(uint32_t code) { return code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF); }

/// Reads from the front of a text. Each function returns false if something else is there.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool calls(std::vector<ToolCall>& all) {
    if (!take('[')) return printed_call(all) && at_end();
    do {
      if (!printed_call(all)) return false;
    } while (take(','));
    return take(']') && at_end();
  }

 private:
  void skip_blanks() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\r\n"), text_.size()));
  }
  bool at_end() {
    skip_blanks();
    return text_.empty();
  }
  bool sees(char c) {
    skip_blanks();
    return !text_.empty() && text_[0] == c;
  }
  bool take(char c) {
    const bool found = sees(c);
    if (found) text_.remove_prefix(1);
    return found;
  }
  std::string name(const char* more) {
    skip_blanks();
    size_t length = 0;
    const auto belongs = [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
             std::string_view(more).find(c) != std::string_view::npos;
    };
    while (length < text_.size() && belongs(text_[length])) ++length;
    const std::string found(text_.substr(0, length));
    text_.remove_prefix(length);
    return found;
  }

  bool printed_call(std::vector<ToolCall>& all) {
    const std::string called = name(".-");
    if (called != "print") return call(called, all);
    return take('(') && call(name(".-"), all) && take(')');
  }

  bool call(const std::string& called, std::vector<ToolCall>& all) {
    if (called.empty() || !take('(')) return false;
    Json arguments = Json::object();
    while (!sees(')')) {
      const std::string argument = name("");
      Json value;
      if (argument.empty() || !take('=') || !literal(value, 0)) return false;
      arguments[argument] = std::move(value);
      if (!take(',')) break;
    }
    if (!take(')')) return false;
    all.push_back({called, arguments.dump(-1, ' ', false, Json::error_handler_t::replace)});
    return true;
  }

  bool literal(Json& value, int depth) {
    skip_blanks();
    if (text_.empty() || depth > most_depth) return false;
    const char c = text_[0];
    if (c == '"' || c == '\'') return text(value);
    if (c == '[' || c == '(') return list(value, c == '[' ? ']' : ')', depth);
    if (c == '{') return dictionary(value, depth);
    const std::string word = name("+-.");
    if (word == "True" || word == "true") return value = true, true;
    if (word == "False" || word == "false") return value = false, true;
    if (word == "None" || word == "null") return value = nullptr, true;
    value = Json::parse(word, nullptr, /*allow_exceptions=*/false);
    return value.is_number();
  }

  bool text(Json& value) {
    const char quote = text_[0];
    std::string found;
    for (size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == quote) {
        text_.remove_prefix(i + 1);
        return value = std::move(found), true;
      }
      if (text_[i] != '\\' || i + 1 == text_.size()) {
        found += text_[i];
        continue;
      }
      ++i;
      if (!escape(i, found)) return false;
    }
    return false;
  }

  // `i`: of the character behind the backslash; then of the last one that was read.
  bool escape(size_t& i, std::string& found) {
    constexpr std::string_view names = "ntrabfv0\\'\"", meanings("\n\t\r\a\b\f\v\0\\'\"", 11);
    const char kind = text_[i];
    if (kind == '\n') return true;  // the string goes on in the next line
    if (const size_t at = names.find(kind); at != std::string_view::npos)
      return found += meanings[at], true;
    const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0) return found.append({'\\', kind}), true;  // as Python does
    uint32_t code = 0;
    const std::string_view hex = text_.substr(i + 1, digits);
    const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (error != std::errc() || end != hex.data() + digits || !is_character(code)) return false;
    append_character(found, code);
    i += digits;
    return true;
  }

  bool list(Json& value, char end, int depth) {
    text_.remove_prefix(1);
    value = Json::array();
    while (!sees(end)) {
      Json element;
      if (!literal(element, depth + 1)) return false;
      value.push_back(std::move(element));
      if (!take(',')) break;
    }
    return take(end);
  }

  bool dictionary(Json& value, int depth) {
    text_.remove_prefix(1);
    value = Json::object();
    while (!sees('}')) {
      Json key, element;
      if (!literal(key, depth + 1) || !key.is_string() || !take(':') ||
          !literal(element, depth + 1))
        return false;
      value[key.get<std::string>()] = std::move(element);
      if (!take(',')) break;
    }
    return take('}');
  }

  std::string_view text_;
};

}  // namespace

std::vector<ToolCall> read_python_calls(std::string_view text) {
  std::vector<ToolCall> calls;
  return Reader(text).calls(calls) ? calls : std::vector<ToolCall>();
}

}  // namespace taper::llm
