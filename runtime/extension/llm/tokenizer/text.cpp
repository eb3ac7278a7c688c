#include "taper/runtime/extension/llm/tokenizer/text.h"

#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {

Text text_of(std::string_view input, Range range, bool tracked) {
  Text text{std::string(part(input, range)), tracked, {}};
  if (!tracked) return text;
  text.origins.reserve(range.size());
  for (size_t at = range.begin; at < range.end;) {
    const size_t length = character_length(input[at]);
    text.origins.insert(text.origins.end(), length, {at, at + length});
    at += length;
  }
  return text;
}

TextBuilder::TextBuilder(const Text& from) : from_(from) {
  made_.tracked = from.tracked;
  made_.bytes.reserve(from.bytes.size() + 16);
}

void TextBuilder::copy(Range range) {
  made_.bytes.append(from_.bytes, range.begin, range.size());
  if (made_.tracked) {
    const auto begin = from_.origins.begin();
    made_.origins.insert(made_.origins.end(), begin + static_cast<ptrdiff_t>(range.begin),
                         begin + static_cast<ptrdiff_t>(range.end));
  }
}

void TextBuilder::put(std::string_view bytes, size_t at) {
  made_.bytes += bytes;
  if (made_.tracked) made_.origins.insert(made_.origins.end(), bytes.size(), from_.origins[at]);
}

void TextBuilder::replace(Range range, std::string_view characters) {
  size_t at = range.begin;
  for (size_t i = 0; i < characters.size();) {
    const size_t length = character_length(characters[i]);
    put(characters.substr(i, length), at);
    i += length;
    const size_t next = at + character_length(from_.bytes[at]);
    if (next < range.end) at = next;
  }
}

}  // namespace taper::llm
