// Reading a graph's text piece by piece: what parser.cpp is made of.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "taper/exporter/dim/dim.h"
#include "taper/runtime/core/tensor_ref.h"

namespace taper::ir {

/// A place in a text, and the smallest things one can read there. Blanks before them are skipped.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  /// Throws ExportError with the line and what stands here.
  [[noreturn]] void refuse(const std::string& expected) const;
  bool at_end();
  char peek();
  /// Whether `token` stands here. A token that is a word must end here, too. If so, moves behind
  /// it.
  bool take(std::string_view token);
  void expect(std::string_view token);
  std::string word();
  /// The name behind '%': a trailing ':' belongs to the type.
  std::string value_name();
  std::string string();
  int64_t integer();
  /// A number as the printer writes it: an integer, a real, true or false.
  Scalar number();
  bool next_is_digit_behind(char sign) const;

 private:
  void blanks();

  std::string_view text_;
  size_t at_ = 0;
};

/// A size expression as `Dim::to_string` writes it; `symbol` gives the symbol of a name.
Dim read_dim(Cursor& cursor, const std::function<Dim(std::string_view)>& symbol);

}  // namespace taper::ir
