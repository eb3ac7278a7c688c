// An operator's ATen schema, parsed. Usable at compile time (kernel checks) and at run time
// (importers).
#pragma once
#include <cstdint>
#include <string_view>

namespace taper {

/// What an argument is. Stored in programs: never change a value.
enum class Kind : uint8_t {
  none = 0,
  tensor = 1,
  integer = 2,
  real = 3,
  boolean = 4,
  scalar = 5,  ///< only in schemas: an argument's value is an integer, a real or a boolean
  string = 6,
  dtype = 7,  ///< `ScalarType`
  layout = 8,
  device = 9,
  memory_format = 10,
  generator = 11,
};

/// One parameter or result of a schema.
struct Parameter {
  std::string_view name, fallback;  ///< `fallback`: the default as written, "" if there is none
  Kind kind = Kind::none;
  bool optional = false, list = false, optional_elements = false, symbolic = false, mutated = false,
       alias = false, has_fallback = false;
  uint8_t length = 0;  ///< int[2] -> 2
};

/// `add.Tensor(Tensor self, …) -> Tensor`, parsed. `error` says what is wrong with the text,
/// nullptr if nothing.
struct Schema {
  static constexpr int max_parameters = 14, max_results = 5;
  std::string_view name;
  Parameter parameters[max_parameters], results[max_results];
  int parameter_count = 0, result_count = 0;
  const char* error = nullptr;

  /// The index of a parameter, or -1.
  constexpr int find(std::string_view parameter) const {
    for (int i = 0; i < parameter_count; ++i)
      if (parameters[i].name == parameter) return i;
    return -1;
  }
};

namespace internal {

struct Cursor {
  std::string_view text;
  size_t at = 0;
  constexpr char peek() const { return at < text.size() ? text[at] : '\0'; }
  constexpr bool take(char c) {
    if (peek() != c) return false;
    ++at;
    return true;
  }
  constexpr bool take(std::string_view s) {
    if (text.substr(at, s.size()) != s) return false;
    at += s.size();
    return true;
  }
  constexpr void blanks() {
    while (peek() == ' ') ++at;
  }
  constexpr std::string_view word() {
    const size_t begin = at;
    for (char c = peek(); (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '.' || c == ':';
         c = peek())
      ++at;
    return text.substr(begin, at - begin);
  }
};

constexpr Kind kind_of(std::string_view type) {
  if (type == "Tensor") return Kind::tensor;
  if (type == "int" || type == "SymInt") return Kind::integer;
  if (type == "float") return Kind::real;
  if (type == "bool" || type == "SymBool") return Kind::boolean;
  if (type == "Scalar") return Kind::scalar;
  if (type == "str") return Kind::string;
  if (type == "ScalarType") return Kind::dtype;
  if (type == "Layout") return Kind::layout;
  if (type == "Device") return Kind::device;
  if (type == "MemoryFormat") return Kind::memory_format;
  if (type == "Generator") return Kind::generator;
  return Kind::none;
}

constexpr bool parse_type(Cursor& c, Parameter& p) {
  const std::string_view type = c.word();
  p.kind = kind_of(type);
  p.symbolic = type == "SymInt" || type == "SymBool";
  if (p.kind == Kind::none) return false;
  if (c.take('(')) {
    p.alias = true;
    while (c.peek() && !c.take(')')) {
      if (c.peek() == '!') p.mutated = true;
      ++c.at;
    }
  }
  bool question = c.take('?');
  if (c.take('[')) {
    p.list = true;
    p.optional_elements = question;
    question = false;
    for (char d = c.peek(); d >= '0' && d <= '9'; d = c.peek()) {
      p.length = static_cast<uint8_t>(p.length * 10 + (d - '0'));
      ++c.at;
    }
    if (!c.take(']')) return false;
    question = c.take('?');
  }
  p.optional = question;
  return true;
}

}  // namespace internal

constexpr Schema parse_schema(std::string_view text) {
  Schema s;
  internal::Cursor c{text};
  s.name = c.word();
  if (!c.take('(')) {
    s.error = "expected '(' after the operator's name";
    return s;
  }
  while (!c.take(')')) {
    if (c.take('*')) {
      if (!c.take(',')) {
        s.error = "expected ',' after '*'";
        return s;
      }
      c.blanks();
      continue;
    }
    if (s.parameter_count == Schema::max_parameters) {
      s.error = "too many parameters";
      return s;
    }
    Parameter& p = s.parameters[s.parameter_count++];
    if (!internal::parse_type(c, p)) {
      s.error = "unknown type of a parameter";
      return s;
    }
    c.blanks();
    p.name = c.word();
    if (p.name.empty()) {
      s.error = "a parameter has no name";
      return s;
    }
    if (c.take('=')) {
      const size_t begin = c.at;
      int depth = 0;
      for (char d = c.peek(); d && (depth || (d != ',' && d != ')')); d = c.peek()) {
        depth += (d == '[') - (d == ']');
        ++c.at;
      }
      p.fallback = text.substr(begin, c.at - begin);
      p.has_fallback = true;
    }
    if (c.take(',')) {
      c.blanks();
    } else if (c.peek() != ')') {
      s.error = "expected ',' or ')' after a parameter";
      return s;
    }
  }
  if (!c.take(" -> ")) {
    s.error = "expected ' -> '";
    return s;
  }
  if (c.take('(')) {
    while (!c.take(')')) {
      if (s.result_count == Schema::max_results) {
        s.error = "too many results";
        return s;
      }
      Parameter& r = s.results[s.result_count++];
      if (!internal::parse_type(c, r)) {
        s.error = "unknown type of a result";
        return s;
      }
      c.blanks();
      r.name = c.word();
      if (c.take(',')) c.blanks();
    }
  } else if (!internal::parse_type(c, s.results[s.result_count++])) {
    s.error = "unknown type of the result";
    return s;
  }
  if (c.at != text.size()) s.error = "text after the result";
  return s;
}

/// Parameters that only say where or how a result is stored are settled on the host and never reach
/// a rule or a kernel.
constexpr bool reaches_kernel(const Parameter& p) {
  return p.kind != Kind::layout && p.kind != Kind::device && p.kind != Kind::memory_format &&
         p.kind != Kind::generator && p.name != "pin_memory" && p.name != "non_blocking";
}

}  // namespace taper
