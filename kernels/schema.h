// An operator's ATen schema, parsed. Usable at compile time (kernel checks) and at run time
// (importers).
#pragma once
#include <cstdint>
#include <string_view>

namespace taper {

/// The kind of an argument. Stored in programs: never change a value.
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

/// `add.Tensor(Tensor self, …) -> Tensor`, parsed. `error` says what is wrong with the text;
/// nullptr if nothing is.
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

// Written for the compiler's interpreter, which reads some 400 schemas in every file that calls
// operators. There each call takes time, but a table or a builtin takes hardly any.

constexpr bool same(std::string_view text, const char* word) {
  return __builtin_memcmp(text.data(), word, text.size()) == 0;  // `word` is as long
}

struct WordCharacters {
  bool has[256] = {};
  constexpr WordCharacters() {
    for (int i = 0; i < 26; ++i) has['a' + i] = has['A' + i] = true;
    for (int i = 0; i < 10; ++i) has['0' + i] = true;
    for (const int c : {int{'_'}, int{'.'}, int{':'}}) has[c] = true;
  }
};
inline constexpr WordCharacters word_characters;

struct Cursor {
  const char *at, *end;
  constexpr char peek() const { return at != end ? *at : '\0'; }
  constexpr bool take(char c) {
    if (at == end || *at != c) return false;
    ++at;
    return true;
  }
  constexpr void blanks() {
    while (at != end && *at == ' ') ++at;
  }
  constexpr std::string_view word() {
    const char* const begin = at;
    while (at != end && word_characters.has[static_cast<unsigned char>(*at)]) ++at;
    return {begin, static_cast<size_t>(at - begin)};
  }
};

constexpr Kind kind_of(std::string_view type) {
  switch (type.size()) {
    case 3:
      return same(type, "int") ? Kind::integer : same(type, "str") ? Kind::string : Kind::none;
    case 4:
      return same(type, "bool") ? Kind::boolean : Kind::none;
    case 5:
      return same(type, "float") ? Kind::real : Kind::none;
    case 6:
      return same(type, "Tensor")   ? Kind::tensor
             : same(type, "SymInt") ? Kind::integer
             : same(type, "Scalar") ? Kind::scalar
             : same(type, "Layout") ? Kind::layout
             : same(type, "Device") ? Kind::device
                                    : Kind::none;
    case 7:
      return same(type, "SymBool") ? Kind::boolean : Kind::none;
    case 9:
      return same(type, "Generator") ? Kind::generator : Kind::none;
    case 10:
      return same(type, "ScalarType") ? Kind::dtype : Kind::none;
    case 12:
      return same(type, "MemoryFormat") ? Kind::memory_format : Kind::none;
    default:
      return Kind::none;
  }
}

constexpr bool parse_type(Cursor& c, Parameter& p) {
  const std::string_view type = c.word();
  p.kind = kind_of(type);
  if (p.kind == Kind::none) return false;
  p.symbolic = (p.kind == Kind::integer || p.kind == Kind::boolean) && type[0] == 'S';
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
  internal::Cursor c{text.data(), text.data() + text.size()};
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
      const char* const begin = c.at;
      int depth = 0;
      for (char d = c.peek(); d && (depth || (d != ',' && d != ')')); d = c.peek()) {
        depth += (d == '[') - (d == ']');
        ++c.at;
      }
      p.fallback = {begin, static_cast<size_t>(c.at - begin)};
      p.has_fallback = true;
    }
    if (c.take(',')) {
      c.blanks();
    } else if (c.peek() != ')') {
      s.error = "expected ',' or ')' after a parameter";
      return s;
    }
  }
  if (c.end - c.at < 4 || !internal::same({c.at, 4}, " -> ")) {
    s.error = "expected ' -> '";
    return s;
  }
  c.at += 4;
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
  if (c.at != c.end) s.error = "text after the result";
  return s;
}

/// Whether rules and kernels get a parameter. The host settles those that only say where or how a
/// result is stored.
constexpr bool reaches_kernel(const Parameter& p) {
  return p.kind != Kind::layout && p.kind != Kind::device && p.kind != Kind::memory_format &&
         p.kind != Kind::generator &&
         (p.kind != Kind::boolean || (p.name != "pin_memory" && p.name != "non_blocking"));
}

}  // namespace taper
