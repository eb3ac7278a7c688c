#include "taper/runtime/extension/llm/chat/operations.h"

#include <algorithm>
#include <cmath>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm::chat {
namespace {

[[noreturn]] void unsupported(const std::string& op, const Value& a, const Value& b) {
  if (a.is_undefined()) refuse(a.reason());
  if (b.is_undefined()) refuse(b.reason());
  if (op == "+" && a.is_string()) {
    refuse(std::string("can only concatenate str (not \"") + type_name(b) + "\") to str");
  }
  refuse("unsupported operand type(s) for " + op + ": '" + type_name(a) + "' and '" + type_name(b) +
         "'");
}

Value joined(const Value& a, const Value& b) {
  if (a.list().size() + b.list().size() > max_list) refuse("a list becomes too long");
  List list = a.list();
  list.insert(list.end(), b.list().begin(), b.list().end());
  return Value(std::move(list), a.kind());
}

Value repeated(const Value& value, int64_t times) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  const size_t size = value.is_string() ? value.string().size() : value.list().size();
  const size_t most = value.is_string() ? max_text : max_list;
  if (size != 0 && count > most / size) refuse("a repetition becomes too long");
  if (value.is_string()) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += value.string();
    return text;
  }
  List list;
  for (size_t i = 0; i < count; ++i) {
    list.insert(list.end(), value.list().begin(), value.list().end());
  }
  return Value(std::move(list), value.kind());
}

// Python rounds the quotient down, and the remainder has the divisor's sign.
int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) break;
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) break;
  }
  if (exponent > 0) refuse("an integer becomes too large");
  return result;
}

Value on_integers(const std::string& op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  if (op == "+") {
    overflows = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflows = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflows = __builtin_mul_overflow(a, b, &result);
  } else if (op == "**") {
    return power(a, b);
  } else {
    if (b == 0) refuse("division by zero");
    if (op == "/") return static_cast<double>(a) / static_cast<double>(b);
    const int64_t quotient = floor_divide(a, b);
    result = op == "//"
                 ? quotient
                 : static_cast<int64_t>(static_cast<uint64_t>(a) -
                                        static_cast<uint64_t>(quotient) * static_cast<uint64_t>(b));
  }
  if (overflows) refuse("an integer becomes too large");
  return result;
}

Value on_reals(const std::string& op, double a, double b) {
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  if (op == "**") return std::pow(a, b);
  if (b == 0) refuse("float division by zero");
  if (op == "/") return a / b;
  if (op == "//") return std::floor(a / b);
  return a - b * std::floor(a / b);
}

// The place in a sequence that an index means, which may count from the end.
bool place_of(int64_t index, size_t size, size_t& place) {
  const auto count = static_cast<int64_t>(size);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return false;
  place = static_cast<size_t>(index);
  return true;
}

std::string what_is(const Value& value) { return std::string(type_name(value)) + " object"; }

Value dict_method(const Value& dict, const std::string& name) {
  if (name == "get") {
    Value get = Function([dict](const Arguments& arguments) -> Value {
      const ArgumentReader in(arguments, "get");
      const Value* found = dict.find(in.need(0, "key"));
      return found != nullptr ? *found : in.get(1, "default", Value::none());
    });
    get.hold(dict);
    return get;
  }
  const bool keys = name == "keys", values = name == "values";
  if (!keys && !values && name != "items") return Value();
  Value method = Function([dict, keys, values](const Arguments&) -> Value {
    List list;
    for (const auto& [key, value] : dict.dict()) {
      list.push_back(keys ? key : values ? value : Value::tuple({key, value}));
    }
    return list;
  });
  method.hold(dict);
  return method;
}

