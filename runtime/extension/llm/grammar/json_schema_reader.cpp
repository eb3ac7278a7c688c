#include <algorithm>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/grammar/gbnf.h"
#include "taper/runtime/extension/llm/grammar/json_schema.h"
#include "taper/runtime/extension/llm/grammar/pattern.h"

namespace taper::llm::json_text {
namespace {

using Json = nlohmann::json;
constexpr size_t most_bytes = size_t{1} << 22, most_schemas = 100'000;
constexpr int most_depth = 256;

// Before the parser, whose values are destroyed one inside of the other.
void check_size(std::string_view text) {
  if (text.size() > most_bytes) {
    refuse("the schema has " + std::to_string(text.size()) + " bytes; " +
           std::to_string(most_bytes) + " are the most");
  }
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++i;
    if (in_string) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > most_depth) {
      refuse("the schema has more than " + std::to_string(most_depth) +
             " values one inside of the other");
    }
  }
}

std::string pointer_escaped(const std::string& key) {
  std::string escaped;
  for (const char c : key) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return escaped;
}

class Reader {
 public:
  explicit Reader(const Json& document) : document_(document) {
    result_->schemas.resize(2);
    result_->schemas[never].types = 0;
    result_->schemas[never].path = "false";
  }

  std::shared_ptr<const JsonSchema> read() {
    result_->root = id_of(document_, "#");
    while (!pending_.empty()) {
      const Pending next = pending_.front();
      pending_.pop_front();
      at_ = next.path;
      Schema schema;
      schema.path = next.path;
      read_schema(*next.json, schema);
      result_->schemas[next.id] = std::move(schema);
    }
    collect_names();
    make_plans(*result_);
    return result_;
  }

 private:
  struct Pending {
    const Json* json;
    SchemaId id;
    std::string path;
  };

  [[noreturn]] void wrong(const std::string& keyword, const std::string& why) const {
    refuse(at_ + "/" + keyword + ": " + why);
  }

  SchemaId add(Schema schema) {
    if (result_->schemas.size() >= most_schemas) {
      refuse("there are more than " + std::to_string(most_schemas) + " schemas");
    }
    result_->schemas.push_back(std::move(schema));
    return static_cast<SchemaId>(result_->schemas.size() - 1);
  }
  // Reads a schema later, so that no chain of references is too long.
  SchemaId id_of(const Json& json, const std::string& path) {
    if (json.is_boolean()) return json.get<bool>() ? any : never;
    if (!json.is_object()) refuse(path + ": a schema must be an object, true or false");
    const auto [place, is_new] = ids_.try_emplace(&json, 0);
    if (is_new) {
      place->second = add({});
      pending_.push_back({&json, place->second, path});
    }
    return place->second;
  }
  SchemaId member(const Json& json, const std::string& keyword) {
    return id_of(json, at_ + "/" + keyword);
  }
  std::vector<SchemaId> members(const Json& list, const std::string& keyword) {
    if (!list.is_array() || list.empty()) wrong(keyword, "it must be a list of schemas");
    std::vector<SchemaId> ids;
    for (size_t i = 0; i < list.size(); ++i) {
      ids.push_back(member(list[i], keyword + "/" + std::to_string(i)));
    }
    return ids;
  }
  template <class Use>
  void each_property(const Json& object, const std::string& keyword, Use use) {
    if (!object.is_object()) wrong(keyword, "it must be an object");
    for (const auto& [name, value] : object.items()) {
      use(name, value, keyword + "/" + pointer_escaped(name));
    }
  }

  // ---- values of keywords

