// `value | filter`, for texts and numbers; those for lists are in list_filters.cpp.
#include "taper/runtime/extension/llm/chat/filters.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "taper/runtime/extension/llm/chat/text_functions.h"
#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm::chat {
namespace {

using In = const ArgumentReader&;

Value upper_filter(const Value& v, In) { return upper(text_of(v)); }
Value lower_filter(const Value& v, In) { return lower(text_of(v)); }
Value capitalize(const Value& v, In) { return capitalized(text_of(v)); }
Value string(const Value& v, In) { return text_of(v); }
Value same(const Value& v, In) { return v; }

// Words begin behind white space, - ( { [ <.
Value title(const Value& v, In) {
  std::string out;
  bool starts = true;
  const std::string text = text_of(v);
  for (size_t at = 0; at < text.size(); at += character_length(text[at])) {
    const char32_t c = character_at(text, at);
    starts ? append_upper(out, c) : append_lower(out, c);
    starts = is_whitespace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  }
  return out;
}

Value trim(const Value& v, In in) {
  return stripped(text_of(v), in.text(0, "chars", ""), Ends::both);
}

Value default_filter(const Value& v, In in) {
  const bool also_false = in.flag(1, "boolean", false);
  const bool replaces = v.is_undefined() || (also_false && !is_true(v));
  return replaces ? in.get(0, "default_value", "") : v;
}

Value replace(const Value& v, In in) {
  return replaced(text_of(v), text_of(in.need(0, "old")), text_of(in.need(1, "new")),
                  in.integer(2, "count", -1));
}

Value escape(const Value& v, In) {
  std::string out;
  for (const char c : text_of(v)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Value url_encode(const Value& v, In) {
  std::string out;
  for (const char c : text_of(v)) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-._~/").find(c) != std::string_view::npos;
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned>(static_cast<uint8_t>(c)));
    out += plain ? std::string(1, c) : code;
  }
  return out;
}

size_t bounded(int64_t count) {
  constexpr int64_t most = 1 << 20;
  if (count > most) refuse("a width above " + std::to_string(most) + " is too large");
  return static_cast<size_t>(std::max<int64_t>(count, 0));
}

Value indent(const Value& v, In in) {
  const Value width = in.get(0, "width", 4);
  const std::string margin =
      width.is_string() ? width.string() : std::string(bounded(in.integer(0, "width", 4)), ' ');
  const bool first = in.flag(1, "first", false), blank = in.flag(2, "blank", false);
  std::string out;
  bool starts = true;
  for (const std::string& line : lines_of(text_of(v) + "\n")) {
    if (!starts) out += '\n';
    if (starts ? first : (blank || !line.empty())) out += margin;
    out += line;
    starts = false;
    if (out.size() > max_text) refuse("a text becomes too long");
  }
  return out;
}

Value truncate(const Value& v, In in) {
  const std::string text = text_of(v), end = in.text(2, "end", "...");
  const size_t length = bounded(in.integer(0, "length", 255));
  const size_t leeway = bounded(in.integer(3, "leeway", 5));
  if (count_characters(text) <= length + leeway) return text;
  const size_t ending = count_characters(end);
  std::string cut = text_of(slice(
      text, Value::none(), static_cast<int64_t>(length - std::min(length, ending)), Value::none()));
  if (in.flag(1, "killwords", false)) return cut + end;
  const size_t blank = cut.rfind(' ');
  if (blank != std::string::npos) cut.resize(blank);
  return cut + end;
}

Value center(const Value& v, In in) {
  const std::string text = text_of(v);
  const size_t width = bounded(in.integer(0, "width", 80)), size = count_characters(text);
  if (size >= width) return text;
  const size_t space = width - size, left = space / 2 + (space & width & 1);
  return std::string(left, ' ') + text + std::string(space - left, ' ');
}

Value word_count(const Value& v, In) {
  const std::string text = text_of(v);
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size(); at += character_length(text[at])) {
    const bool word = is_word(character_at(text, at));
    count += word && !inside;
    inside = word;
  }
  return count;
}

