// JSON whose errors say where they are: "graph_module.graph.nodes[3].target: must be a text".
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace taper::pt2 {

/// Parses a text. Drops the texts under `dropped` keys. Throws io::FileError, which begins with
/// `file`, for damage, for a key that an object has twice, and for deeper nesting than PyTorch's
/// files have.
nlohmann::json parse_json(std::string_view text, const std::string& file,
                          const std::vector<std::string_view>& dropped = {});

/// A value, and the path to it from the root. It owns nothing and lives on the stack while the
/// value is read.
class Json {
 public:
  Json(const nlohmann::json& value, const std::string& file) : value_(value), file_(file) {}

  /// The member of an object; throws if there is none.
  Json at(const char* key) const;
  bool has(const char* key) const { return value_.is_object() && value_.contains(key); }
  bool is_null() const { return value_.is_null(); }
  bool is_text() const { return value_.is_string(); }
  /// Calls f(Json) for every element of a list.
  template <class F>
  void each(F&& f) const {
    if (!value_.is_array()) fail("must be a list");
    for (size_t i = 0; i < value_.size(); ++i) f(Json(value_[i], *this, nullptr, i));
  }
  /// Calls f(key, Json) for every member of an object.
  template <class F>
  void members(F&& f) const {
    if (!value_.is_object()) fail("must be an object");
    for (auto m = value_.begin(); m != value_.end(); ++m)
      f(m.key(), Json(m.value(), *this, m.key().c_str(), 0));
  }
  /// Calls f(tag, Json) for the only member of a union.
  template <class F>
  auto choice(F&& f) const {
    if (!value_.is_object() || value_.size() != 1)
      fail("must be an object with exactly one member, has " +
           std::to_string(value_.is_object() ? value_.size() : 0));
    const auto m = value_.begin();
    return f(m.key(), Json(m.value(), *this, m.key().c_str(), 0));
  }

  int64_t integer() const;
  double real() const;  ///< also from the texts "NaN", "Infinity", "-Infinity"
  bool boolean() const;
  const std::string& text() const;

  [[noreturn]] void fail(const std::string& what) const;

 private:
  Json(const nlohmann::json& value, const Json& parent, const char* key, size_t index)
      : value_(value), file_(parent.file_), parent_(&parent), key_(key), index_(index) {}
  std::string path() const;

  const nlohmann::json& value_;
  const std::string& file_;
  const Json* parent_ = nullptr;
  const char* key_ = nullptr;  ///< nullptr: an element of a list
  size_t index_ = 0;
};

}  // namespace taper::pt2
