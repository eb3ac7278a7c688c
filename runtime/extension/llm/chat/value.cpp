#include "taper/runtime/extension/llm/chat/value.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm::chat {
namespace {

constexpr int max_depth = 200;

int compare(const std::string& a, const std::string& b) { return a.compare(b); }

/// Counts the comparisons within one, of which there may be exponentially many: lists share their
/// parts.
class Comparison {
 public:
  Comparison() {
    if (depth_++ == 0) count_ = 0;
    if (++count_ > most) {
      --depth_;
      refuse("two values are too large to be compared");
    }
  }
  ~Comparison() { --depth_; }
  Comparison(const Comparison&) = delete;

 private:
  static constexpr int64_t most = 1'000'000;
  static thread_local int64_t count_;
  static thread_local int depth_;
};
thread_local int64_t Comparison::count_ = 0;
thread_local int Comparison::depth_ = 0;

bool less_lists(const List& a, const List& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (!equal(a[i], b[i])) return less(a[i], b[i]);
  }
  return a.size() < b.size();
}

bool equal_dicts(const Value& a, const Value& b) {
  if (a.dict().size() != b.dict().size()) return false;
  for (const auto& [key, value] : a.dict()) {
    const Value* other = b.find(key);
    if (other == nullptr || !equal(value, *other)) return false;
  }
  return true;
}

}  // namespace

Value Value::undefined(std::string why) {
  Value value;
  value.string_ = std::make_shared<const std::string>(std::move(why));
  return value;
}

Value Value::large_integer(std::string digits) {
  Value value(std::strtod(digits.c_str(), nullptr));
  value.string_ = std::make_shared<const std::string>(std::move(digits));
  return value;
}

Value::Value(std::string value)
    : kind_(Kind::string), string_(std::make_shared<const std::string>(std::move(value))) {}
Value::Value(List value, Kind kind)
    : kind_(kind), list_(std::make_shared<const List>(std::move(value))) {
  for (const Value& item : *list_) hold(item);
}
Value::Value(Dict value, Kind kind) : kind_(kind), dict_(std::make_shared<Dict>(std::move(value))) {
  for (const auto& [key, item] : *dict_) {
    hold(key);
    hold(item);
  }
}
Value::Value(Function value)
    : kind_(Kind::function), function_(std::make_shared<const Function>(std::move(value))) {}

void Value::hold(const Value& inner) {
  if (inner.depth_ >= max_depth) {
    refuse("values are nested deeper than " + std::to_string(max_depth));
  }
  // what a namespace holds may change, and is let go separately
  const int depth = inner.is(Kind::name_space) ? 1 : inner.depth_ + 1;
  depth_ = static_cast<uint16_t>(std::max<int>(depth_, depth));
}

std::string Value::reason() const { return string_ == nullptr ? "a value is undefined" : *string_; }

const Value* Value::find(const Value& key) const {
  for (const auto& [name, value] : dict()) {
    if (equal(name, key)) return &value;
  }
  return nullptr;
}

bool is_true(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
    case Value::Kind::none:
      return false;
    case Value::Kind::boolean:
    case Value::Kind::integer:
      return value.integer() != 0;
    case Value::Kind::real:
      return value.real() != 0;
    case Value::Kind::string:
      return !value.string().empty();
    case Value::Kind::list:
    case Value::Kind::tuple:
      return !value.list().empty();
    case Value::Kind::dict:
      return !value.dict().empty();
    default:
      return true;
  }
}

bool equal(const Value& a, const Value& b) {
  const Comparison comparison;
  if (a.is_integral() && b.is_integral()) return a.integer() == b.integer();
  if (a.is_number() && b.is_number()) return a.real() == b.real();
  if (a.kind() != b.kind()) return false;
  if (a.is_string()) return a.string() == b.string();
  if (a.is_sequence())
    return std::equal(a.list().begin(), a.list().end(), b.list().begin(), b.list().end(), equal);
  if (a.is(Value::Kind::name_space)) return &a.dict() == &b.dict();
  if (a.is_dict()) return equal_dicts(a, b);
  return a.is_none() || a.is_undefined();
}

bool less(const Value& a, const Value& b) {
  const Comparison comparison;
  if (a.is_integral() && b.is_integral()) return a.integer() < b.integer();
  if (a.is_number() && b.is_number()) return a.real() < b.real();
  if (a.is_string() && b.is_string()) return compare(a.string(), b.string()) < 0;
  if (a.is_sequence() && b.kind() == a.kind()) return less_lists(a.list(), b.list());
  refuse(std::string("'<' not supported between instances of '") + type_name(a) + "' and '" +
         type_name(b) + "'");
}

const char* type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      return "Undefined";
    case Value::Kind::none:
      return "NoneType";
    case Value::Kind::boolean:
      return "bool";
    case Value::Kind::integer:
      return "int";
    case Value::Kind::real:
      return "float";
    case Value::Kind::string:
      return "str";
    case Value::Kind::list:
      return "list";
    case Value::Kind::tuple:
      return "tuple";
    case Value::Kind::dict:
      return "dict";
    case Value::Kind::name_space:
      return "Namespace";
    default:
      return "function";
  }
}

namespace {

Value from_json(const nlohmann::ordered_json& json, int depth) {
  if (depth > max_depth) refuse("a value is nested deeper than " + std::to_string(max_depth));
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    List list;
    for (const auto& item : json) list.push_back(from_json(item, depth + 1));
    return list;
  }
  if (json.is_object()) {
    Dict dict;
    for (const auto& [key, item] : json.items()) dict.emplace_back(key, from_json(item, depth + 1));
    return dict;
  }
  return Value::none();
}

}  // namespace

Value from_json(const nlohmann::ordered_json& json) { return from_json(json, 0); }

}  // namespace taper::llm::chat
