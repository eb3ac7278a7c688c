// Numbers and names for people.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace taper::io {

/// "640 B", "61.7 kB", "14.0 MB": decimal units.
std::string bytes_text(int64_t bytes);
/// "3 nodes", "1 node".
std::string counted(int64_t n, const std::string& noun);
std::string joined(const std::vector<std::string>& parts, const std::string& separator = ", ");
/// A text of a file as one line of a terminal or a comment: what controls them is written as
/// "\\n", "\\x1b", …. The rest, UTF-8 too, stays.
std::string printable(const std::string& text);
/// `part` of `whole` as "12.5 %".
std::string percent_text(double part, double whole);

}  // namespace taper::io