  double number(const Json& value, const std::string& keyword) const {
    if (!value.is_number()) wrong(keyword, "it must be a number");
    return value.get<double>();
  }
  uint32_t count(const Json& value, const std::string& keyword) const {
    const double n = value.is_number() ? value.get<double>() : -1;
    if (n < 0 || n != std::floor(n)) wrong(keyword, "it must be a whole number, not below 0");
    return n >= unbounded ? unbounded : static_cast<uint32_t>(n);
  }
  std::vector<std::string> strings(const Json& list, const std::string& keyword) const {
    std::vector<std::string> all;
    if (!list.is_array()) wrong(keyword, "it must be a list of texts");
    for (const Json& text : list) {
      if (!text.is_string()) wrong(keyword, "it must be a list of texts");
      all.push_back(text.get<std::string>());
    }
    return all;
  }
  std::string text(const Json& value, const std::string& keyword) const {
    if (!value.is_string()) wrong(keyword, "it must be a text");
    return value.get<std::string>();
  }

  // ---- texts

  uint32_t add_text(Rules rules) {
    result_->texts.push_back(std::make_shared<const Rules>(std::move(rules)));
    return static_cast<uint32_t>(result_->texts.size() - 1);
  }
  uint32_t pattern(const std::string& text, const std::string& keyword) {
    const auto [place, is_new] = patterns_.try_emplace(text, 0);
    try {
      if (is_new) place->second = add_text(rules_of_pattern(text));
    } catch (const Failure& failure) {
      wrong(keyword, failure.why);
    }
    return place->second;
  }
  uint32_t one_of_texts(const std::vector<std::string>& texts) {
    Expression all = Expression::of(Expression::Kind::alternatives);
    for (const std::string& text : texts) all.parts.push_back(Expression::of_text(text));
    Rules rules;
    const uint32_t start = RuleBuilder(rules).build(all, Rules::end);
    rules.rules.push_back({"root", 1, start});
    check_rules(rules);
    return add_text(std::move(rules));
  }

  // ---- const and enum

  SchemaId schema_of_value(const Json& value) {
    Schema s;
    s.path = at_;
    if (value.is_string()) {
      s.types = string_type;
      s.texts.push_back(one_of_texts({value.get<std::string>()}));
    } else if (value.is_number()) {
      s.types = number_type | integer_type;
      s.minimum = s.maximum = value.get<double>();
    } else if (value.is_array()) {
      s.types = array_type;
      for (const Json& item : value) s.prefix_items.push_back(schema_of_value(item));
      s.items = never;
      s.min_items = s.max_items = static_cast<uint32_t>(value.size());
    } else if (value.is_object()) {
      s.types = object_type;
      for (const auto& [name, member] : value.items()) {
        s.properties[name] = schema_of_value(member);
        s.required.push_back(name);
      }
      s.additional = never;
    } else {
      s.types = value.is_null() ? null_type : value.get<bool>() ? true_type : false_type;
    }
    return add(std::move(s));
  }

  void read_enum(const Json& values, Schema& s) {
    if (!values.is_array() || values.empty()) wrong("enum", "it must be a list of values");
    std::vector<std::string> texts;
    Group group{Group::Op::any, {}, ""};
    for (const Json& value : values) {
      if (value.is_string()) {
        texts.push_back(value.get<std::string>());
      } else {
        group.parts.push_back(schema_of_value(value));
      }
    }
    if (group.parts.empty()) {
      s.types &= string_type;
      s.texts.push_back(one_of_texts(texts));
      return;
    }
    if (!texts.empty()) {
      Schema of_texts;
      of_texts.path = at_;
      of_texts.types = string_type;
      of_texts.texts.push_back(one_of_texts(texts));
      group.parts.push_back(add(std::move(of_texts)));
    }
    s.groups.push_back(std::move(group));
  }

  void read_type(const Json& value, Schema& s) {
    const std::vector<std::string> names =
        value.is_string() ? std::vector{value.get<std::string>()} : strings(value, "type");
    uint8_t types = 0;
    for (const std::string& name : names) {
      if (name == "null")
        types |= null_type;
      else if (name == "boolean")
        types |= true_type | false_type;
      else if (name == "integer")
        types |= integer_type;
      else if (name == "number")
        types |= integer_type | number_type;
      else if (name == "string")
        types |= string_type;
      else if (name == "array")
        types |= array_type;
      else if (name == "object")
        types |= object_type;
      else
        wrong("type", "there is no type \"" + name + "\"");
    }
    s.types &= types;
  }

