#pragma once
#include <string>
#include <vector>

namespace taper::llm::chat {

// What methods and filters of text share.

std::string upper(const std::string& text);
std::string lower(const std::string& text);
/// The first character in upper case, the others in lower case.
std::string capitalized(const std::string& text);

enum class Ends : uint8_t { both, left, right };
/// Without white space at the ends, or without the characters of `set`, if it is not empty.
std::string stripped(const std::string& text, const std::string& set, Ends ends);

/// At most `count` times; below 0: all.
std::string replaced(const std::string& text, const std::string& old, const std::string& by,
                     int64_t count);

/// Without line ends.
std::vector<std::string> lines_of(const std::string& text);

}  // namespace taper::llm::chat