Value to_integer(const Value& v, In in) {
  if (v.is_integral()) return v.integer();
  double number = 0;
  if (v.is_string()) {
    const std::string text = stripped(v.string(), "", Ends::both);
    char* end = nullptr;
    number = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') return in.get(0, "default", 0);
  } else if (v.is(Value::Kind::real)) {
    number = v.real();
  } else {
    return in.get(0, "default", 0);
  }
  if (!(std::abs(number) < 9e18)) return in.get(0, "default", 0);
  return static_cast<int64_t>(number);
}

Value to_real(const Value& v, In in) {
  if (v.is_number()) return v.real();
  const std::string text = v.is_string() ? stripped(v.string(), "", Ends::both) : "";
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' ? in.get(0, "default", 0.0) : Value(number);
}

Value absolute(const Value& v, In) {
  if (!v.is_number()) refuse(std::string("bad operand type for abs(): '") + type_name(v) + "'");
  if (v.is_integral()) return v.integer() < 0 ? binary("-", 0, v) : Value(v.integer());
  return std::abs(v.real());
}

Value round(const Value& v, In in) {
  if (!v.is_number()) refuse(std::string("round needs a number, not ") + type_name(v));
  const auto precision =
      static_cast<int>(std::clamp<int64_t>(in.integer(0, "precision", 0), 0, 15));
  const std::string method = in.text(1, "method", "common");
  const double scale = std::pow(10.0, precision);
  if (method == "ceil") return std::ceil(v.real() * scale) / scale;
  if (method == "floor") return std::floor(v.real() * scale) / scale;
  if (method != "common") refuse("method must be common, ceil or floor");
  char text[400];
  std::snprintf(text, sizeof text, "%.*f", precision, v.real());
  return std::strtod(text, nullptr);
}

Value to_json_filter(const Value& v, In in) {
  JsonStyle style;
  if (const Value width = in.get(1, "indent"); width.is_integral()) {
    style.indent = static_cast<int>(std::clamp<int64_t>(width.integer(), 0, 64));
    style.item_separator = ",";
  }
  if (const Value two = in.get(2, "separators"); two.is_sequence() && two.list().size() == 2) {
    style.item_separator = text_of(two.list()[0]);
    style.key_separator = text_of(two.list()[1]);
  }
  style.ascii = in.flag(0, "ensure_ascii", false);
  style.sort_keys = in.flag(3, "sort_keys", false);
  return to_json(v, style);
}

const std::map<std::string, Filter>& filters() {
  static const std::map<std::string, Filter> table = [] {
    std::map<std::string, Filter> all = {{"upper", upper_filter},
                                         {"lower", lower_filter},
                                         {"capitalize", capitalize},
                                         {"title", title},
                                         {"string", string},
                                         {"safe", same},
                                         {"trim", trim},
                                         {"default", default_filter},
                                         {"d", default_filter},
                                         {"replace", replace},
                                         {"escape", escape},
                                         {"e", escape},
                                         {"urlencode", url_encode},
                                         {"indent", indent},
                                         {"truncate", truncate},
                                         {"center", center},
                                         {"wordcount", word_count},
                                         {"int", to_integer},
                                         {"float", to_real},
                                         {"abs", absolute},
                                         {"round", round},
                                         {"tojson", to_json_filter}};
    add_list_filters(all);
    return all;
  }();
  return table;
}

}  // namespace

void require_filter(const std::string& name) {
  if (name != "format" && filters().count(name) == 0) refuse("No filter named '" + name + "'.");
}

Value apply_filter(const std::string& name, const Value& input, const Arguments& arguments) {
  require_filter(name);
  if (name == "format") {
    return format_percent(text_of(input), Value::tuple(arguments.positional));
  }
  return filters().at(name)(input, ArgumentReader(arguments, name.c_str()));
}

}  // namespace taper::llm::chat
