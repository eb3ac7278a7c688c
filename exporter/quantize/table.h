// Tables and numbers of reports for a terminal. Internal.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace taper::quantize {

/// With so many digits behind the point; "exact" for infinity.
std::string number_text(double value, int digits);
/// "(84, 120)"
std::string sizes_text(const std::vector<int64_t>& sizes);

/// Lines of columns, each as wide as its longest text. All but the last are aligned to the right.
void write_table(std::ostream& out, const std::vector<std::vector<std::string>>& lines);

}  // namespace taper::quantize
