// The methods of Python's str.
#include <algorithm>
#include <cstdio>
#include <map>

#include "taper/runtime/extension/llm/chat/operations.h"
#include "taper/runtime/extension/llm/chat/text_functions.h"
#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm::chat {
namespace {

using Method = Value (*)(const std::string& text, const ArgumentReader& in);

Value strip_both(const std::string& text, const ArgumentReader& in) {
  return stripped(text, in.text(0, "chars", ""), Ends::both);
}
Value strip_left(const std::string& text, const ArgumentReader& in) {
  return stripped(text, in.text(0, "chars", ""), Ends::left);
}
Value strip_right(const std::string& text, const ArgumentReader& in) {
  return stripped(text, in.text(0, "chars", ""), Ends::right);
}

List words_of(const std::string& text, int64_t most) {
  List words;
  std::string rest = stripped(text, "", Ends::left);
  while (!rest.empty()) {
    size_t end = 0;
    while (end < rest.size() && !is_whitespace(character_at(rest, end))) {
      end += character_length(rest[end]);
    }
    if (most >= 0 && static_cast<int64_t>(words.size()) == most) {
      words.emplace_back(stripped(rest, "", Ends::right));
      break;
    }
    words.emplace_back(rest.substr(0, end));
    rest = stripped(rest.substr(end), "", Ends::left);
  }
  return words;
}

std::string separator_of(const ArgumentReader& in) {
  const std::string separator = in.text(0, "sep", "");
  if (separator.empty() && in.get(0, "sep").is_string()) refuse("empty separator");
  return separator;
}

Value split(const std::string& text, const ArgumentReader& in) {
  const std::string separator = separator_of(in);
  const int64_t most = in.integer(1, "maxsplit", -1);
  if (separator.empty()) return words_of(text, most);
  List parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos;) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) break;
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + separator.size();
  }
  parts.emplace_back(text.substr(begin));
  return parts;
}

Value split_from_right(const std::string& text, const ArgumentReader& in) {
  const std::string separator = separator_of(in);
  const int64_t most = in.integer(1, "maxsplit", -1);
  if (separator.empty()) {
    if (most >= 0) leave_out("rsplit with a count needs a separator");
    return words_of(text, -1);
  }
  List parts;
  std::string rest = text;
  for (size_t at; (at = rest.rfind(separator)) != std::string::npos;) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) break;
    parts.emplace_back(rest.substr(at + separator.size()));
    rest.resize(at);
  }
  parts.emplace_back(rest);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

Value split_lines(const std::string& text, const ArgumentReader&) {
  List lines;
  for (std::string& line : lines_of(text)) lines.emplace_back(std::move(line));
  return lines;
}

// True if one of the texts, or of a tuple of texts, fits.
template <class Fits>
bool any_fits(const Value& wanted, Fits fits) {
  for (const Value& one : wanted.is_sequence() ? wanted.list() : List{wanted}) {
    if (!one.is_string()) refuse("startswith and endswith need a text or a tuple of texts");
    if (fits(one.string())) return true;
  }
  return false;
}

Value starts_with(const std::string& text, const ArgumentReader& in) {
  return any_fits(in.need(0, "prefix"), [&](const std::string& prefix) {
    return text.compare(0, prefix.size(), prefix) == 0;
  });
}

Value ends_with(const std::string& text, const ArgumentReader& in) {
  return any_fits(in.need(0, "suffix"), [&](const std::string& suffix) {
    return text.size() >= suffix.size() &&
           text.compare(text.size() - suffix.size(), std::string::npos, suffix) == 0;
  });
}

Value replace(const std::string& text, const ArgumentReader& in) {
  return replaced(text, text_of(in.need(0, "old")), text_of(in.need(1, "new")),
                  in.integer(2, "count", -1));
}

Value place(const std::string& text, size_t found) {
  if (found == std::string::npos) return -1;
  return static_cast<int64_t>(count_characters(std::string_view(text).substr(0, found)));
}

Value find(const std::string& text, const ArgumentReader& in) {
  return place(text, text.find(in.text(0, "sub", "")));
}
Value find_last(const std::string& text, const ArgumentReader& in) {
  return place(text, text.rfind(in.text(0, "sub", "")));
}
Value index(const std::string& text, const ArgumentReader& in) {
  Value found = find(text, in);
  if (found.integer() < 0) refuse("substring not found");
  return found;
}

Value count(const std::string& text, const ArgumentReader& in) {
  const std::string part = in.text(0, "sub", "");
  if (part.empty()) return static_cast<int64_t>(count_characters(text)) + 1;
  int64_t times = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++times;
  return times;
}

Value join(const std::string& text, const ArgumentReader& in) {
  std::string out;
  const char* separator = "";
  for (const Value& part : elements_of(in.need(0, "iterable"))) {
    if (!part.is_string())
      refuse(std::string("expected str instance, ") + type_name(part) + " found");
    out += separator + part.string();
    separator = text.c_str();
    if (out.size() > max_text) refuse("a text becomes too long");
  }
  return out;
}

Value title(const std::string& text, const ArgumentReader&) {
  std::string out;
  bool inside = false;
  for (size_t at = 0; at < text.size(); at += character_length(text[at])) {
    const char32_t c = character_at(text, at);
    inside ? append_lower(out, c) : append_upper(out, c);
    inside = is_letter(c);
  }
  return out;
}

Value swap_case(const std::string& text, const ArgumentReader&) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += character_length(text[at])) {
    const char32_t c = character_at(text, at);
    is_upper(c) ? append_lower(out, c) : append_upper(out, c);
  }
  return out;
}

template <bool (*holds)(char32_t)>
Value all_are(const std::string& text, const ArgumentReader&) {
  bool all = !text.empty();
  for (size_t at = 0; at < text.size(); at += character_length(text[at])) {
    all = all && holds(character_at(text, at));
  }
  return all;
}

