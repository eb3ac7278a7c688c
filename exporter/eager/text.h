#pragma once
#include <charconv>
#include <string>

namespace taper::eager {

/// The shortest text that reads back as the same number: "0.1", "1e+300", "nan".
inline std::string to_text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

}  // namespace taper::eager
