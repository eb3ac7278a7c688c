#include "taper/exporter/quantize/table.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>

namespace taper::quantize {

std::string number_text(double value, int digits) {
  if (std::isinf(value)) return "exact";
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  return text + ")";
}

void write_table(std::ostream& out, const std::vector<std::vector<std::string>>& lines) {
  std::vector<size_t> widths;
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], line[i].size());
    }
  for (const auto& line : lines) {
    out << ' ';
    for (size_t i = 0; i < line.size(); ++i)
      if (i + 1 < line.size())
        out << ' ' << std::setw(static_cast<int>(widths[i])) << std::right << line[i] << ' ';
      else
        out << ' ' << line[i];
    out << '\n';
  }
}

}  // namespace taper::quantize