bool is_letter_or_digit(char32_t c) { return is_letter(c) || is_numeric(c); }
Value to_upper(const std::string& text, const ArgumentReader&) { return upper(text); }
Value to_lower(const std::string& text, const ArgumentReader&) { return lower(text); }
Value capitalize(const std::string& text, const ArgumentReader&) { return capitalized(text); }
Value is_upper_case(const std::string& text, const ArgumentReader&) {
  return text == upper(text) && text != lower(text);
}
Value is_lower_case(const std::string& text, const ArgumentReader&) {
  return text == lower(text) && text != upper(text);
}

Value remove_prefix(const std::string& text, const ArgumentReader& in) {
  const std::string prefix = in.text(0, "prefix", "");
  return text.compare(0, prefix.size(), prefix) == 0 ? text.substr(prefix.size()) : text;
}

Value remove_suffix(const std::string& text, const ArgumentReader& in) {
  const std::string suffix = in.text(0, "suffix", "");
  const bool ends = text.size() >= suffix.size() &&
                    text.compare(text.size() - suffix.size(), std::string::npos, suffix) == 0;
  return ends ? text.substr(0, text.size() - suffix.size()) : text;
}

// '{} {0} {name}'; formats behind a colon are left out.
Value format(const std::string& text, const ArgumentReader& in) {
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      out += c;
    } else if (i + 1 < text.size() && text[i + 1] == c) {
      out += c;
      ++i;
    } else {
      const size_t end = text.find('}', i);
      if (c == '}' || end == std::string::npos) refuse("format: a brace stands alone");
      const std::string name = text.substr(i + 1, end - i - 1);
      const bool number = !name.empty() && name.size() < 6 &&
                          name.find_first_not_of("0123456789") == std::string::npos;
      if (name.find_first_of(":!.[") != std::string::npos) leave_out("format: {" + name + "}");
      const size_t at = name.empty() ? next++ : number ? std::stoul(name) : ~size_t{0};
      out += text_of(in.need(at, name.c_str()));
      i = end;
    }
    if (out.size() > max_text) refuse("a text becomes too long");
  }
  return out;
}

const std::map<std::string, Method>& methods() {
  static const std::map<std::string, Method> table = {
      {"strip", strip_both},
      {"lstrip", strip_left},
      {"rstrip", strip_right},
      {"split", split},
      {"rsplit", split_from_right},
      {"splitlines", split_lines},
      {"startswith", starts_with},
      {"endswith", ends_with},
      {"replace", replace},
      {"find", find},
      {"rfind", find_last},
      {"index", index},
      {"count", count},
      {"join", join},
      {"title", title},
      {"upper", to_upper},
      {"lower", to_lower},
      {"capitalize", capitalize},
      {"swapcase", swap_case},
      {"isdigit", all_are<is_numeric>},
      {"isalpha", all_are<is_letter>},
      {"isalnum", all_are<is_letter_or_digit>},
      {"isspace", all_are<is_whitespace>},
      {"isupper", is_upper_case},
      {"islower", is_lower_case},
      {"removeprefix", remove_prefix},
      {"removesuffix", remove_suffix},
      {"format", format},
  };
  return table;
}

// One conversion of a percent format: `spec` is "%-05.2" without its letter.
std::string converted(std::string spec, char letter, const Value& value) {
  constexpr size_t longest_spec = 12;
  if (spec.size() > longest_spec) refuse("format: the width is too large");
  const auto print = [&](const char* length, auto number) {
    const std::string full = spec + length + letter;
    const int size = std::snprintf(nullptr, 0, full.c_str(), number);
    if (size < 0 || static_cast<size_t>(size) > max_text) refuse("format: the width is too large");
    std::string text(static_cast<size_t>(size) + 1, '\0');
    std::snprintf(text.data(), text.size(), full.c_str(), number);
    text.pop_back();
    return text;
  };
  if (letter == 's' || letter == 'r') {
    const std::string text = letter == 'r' ? quoted(value) : text_of(value);
    letter = 's';
    return spec == "%" ? text : print("", text.c_str());
  }
  if (!value.is_number())
    refuse(std::string("%") + letter + " needs a number, not " + type_name(value));
  if (std::string_view("feEgG").find(letter) != std::string_view::npos)
    return print("", value.real());
  if (letter == 'i') letter = 'd';
  if (std::string_view("dxXo").find(letter) == std::string_view::npos) {
    refuse(std::string("format: unsupported format character '") + letter + "'");
  }
  return print("ll", static_cast<long long>(value.is_integral() ? value.integer()
                                                                : static_cast<int64_t>(std::clamp(
                                                                      value.real(), -9e18, 9e18))));
}

}  // namespace

Value text_method(const Value& text, const std::string& name) {
  const auto found = methods().find(name);
  if (found == methods().end()) return Value();
  const Method method = found->second;
  return Function([text, method, name](const Arguments& arguments) -> Value {
    return method(text.string(), ArgumentReader(arguments, name.c_str()));
  });
}

std::string format_percent(const std::string& format, const Value& values) {
  const List list = values.is(Value::Kind::tuple) ? values.list() : List{values};
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const size_t letter = format.find_first_not_of("-+ #0123456789.", i + 1);
    if (letter == std::string::npos) refuse("incomplete format");
    if (format[letter] == '%') {
      out += '%';
    } else {
      if (next == list.size()) refuse("not enough arguments for format string");
      out += converted(format.substr(i, letter - i), format[letter], list[next++]);
    }
    if (out.size() > max_text) refuse("a text becomes too long");
    i = letter;
  }
  if (next < list.size()) refuse("not all arguments converted during string formatting");
  return out;
}

}  // namespace taper::llm::chat
