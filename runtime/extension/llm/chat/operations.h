#pragma once
#include <string>

#include "taper/runtime/extension/llm/chat/value.h"

namespace taper::llm::chat {

// All throw a Failure with the text that Python has for the error.

/// The most characters of a text, and the most elements of a list, that a template may make.
inline constexpr size_t max_text = size_t{16} << 20, max_list = 1 << 20;

/// a op b, for + - * / // % ** ~.
Value binary(const std::string& op, const Value& a, const Value& b);
/// `item in container`
bool contains(const Value& container, const Value& item);
/// The elements that a loop goes over: of a list, the keys of a dict, the characters of a text.
List elements_of(const Value& value);

/// value.name: a member of a dict, or a method that belongs to the type.
Value attribute(const Value& value, const std::string& name);
Value item(const Value& value, const Value& key);
Value slice(const Value& value, const Value& begin, const Value& end, const Value& step);

/// A filter or test by its name.
Value apply_filter(const std::string& name, const Value& input, const Arguments& arguments);
bool apply_test(const std::string& name, const Value& input, const Arguments& arguments);
/// Throws unless there is a filter of this name.
void require_filter(const std::string& name);

/// A method of text, such as `strip`; undefined if there is none.
Value text_method(const Value& text, const std::string& name);

/// '%s-%d' % values
std::string format_percent(const std::string& format, const Value& values);

/// Reads arguments by place or by name.
class ArgumentReader {
 public:
  ArgumentReader(const Arguments& arguments, const char* function)
      : arguments_(arguments), function_(function) {}
  /// The argument at a place or with a name, or `otherwise`.
  Value get(size_t place, const char* name, Value otherwise = Value()) const;
  Value need(size_t place, const char* name) const;
  int64_t integer(size_t place, const char* name, int64_t otherwise) const;
  std::string text(size_t place, const char* name, const std::string& otherwise) const;
  bool flag(size_t place, const char* name, bool otherwise) const;

 private:
  const Arguments& arguments_;
  const char* function_;
};

}  // namespace taper::llm::chat
