#include "taper/exporter/io/format_text.h"

#include <cstdio>

namespace taper::io {

std::string bytes_text(int64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  const char* units[] = {"kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes) / 1000;
  int unit = 0;
  while (value >= 999.95 && unit < 3) value /= 1000, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %s", value, units[unit]);
  return text;
}

std::string counted(int64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& parts, const std::string& separator) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) text += (i > 0 ? separator : "") + parts[i];
  return text;
}

std::string printable(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = [&](size_t k) {
      return k < text.size() ? static_cast<unsigned char>(text[k]) : 0;
    };
    // U+0080 to U+009F control terminals too: c2 80 to c2 9f
    const bool is_wide_control = byte(i) == 0xc2 && byte(i + 1) >= 0x80 && byte(i + 1) < 0xa0;
    char hex[8];
    if (text[i] == '\n') {
      result += "\\n";
    } else if (byte(i) < ' ' || byte(i) == 0x7f || is_wide_control) {
      std::snprintf(hex, sizeof hex, "\\x%02x", byte(i));
      result += hex;
    } else {
      result += text[i];
      continue;
    }
    if (is_wide_control) ++i;
  }
  return result;
}

std::string percent_text(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", whole > 0 ? 100 * part / whole : 0.0);
  return text;
}

}  // namespace taper::io
