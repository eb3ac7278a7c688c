#include "taper/runtime/extension/llm/tokenizer/normalizer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace taper::llm {
namespace {

// Calls `change(builder, character, range)` for each character.
template <class Change>
Normalizer each_character(Change change) {
  return [change](Text& text) {
    TextBuilder builder(text);
    for (size_t at = 0; at < text.bytes.size();) {
      const size_t length = character_length(text.bytes[at]);
      change(builder, character_at(text.bytes, at), Range{at, at + length});
      at += length;
    }
    text = builder.finish();
  };
}

void keep_range(Text& text, Range range) {
  if (range.size() == text.bytes.size()) return;
  TextBuilder builder(text);
  builder.copy(range);
  text = builder.finish();
}

size_t leading_whitespace(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && is_whitespace(character_at(text, at))) {
    at += character_length(text[at]);
  }
  return at;
}

// Where the white space at the end begins.
size_t trailing_whitespace(std::string_view text) {
  size_t end = 0;
  for (size_t at = 0; at < text.size();) {
    const bool blank = is_whitespace(character_at(text, at));
    at += character_length(text[at]);
    if (!blank) end = at;
  }
  return end;
}

// Writes the normal form of a segment. Each new character counts as made from the old one that
// holds the first part of its decomposition, with the parts in the order of the text.
void put_normalized(const Text& text, Range segment, NormalForm form, TextBuilder& builder) {
  const std::string_view old = part(text.bytes, segment);
  const std::string made = normalize(old, form);
  std::vector<size_t> sources;
  for (size_t at = 0; at < old.size(); at += character_length(old[at])) {
    sources.insert(sources.end(), decomposition_length(character_at(old, at), form), at);
  }
  size_t parts = 0;
  for (size_t at = 0; at < made.size();) {
    const size_t length = character_length(made[at]);
    const size_t source = sources[std::min(parts, sources.size() - 1)];
    builder.put(std::string_view(made).substr(at, length), segment.begin + source);
    parts += decomposition_length(character_at(made, at), form);
    at += length;
  }
}

// GPT-2 shows printable bytes of Latin-1 as they are, and the others from U+0100 on.
std::array<char32_t, 256> visible_characters() {
  std::array<char32_t, 256> table{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    table[byte] = printable ? byte : next++;
  }
  return table;
}

}  // namespace

const std::string& visible_byte(unsigned char byte) {
  static const std::array<std::string, 256> table = [] {
    std::array<std::string, 256> made;
    const std::array<char32_t, 256> characters = visible_characters();
    for (size_t i = 0; i < 256; ++i) append_character(made[i], characters[i]);
    return made;
  }();
  return table[byte];
}

int byte_of_visible(char32_t character) {
  static const std::array<int16_t, 0x144> table = [] {
    std::array<int16_t, 0x144> made;
    made.fill(-1);
    const std::array<char32_t, 256> characters = visible_characters();
    for (size_t i = 0; i < 256; ++i) made[characters[i]] = static_cast<int16_t>(i);
    return made;
  }();
  return character < table.size() ? table[character] : -1;
}

Normalizer unicode_normalizer(NormalForm form) {
  return [form](Text& text) {
    if (is_ascii(text.bytes)) return;
    TextBuilder builder(text);
    for (size_t at = 0; at < text.bytes.size();) {
      const std::string_view rest = std::string_view(text.bytes).substr(at);
      const Range segment{at, at + first_segment(rest)};
      if (is_ascii(part(text.bytes, segment))) {
        builder.copy(segment);
      } else {
        put_normalized(text, segment, form, builder);
      }
      at = segment.end;
    }
    text = builder.finish();
  };
}

Normalizer lowercase() {
  return each_character([](TextBuilder& builder, char32_t c, Range range) {
    std::string lower;
    append_lower(lower, c);
    builder.put(lower, range.begin);
  });
}

Normalizer strip_accents() {
  return each_character([](TextBuilder& builder, char32_t c, Range range) {
    if (!is_nonspacing_mark(c)) builder.copy(range);
  });
}

Normalizer strip(bool left, bool right) {
  return [left, right](Text& text) {
    const size_t end = right ? trailing_whitespace(text.bytes) : text.bytes.size();
    const size_t begin = left ? std::min(end, leading_whitespace(text.bytes)) : 0;
    keep_range(text, {begin, end});
  };
}

Normalizer prepend(std::string prefix) {
  return [prefix](Text& text) {
    if (text.bytes.empty()) return;
    TextBuilder builder(text);
    builder.put(prefix, 0);
    builder.copy({0, text.bytes.size()});
    text = builder.finish();
  };
}

Normalizer replace(Regex pattern, std::string by) {
  return [pattern, by](Text& text) {
    Regex::Search search(pattern, text.bytes);
    Range match;
    if (!search.next(match)) return;
    TextBuilder builder(text);
    size_t done = 0;
    do {
      builder.copy({done, match.begin});
      builder.put(by, match.end - 1);
      done = match.end;
    } while (search.next(match));
    builder.copy({done, text.bytes.size()});
    text = builder.finish();
  };
}

Normalizer clean_text() {
  return each_character([](TextBuilder& builder, char32_t c, Range range) {
    if (c == 0 || c == 0xFFFD || is_control(c)) return;
    if (is_whitespace(c)) {
      builder.put(" ", range.begin);
    } else {
      builder.copy(range);
    }
  });
}

Normalizer space_ideographs() {
  return each_character([](TextBuilder& builder, char32_t c, Range range) {
    if (is_ideograph(c)) builder.put(" ", range.begin);
    builder.copy(range);
    if (is_ideograph(c)) builder.put(" ", range.begin);
  });
}

Normalizer collapse_blanks() {
  return [](Text& text) {
    TextBuilder builder(text);
    size_t blank = std::string::npos;  // a blank that a word may follow
    for (size_t at = 0; at < text.bytes.size(); ++at) {
      if (text.bytes[at] == ' ') {
        if (builder.size() > 0) blank = at;
        continue;
      }
      if (blank != std::string::npos) builder.copy({blank, blank + 1});
      blank = std::string::npos;
      builder.copy({at, at + 1});
    }
    text = builder.finish();
  };
}

Normalizer visible_bytes() {
  return [](Text& text) {
    TextBuilder builder(text);
    for (size_t at = 0; at < text.bytes.size(); ++at) {
      builder.put(visible_byte(static_cast<unsigned char>(text.bytes[at])), at);
    }
    text = builder.finish();
  };
}

}  // namespace taper::llm