bool changes_values(const std::string& name) {
  for (const char* known : {"append", "clear", "extend", "insert", "pop", "popitem", "remove",
                            "reverse", "setdefault", "sort", "update"}) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace

Value binary(const std::string& op, const Value& a, const Value& b) {
  if (op == "~") {
    std::string text = text_of(a) + text_of(b);
    if (text.size() > max_text) refuse("a text becomes too long");
    return text;
  }
  if (a.is_integral() && b.is_integral()) return on_integers(op, a.integer(), b.integer());
  if (a.is_number() && b.is_number()) return on_reals(op, a.real(), b.real());
  if (op == "+" && a.is_string() && b.is_string()) {
    if (a.string().size() + b.string().size() > max_text) refuse("a text becomes too long");
    return a.string() + b.string();
  }
  if (op == "+" && a.is_sequence() && a.kind() == b.kind()) return joined(a, b);
  if (op == "*" && (a.is_string() || a.is_sequence()) && b.is_integral()) {
    return repeated(a, b.integer());
  }
  if (op == "*" && (b.is_string() || b.is_sequence()) && a.is_integral()) {
    return repeated(b, a.integer());
  }
  if (op == "%" && a.is_string()) return format_percent(a.string(), b);
  unsupported(op, a, b);
}

bool contains(const Value& container, const Value& wanted) {
  if (container.is_string()) {
    if (!wanted.is_string()) {
      refuse(wanted.is_undefined()
                 ? wanted.reason()
                 : std::string("'in <string>' requires string as left operand, not ") +
                       type_name(wanted));
    }
    return container.string().find(wanted.string()) != std::string::npos;
  }
  if (container.is_dict()) return container.find(wanted) != nullptr;
  if (container.is_undefined()) return false;
  const List list = elements_of(container);
  return std::any_of(list.begin(), list.end(), [&](const Value& v) { return equal(v, wanted); });
}

List elements_of(const Value& value) {
  if (value.is_sequence()) return value.list();
  List list;
  if (value.is_undefined()) return list;
  if (value.is_dict()) {
    for (const auto& [key, member] : value.dict()) list.push_back(key);
    return list;
  }
  if (!value.is_string()) refuse(std::string("'") + type_name(value) + "' object is not iterable");
  const std::string& text = value.string();
  for (size_t at = 0; at < text.size(); at += character_length(text[at])) {
    list.push_back(text.substr(at, character_length(text[at])));
  }
  return list;
}

Value attribute(const Value& value, const std::string& name) {
  if (value.is_undefined()) refuse(value.reason());
  Value method;
  if (value.is(Value::Kind::dict)) method = dict_method(value, name);
  if (value.is_string()) method = text_method(value, name);
  if (!method.is_undefined()) return method;
  if (value.is_dict()) {
    if (const Value* found = value.find(name)) return *found;
  }
  const bool mutable_type = value.is(Value::Kind::list) || value.is(Value::Kind::dict);
  if (mutable_type && changes_values(name)) {
    return Value::undefined("access to attribute '" + name + "' of '" + type_name(value) +
                            "' object is unsafe.");
  }
  return Value::undefined("'" + what_is(value) + "' has no attribute '" + name + "'");
}

Value item(const Value& value, const Value& key) {
  if (value.is_undefined()) refuse(value.reason());
  if (value.is_dict()) {
    if (const Value* found = value.find(key)) return *found;
  }
  if ((value.is_sequence() || value.is_string()) && key.is_integral()) {
    const List list = value.is_string() ? elements_of(value) : List();
    const List& elements = value.is_string() ? list : value.list();
    size_t place = 0;
    if (place_of(key.integer(), elements.size(), place)) return elements[place];
    return Value::undefined(what_is(value) + " has no element " + std::to_string(key.integer()));
  }
  if (key.is_string()) return attribute(value, key.string());
  return Value::undefined(what_is(value) + " has no element " + quoted(key));
}

Value slice(const Value& value, const Value& begin, const Value& end, const Value& step) {
  if (value.is_undefined()) refuse(value.reason());
  if (!value.is_string() && !value.is_sequence()) refuse(what_is(value) + " cannot be cut");
  for (const Value* bound : {&begin, &end, &step}) {
    if (!bound->is_none() && !bound->is_integral())
      refuse("slice indices must be integers or None");
  }
  const List list = elements_of(value);
  const auto size = static_cast<int64_t>(list.size());
  const int64_t by = step.is_none() ? 1 : step.integer();
  if (by == 0) refuse("slice step cannot be zero");
  const auto limit = [&](const Value& bound, int64_t otherwise) {
    if (bound.is_none()) return otherwise;
    const int64_t place = bound.integer() < 0 ? bound.integer() + size : bound.integer();
    return by > 0 ? std::clamp<int64_t>(place, 0, size) : std::clamp<int64_t>(place, -1, size - 1);
  };
  const int64_t first = limit(begin, by > 0 ? 0 : size - 1), last = limit(end, by > 0 ? size : -1);
  List part;
  for (int64_t i = first; by > 0 ? i < last : i > last;) {
    part.push_back(list[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (!value.is_string()) return Value(std::move(part), value.kind());
  std::string text;
  for (const Value& character : part) text += character.string();
  return text;
}

Value ArgumentReader::get(size_t place, const char* name, Value otherwise) const {
  if (place < arguments_.positional.size()) return arguments_.positional[place];
  for (const auto& [given, value] : arguments_.named) {
    if (given == name) return value;
  }
  return otherwise;
}

Value ArgumentReader::need(size_t place, const char* name) const {
  const Value missing = Value::undefined("missing");
  Value value = get(place, name, missing);
  if (value.is_undefined()) refuse(std::string(function_) + " needs an argument '" + name + "'");
  return value;
}

int64_t ArgumentReader::integer(size_t place, const char* name, int64_t otherwise) const {
  const Value value = get(place, name);
  if (value.is_undefined() || value.is_none()) return otherwise;
  if (!value.is_integral()) refuse(std::string(function_) + ": '" + name + "' is not an integer");
  return value.integer();
}

std::string ArgumentReader::text(size_t place, const char* name,
                                 const std::string& otherwise) const {
  const Value value = get(place, name);
  if (value.is_undefined() || value.is_none()) return otherwise;
  if (!value.is_string()) refuse(std::string(function_) + ": '" + name + "' is not a text");
  return value.string();
}

bool ArgumentReader::flag(size_t place, const char* name, bool otherwise) const {
  const Value value = get(place, name);
  return value.is_undefined() ? otherwise : is_true(value);
}

}  // namespace taper::llm::chat
