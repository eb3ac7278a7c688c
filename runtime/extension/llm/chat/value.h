#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace taper::llm::chat {

class Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<Value, Value>>;  ///< in the order of insertion

/// The arguments of a call.
struct Arguments {
  List positional;
  std::vector<std::pair<std::string, Value>> named;
};
using Function = std::function<Value(const Arguments&)>;

/// A value of a template, with the rules of Python. Copies share lists and dicts, which no template
/// can change; a namespace it can.
class Value {
 public:
  enum class Kind : uint8_t {
    undefined,
    none,
    boolean,
    integer,
    real,
    string,
    list,
    tuple,
    dict,
    name_space,
    function,
  };

  Value() = default;  ///< undefined
  static Value none() { return Value(Kind::none); }
  /// `why` is the message for who uses the value.
  static Value undefined(std::string why);
  /// An integer beyond 64 bits: it computes as a real number, and is written as it stands.
  static Value large_integer(std::string digits);
  Value(bool value) : kind_(Kind::boolean), integer_(value) {}
  Value(int value) : kind_(Kind::integer), integer_(value) {}
  Value(int64_t value) : kind_(Kind::integer), integer_(value) {}
  Value(double value) : kind_(Kind::real), real_(value) {}
  Value(std::string value);
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(const char* value) : Value(std::string(value)) {}
  Value(List value, Kind kind = Kind::list);
  Value(Dict value, Kind kind = Kind::dict);
  Value(Function value);
  static Value tuple(List value) { return Value(std::move(value), Kind::tuple); }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_none() const { return kind_ == Kind::none; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_sequence() const { return kind_ == Kind::list || kind_ == Kind::tuple; }
  bool is_dict() const { return kind_ == Kind::dict || kind_ == Kind::name_space; }
  /// A number in Python, where True is 1.
  bool is_number() const { return is_integral() || kind_ == Kind::real; }
  bool is_integral() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }

  int64_t integer() const { return integer_; }
  double real() const { return is_integral() ? static_cast<double>(integer_) : real_; }
  const std::string& string() const { return *string_; }
  const List& list() const { return *list_; }
  const Dict& dict() const { return *dict_; }
  Dict& changeable_dict() { return *dict_; }
  const Function& function() const { return *function_; }
  /// Why an undefined value is that.
  std::string reason() const;

  const std::string* digits() const { return string_.get(); }

  /// Values of which one holds the other are destroyed one inside of the other. So their depth has
  /// a limit. This says that the value holds `inner`.
  void hold(const Value& inner);

  /// The value of a key, or nullptr.
  const Value* find(const Value& key) const;

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::undefined;
  uint16_t depth_ = 0;
  int64_t integer_ = 0;
  double real_ = 0;
  std::shared_ptr<const std::string> string_;
  std::shared_ptr<const List> list_;
  std::shared_ptr<Dict> dict_;
  std::shared_ptr<const Function> function_;
};

bool is_true(const Value& value);
bool equal(const Value& a, const Value& b);
/// a < b. Throws a Failure for values that have no order.
bool less(const Value& a, const Value& b);

/// Python's name of the type: "str", "NoneType".
const char* type_name(const Value& value);

/// str(value) and repr(value).
std::string text_of(const Value& value);
std::string quoted(const Value& value);

struct JsonStyle {
  int indent = -1;  ///< -1: on one line
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false, ascii = false;
};
/// json.dumps(value). Throws a Failure for what JSON cannot hold.
std::string to_json(const Value& value, const JsonStyle& style);

Value from_json(const nlohmann::ordered_json& json);

/// Python's shortest text of a number: 2.0, 1e+20.
std::string number_text(double number);

}  // namespace taper::llm::chat
