#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace taper::llm {

/// Bytes [begin, end) of a text.
struct Range {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

inline std::string_view part(std::string_view text, Range range) {
  return text.substr(range.begin, range.size());
}

/// A text on its way to tokens. If the caller asked for it, each byte knows which bytes of the
/// input it was made from.
struct Text {
  std::string bytes;
  bool tracked = false;
  std::vector<Range> origins;  ///< one for each byte if `tracked`
};

/// Bytes [begin, end) of an input, each character made from itself.
Text text_of(std::string_view input, Range range, bool tracked);

/// Writes a changed copy of a text.
class TextBuilder {
 public:
  explicit TextBuilder(const Text& from);

  /// Bytes of the old text, unchanged.
  void copy(Range range);
  /// New bytes, which were made from the character at `at` of the old text.
  void put(std::string_view bytes, size_t at);
  /// New characters for those in `range`: the first for the first, the second for the second;
  /// more are made from the last one.
  void replace(Range range, std::string_view characters);

  size_t size() const { return made_.bytes.size(); }
  Text finish() { return std::move(made_); }

 private:
  const Text& from_;
  Text made_;
};

}  // namespace taper::llm
