// Reads the keys of a config.json, by any of the names that families use for the same thing.
#pragma once
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/base/error.h"

namespace taper::llm {

/// A key that is null counts as absent.
class Keys {
 public:
  using Names = std::initializer_list<const char*>;
  explicit Keys(const nlohmann::json& json) : json_(json) {}

  const nlohmann::json* find(Names names) const {
    for (const char* name : names)
      if (const auto at = json_.find(name); at != json_.end() && !at->is_null()) return &*at;
    return nullptr;
  }
  std::optional<int64_t> integer_if(Names names) const { return get<int64_t>(names, "an integer"); }
  std::optional<double> number_if(Names names) const { return get<double>(names, "a number"); }
  int64_t integer(Names names) const { return required(integer_if(names), names); }
  int64_t integer(Names names, int64_t otherwise) const {
    return integer_if(names).value_or(otherwise);
  }
  /// In [1, 2^30]: divisors, and factors of sizes.
  int64_t positive(Names names, int64_t otherwise) const {
    const int64_t value = integer(names, otherwise);
    if (value < 1 || value > int64_t{1} << 30)
      throw ExportError(std::string("config: ") + *names.begin() + " must be in [1, 2^30], it is " +
                        std::to_string(value));
    return value;
  }
  double positive_number(Names names, double otherwise) const {
    const double value = number(names, otherwise);
    if (!(value > 0))
      throw ExportError(std::string("config: ") + *names.begin() + " must be above 0, it is " +
                        std::to_string(value));
    return value;
  }
  double number(Names names, double otherwise) const {
    return number_if(names).value_or(otherwise);
  }
  bool flag(Names names, bool otherwise) const {
    return get<bool>(names, "true or false").value_or(otherwise);
  }
  std::string text(Names names, const std::string& otherwise) const {
    return get<std::string>(names, "a text").value_or(otherwise);
  }
  template <class T>
  std::vector<T> list(Names names) const {
    return get<std::vector<T>>(names, "a list").value_or(std::vector<T>());
  }
  /// Throws if the key is true: `what` is not supported.
  void refuse(Names names, const char* what) const {
    if (flag(names, false))
      throw ExportError(std::string("config: ") + *names.begin() + " is true, and " + what +
                        " is not supported");
  }

 private:
  template <class T>
  std::optional<T> get(Names names, const char* wanted) const {
    const nlohmann::json* value = find(names);
    if (value == nullptr) return {};
    const bool fits = std::is_same_v<T, bool>          ? value->is_boolean()
                      : std::is_same_v<T, std::string> ? value->is_string()
                      : std::is_same_v<T, int64_t>     ? value->is_number_integer()
                      : std::is_same_v<T, double>      ? value->is_number()
                                                       : value->is_array();
    try {
      if (fits) return value->get<T>();
    } catch (const nlohmann::json::exception&) {  // an element of another type
    }
    throw ExportError(std::string("config: ") + *names.begin() + " must be " + wanted + ", it is " +
                      value->dump().substr(0, 60));
  }
  template <class T>
  static T required(const std::optional<T>& value, Names names) {
    if (!value) throw ExportError(std::string("config: ") + *names.begin() + " is missing");
    return *value;
  }

  const nlohmann::json& json_;
};

}  // namespace taper::llm
