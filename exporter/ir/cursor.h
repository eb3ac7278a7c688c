// Reads a graph's text piece by piece, for parser.cpp.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "taper/exporter/dim/dim.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::ir {

/// A place in a text, with functions that read the smallest pieces. They skip blanks first.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  /// Throws ExportError with the line, the expectation and the text at this place.
  [[noreturn]] void refuse(const std::string& expected) const;
  bool at_end();
  char peek();
  /// Whether `token` stands here; if so, moves behind it. If the token is a word, the word must end
  /// here, too.
  bool take(std::string_view token);
  void expect(std::string_view token);
  std::string word();
  /// The name behind '%', without a trailing ':', which belongs to the type.
  std::string value_name();
  std::string string();
  int64_t integer();
  /// A number in the printer's form: an integer, a real, true or false.
  Scalar number();
  bool next_is_digit_behind(char sign) const;

 private:
  void blanks();

  std::string_view text_;
  size_t at_ = 0;
};

/// A size expression in the form of `Dim::to_string`. `symbol` gives the symbol of a name.
Dim read_dim(Cursor& cursor, const std::function<Dim(std::string_view)>& symbol);

}  // namespace taper::ir