  // ---- references

  const Json& target(const std::string& reference) const {
    if (reference.empty() || reference[0] != '#' || (reference.size() > 1 && reference[1] != '/')) {
      wrong("$ref", "only references inside of the schema are supported, such as \"#/$defs/x\"");
    }
    try {
      return document_.at(Json::json_pointer(decoded(reference.substr(1))));
    } catch (const Json::exception&) {
      wrong("$ref", "there is no \"" + reference + "\"");
    }
  }
  // %25 becomes a percent sign.
  static std::string decoded(const std::string& text) {
    std::string plain;
    for (size_t i = 0; i < text.size(); ++i) {
      const std::string hex = text.substr(i + (i < text.size()), 2);
      if (text[i] == '%' && hex.size() == 2 &&
          hex.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos) {
        plain += static_cast<char>(std::stoi(hex, nullptr, 16));
        i += 2;
      } else {
        plain += text[i];
      }
    }
    return plain;
  }

  // ---- keywords

  void read_schema(const Json& json, Schema& s) {
    for (const auto& [keyword, value] : json.items()) {
      if (!read_general(keyword, value, s) && !read_scalar(keyword, value, s) &&
          !read_array(keyword, value, s) && !read_object(keyword, value, s)) {
        refuse_unsupported(keyword);
      }
    }
    read_conditional(json, s);
  }

  // Others say nothing about values, such as `title`.
  void refuse_unsupported(const std::string& keyword) const {
    for (const char* known : {"unevaluatedProperties", "unevaluatedItems", "$dynamicRef",
                              "$recursiveRef", "dependencies", "additionalItems"}) {
      if (keyword == known) wrong(keyword, "this keyword is not supported");
    }
  }

  bool read_general(const std::string& keyword, const Json& value, Schema& s) {
    using Op = Group::Op;
    if (keyword == "type")
      read_type(value, s);
    else if (keyword == "enum")
      read_enum(value, s);
    else if (keyword == "const")
      s.groups.push_back({Op::all, {schema_of_value(value)}, ""});
    else if (keyword == "$ref")
      s.groups.push_back({Op::all, {reference(value)}, ""});
    else if (keyword == "allOf")
      s.groups.push_back({Op::all, members(value, keyword), ""});
    else if (keyword == "anyOf")
      s.groups.push_back({Op::any, members(value, keyword), ""});
    else if (keyword == "oneOf")
      s.groups.push_back({Op::one, members(value, keyword), ""});
    else if (keyword == "not")
      s.groups.push_back({Op::none, {member(value, keyword)}, ""});
    else
      return false;
    return true;
  }
  SchemaId reference(const Json& value) {
    const std::string name = text(value, "$ref");
    return id_of(target(name), name);
  }

  void read_conditional(const Json& json, Schema& s) {
    if (!json.contains("if")) return;
    Group group{Group::Op::if_then_else, {}, ""};
    for (const char* keyword : {"if", "then", "else"}) {
      group.parts.push_back(json.contains(keyword) ? member(json[keyword], keyword) : any);
    }
    s.groups.push_back(std::move(group));
  }

  bool read_scalar(const std::string& keyword, const Json& value, Schema& s) {
    if (keyword == "minLength")
      s.min_length = count(value, keyword);
    else if (keyword == "maxLength")
      s.max_length = count(value, keyword);
    else if (keyword == "pattern")
      s.texts.push_back(pattern(text(value, keyword), keyword));
    else if (keyword == "format")
      read_format(text(value, keyword), s);
    else if (keyword == "minimum")
      raise(s, number(value, keyword), false);
    else if (keyword == "exclusiveMinimum")
      raise(s, number(value, keyword), true);
    else if (keyword == "maximum")
      lower(s, number(value, keyword), false);
    else if (keyword == "exclusiveMaximum")
      lower(s, number(value, keyword), true);
    else if (keyword == "multipleOf") {
      s.multiple_of = number(value, keyword);
      if (!(s.multiple_of > 0)) wrong(keyword, "it must be above 0");
    } else
      return false;
    return true;
  }
  void read_format(const std::string& format, Schema& s) {
    const char* rules = grammar_of_format(format);
    if (rules != nullptr) s.texts.push_back(add_text(read_gbnf(rules)));
  }
  static void raise(Schema& s, double minimum, bool excludes) {
    if (minimum < s.minimum) return;
    s.excludes_minimum = excludes || (minimum == s.minimum && s.excludes_minimum);
    s.minimum = minimum;
  }
  static void lower(Schema& s, double maximum, bool excludes) {
    if (maximum > s.maximum) return;
    s.excludes_maximum = excludes || (maximum == s.maximum && s.excludes_maximum);
    s.maximum = maximum;
  }

