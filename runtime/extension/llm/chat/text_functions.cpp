#include "taper/runtime/extension/llm/chat/text_functions.h"

#include <algorithm>

#include "taper/runtime/extension/llm/chat/operations.h"
#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm::chat {
namespace {

bool is_stripped(char32_t c, const std::string& set) {
  if (set.empty()) return is_whitespace(c);
  for (size_t at = 0; at < set.size(); at += character_length(set[at])) {
    if (character_at(set, at) == c) return true;
  }
  return false;
}

template <class Append>
std::string each_character(const std::string& text, Append append) {
  std::string out;
  for (size_t at = 0; at < text.size(); at += character_length(text[at])) {
    append(out, character_at(text, at));
  }
  return out;
}

}  // namespace

std::string upper(const std::string& text) { return each_character(text, append_upper); }
std::string lower(const std::string& text) { return each_character(text, append_lower); }

std::string capitalized(const std::string& text) {
  return each_character(text, [](std::string& out, char32_t c) {
    out.empty() ? append_upper(out, c) : append_lower(out, c);
  });
}

std::string stripped(const std::string& text, const std::string& set, Ends ends) {
  size_t begin = 0, end = text.size();
  while (ends != Ends::right && begin < end && is_stripped(character_at(text, begin), set)) {
    begin += character_length(text[begin]);
  }
  while (ends != Ends::left && end > begin) {
    size_t last = end - 1;
    while (last > begin && (static_cast<uint8_t>(text[last]) & 0xC0) == 0x80) --last;
    if (!is_stripped(character_at(text, last), set)) break;
    end = last;
  }
  return text.substr(begin, end - begin);
}

std::string replaced(const std::string& text, const std::string& old, const std::string& by,
                     int64_t count) {
  std::string out;
  size_t done = 0;
  for (; count != 0 && done <= text.size(); --count) {
    // an empty text stands before each character, and at the end
    const size_t found = old.empty() ? done : text.find(old, done);
    if (found == std::string::npos) break;
    out.append(text, done, found - done);
    out += by;
    if (out.size() > max_text) refuse("a text becomes too long");
    done = found + old.size();
    if (!old.empty()) continue;
    const size_t length = done < text.size() ? character_length(text[done]) : 1;
    if (done < text.size()) out.append(text, done, length);
    done += length;
  }
  if (done < text.size()) out.append(text, done, std::string::npos);
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    const bool pair = text.compare(end, 2, "\r\n") == 0;
    begin = end + (pair ? 2 : 1);
  }
  return lines;
}

}  // namespace taper::llm::chat
