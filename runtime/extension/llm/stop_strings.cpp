#include "taper/runtime/extension/llm/stop_strings.h"

#include <algorithm>
#include <utility>

namespace taper::llm {
namespace {

// The length of the longest end of `text` that `string` begins with.
size_t possible_start(std::string_view text, std::string_view string) {
  size_t length = std::min(text.size(), string.size() - 1);
  while (length > 0 && text.substr(text.size() - length) != string.substr(0, length)) --length;
  return length;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  strings_.erase(std::remove(strings_.begin(), strings_.end(), ""), strings_.end());
}

std::string StopStrings::push(std::string_view piece) {
  if (stopped_) return {};
  waiting_ += piece;
  size_t first = std::string::npos, held = 0;
  for (const std::string& string : strings_) {
    first = std::min(first, waiting_.find(string));
    held = std::max(held, possible_start(waiting_, string));
  }
  stopped_ = first != std::string::npos;
  const size_t ready = stopped_ ? first : waiting_.size() - held;
  std::string text = waiting_.substr(0, ready);
  waiting_.erase(0, stopped_ ? waiting_.size() : ready);
  return text;
}

std::string StopStrings::finish() {
  stopped_ = false;
  return std::exchange(waiting_, {});
}

}  // namespace taper::llm
