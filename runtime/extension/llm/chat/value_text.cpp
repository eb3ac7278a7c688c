// How Python writes values: str, repr and json.dumps.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "taper/runtime/extension/llm/chat/operations.h"
#include "taper/runtime/extension/llm/chat/value.h"
#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm::chat {
namespace {

constexpr int max_depth = 200;

std::string hex(const char* format, uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string quoted_string(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos;
  const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size(); at += character_length(text[at])) {
    const char32_t c = character_at(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || (c >= 0x7F && c < 0xA1) || c == 0xAD) {
      out += hex("\\x%02x", c);
    } else {
      append_character(out, c);
    }
  }
  return out + quote;
}

void append_joined(std::string& out, const List& list, int depth);

void append_quoted(std::string& out, const Value& value, int depth) {
  if (depth > max_depth) refuse("a value is nested too deep to be written");
  // lists that share their parts grow with each level
  if (out.size() > max_text) refuse("a text becomes too long");
  switch (value.kind()) {
    case Value::Kind::string:
      out += quoted_string(value.string());
      return;
    case Value::Kind::list:
      out += '[';
      append_joined(out, value.list(), depth);
      out += ']';
      return;
    case Value::Kind::tuple:
      out += '(';
      append_joined(out, value.list(), depth);
      out += value.list().size() == 1 ? ",)" : ")";
      return;
    case Value::Kind::dict: {
      out += '{';
      const char* separator = "";
      for (const auto& [key, item] : value.dict()) {
        out += separator;
        append_quoted(out, key, depth + 1);
        out += ": ";
        append_quoted(out, item, depth + 1);
        separator = ", ";
      }
      out += '}';
      return;
    }
    case Value::Kind::undefined:
      out += "Undefined";
      return;
    default:
      out += text_of(value);
  }
}

void append_joined(std::string& out, const List& list, int depth) {
  const char* separator = "";
  for (const Value& item : list) {
    out += separator;
    append_quoted(out, item, depth + 1);
    separator = ", ";
  }
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& value, int depth) {
    if (depth > max_depth) refuse("tojson: the value is nested too deep");
    if (out.size() > max_text) refuse("tojson: the text becomes too long");
    switch (value.kind()) {
      case Value::Kind::none:
        out += "null";
        return;
      case Value::Kind::boolean:
        out += value.integer() != 0 ? "true" : "false";
        return;
      case Value::Kind::integer:
      case Value::Kind::real:
        out += text_of(value);
        return;
      case Value::Kind::string:
        return write_string(value.string());
      case Value::Kind::list:
      case Value::Kind::tuple:
        return write_list(value.list(), depth);
      case Value::Kind::dict:
        return write_dict(value.dict(), depth);
      case Value::Kind::undefined:
        refuse(value.reason());
      default:
        refuse(std::string("Object of type ") + type_name(value) + " is not JSON serializable");
    }
  }
  std::string out;

 private:
  void write_string(const std::string& text) {
    out += '"';
    for (size_t at = 0; at < text.size(); at += character_length(text[at])) {
      write_character(character_at(text, at));
    }
    out += '"';
  }
  void write_character(char32_t c) {
    switch (c) {
      case '"':
        out += "\\\"";
        return;
      case '\\':
        out += "\\\\";
        return;
      case '\n':
        out += "\\n";
        return;
      case '\r':
        out += "\\r";
        return;
      case '\t':
        out += "\\t";
        return;
      case '\b':
        out += "\\b";
        return;
      case '\f':
        out += "\\f";
        return;
      default:
        break;
    }
    if (c < 0x20 || (style_.ascii && c > 0x7E && c < 0x10000)) {
      out += hex("\\u%04x", c);
    } else if (style_.ascii && c >= 0x10000) {
      out += hex("\\u%04x", 0xD800 + ((c - 0x10000) >> 10));
      out += hex("\\u%04x", 0xDC00 + ((c - 0x10000) & 0x3FF));
    } else {
      append_character(out, c);
    }
  }
  void new_line(int depth) {
    if (style_.indent < 0) return;
    out += '\n';
    out.append(static_cast<size_t>(style_.indent) * static_cast<size_t>(depth), ' ');
  }
  void write_list(const List& list, int depth) {
    out += '[';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += style_.item_separator;
      new_line(depth + 1);
      write(list[i], depth + 1);
    }
    if (!list.empty()) new_line(depth);
    out += ']';
  }
  void write_dict(const Dict& dict, int depth) {
    Dict items = dict;
    if (style_.sort_keys) {
      std::stable_sort(items.begin(), items.end(),
                       [](const auto& a, const auto& b) { return less(a.first, b.first); });
    }
    out += '{';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out += style_.item_separator;
      new_line(depth + 1);
      write_string(text_of(items[i].first));
      out += style_.key_separator;
      write(items[i].second, depth + 1);
    }
    if (!items.empty()) new_line(depth);
    out += '}';
  }

  const JsonStyle& style_;
};

}  // namespace

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char text[64];
  const double size = std::abs(number);
  const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  std::string out(text, std::to_chars(text, text + sizeof text, number, format).ptr);
  if (plain && out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string text_of(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      return "";
    case Value::Kind::none:
      return "None";
    case Value::Kind::boolean:
      return value.integer() != 0 ? "True" : "False";
    case Value::Kind::integer:
      return std::to_string(value.integer());
    case Value::Kind::real:
      return value.digits() != nullptr ? *value.digits() : number_text(value.real());
    case Value::Kind::string:
      return value.string();
    case Value::Kind::name_space:
      return "<Namespace>";
    case Value::Kind::function:
      return "<function>";
    default:
      return quoted(value);
  }
}

std::string quoted(const Value& value) {
  std::string out;
  append_quoted(out, value, 0);
  return out;
}

std::string to_json(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace taper::llm::chat