  bool read_array(const std::string& keyword, const Json& value, Schema& s) {
    if (keyword == "prefixItems")
      s.prefix_items = members(value, keyword);
    else if (keyword == "items")
      s.items = member(value, keyword);
    else if (keyword == "contains")
      s.contains = member(value, keyword);
    else if (keyword == "minContains")
      s.min_contains = count(value, keyword);
    else if (keyword == "maxContains")
      s.max_contains = count(value, keyword);
    else if (keyword == "minItems")
      s.min_items = count(value, keyword);
    else if (keyword == "maxItems")
      s.max_items = count(value, keyword);
    else if (keyword == "uniqueItems")
      s.unique_items = value.is_boolean() && value.get<bool>();
    else
      return false;
    return true;
  }

  bool read_object(const std::string& keyword, const Json& value, Schema& s) {
    if (keyword == "properties") {
      each_property(value, keyword,
                    [&](const std::string& name, const Json& json, const std::string& path) {
                      s.properties[name] = member(json, path);
                    });
    } else if (keyword == "patternProperties") {
      each_property(value, keyword,
                    [&](const std::string& name, const Json& json, const std::string& path) {
                      s.pattern_properties.emplace_back(pattern(name, keyword), member(json, path));
                    });
    } else if (keyword == "dependentRequired") {
      each_property(value, keyword,
                    [&](const std::string& name, const Json& json, const std::string& path) {
                      s.dependent_required[name] = strings(json, path);
                    });
    } else if (keyword == "dependentSchemas") {
      each_property(value, keyword,
                    [&](const std::string& name, const Json& json, const std::string& path) {
                      s.groups.push_back({Group::Op::dependent, {member(json, path)}, name});
                    });
    } else if (keyword == "additionalProperties")
      s.additional = member(value, keyword);
    else if (keyword == "propertyNames")
      s.property_names = member(value, keyword);
    else if (keyword == "required")
      s.required = strings(value, keyword);
    else if (keyword == "minProperties")
      s.min_properties = count(value, keyword);
    else if (keyword == "maxProperties")
      s.max_properties = count(value, keyword);
    else
      return false;
    return true;
  }

  void collect_names() {
    std::set<std::string> names;
    for (const Schema& s : result_->schemas) {
      for (const auto& [name, id] : s.properties) names.insert(name);
      names.insert(s.required.begin(), s.required.end());
      for (const auto& [name, others] : s.dependent_required) {
        names.insert(name);
        names.insert(others.begin(), others.end());
      }
      for (const Group& group : s.groups) {
        if (group.op == Group::Op::dependent) names.insert(group.property);
      }
    }
    result_->names.assign(names.begin(), names.end());
  }

  const Json& document_;
  std::shared_ptr<JsonSchema> result_ = std::make_shared<JsonSchema>();
  std::unordered_map<const Json*, SchemaId> ids_;
  std::unordered_map<std::string, uint32_t> patterns_;
  std::deque<Pending> pending_;
  std::string at_;
};

}  // namespace

std::shared_ptr<const JsonSchema> read_json_schema(std::string_view text) {
  check_size(text);
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::exception& e) {
    refuse(std::string("the schema is not JSON: ") + e.what());
  }
  return Reader(document).read();
}

}  // namespace taper::llm::json_text
