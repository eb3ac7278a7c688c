// `value is test`.
#include "taper/runtime/extension/llm/chat/operations.h"
#include "taper/runtime/extension/llm/chat/text_functions.h"
#include "taper/runtime/extension/llm/failure.h"

namespace taper::llm::chat {
namespace {

int64_t integer_of(const Value& value) {
  if (!value.is_integral()) refuse(std::string("an integer is needed, not ") + type_name(value));
  return value.integer();
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  for (const char* known : names) {
    if (name == known) return true;
  }
  return false;
}

bool compare(const std::string& name, const Value& a, const Value& b) {
  if (is_one_of(name, {"eq", "equalto"})) return equal(a, b);
  if (name == "ne") return !equal(a, b);
  if (is_one_of(name, {"lt", "lessthan"})) return less(a, b);
  if (is_one_of(name, {"gt", "greaterthan"})) return less(b, a);
  if (name == "le") return !less(b, a);
  if (name == "ge") return !less(a, b);
  if (name == "in") return contains(b, a);
  if (name == "sameas") return a.kind() == b.kind() && equal(a, b);
  if (name == "divisibleby") return binary("%", a, b).integer() == 0;
  refuse("No test named '" + name + "'.");
}

}  // namespace

bool apply_test(const std::string& name, const Value& input, const Arguments& arguments) {
  using Kind = Value::Kind;
  if (name == "defined") return !input.is_undefined();
  if (name == "undefined") return input.is_undefined();
  if (name == "none") return input.is_none();
  if (name == "true") return input.is(Kind::boolean) && is_true(input);
  if (name == "false") return input.is(Kind::boolean) && !is_true(input);
  if (name == "boolean") return input.is(Kind::boolean);
  if (name == "integer") return input.is(Kind::integer);
  if (name == "float") return input.is(Kind::real);
  if (name == "number") return input.is_number();
  if (name == "string") return input.is_string();
  if (name == "mapping") return input.is(Kind::dict);
  if (is_one_of(name, {"sequence", "iterable"})) {
    // Jinja goes over an undefined value, which has no elements
    return input.is_sequence() || input.is_string() || input.is(Kind::dict) || input.is_undefined();
  }
  if (name == "callable") return input.is(Kind::function);
  if (name == "odd") return integer_of(input) % 2 != 0;
  if (name == "even") return integer_of(input) % 2 == 0;
  if (name == "lower") return text_of(input) == lower(text_of(input));
  if (name == "upper") return text_of(input) == upper(text_of(input));
  return compare(name, input, ArgumentReader(arguments, name.c_str()).get(0, "other"));
}

}  // namespace taper::llm::chat
