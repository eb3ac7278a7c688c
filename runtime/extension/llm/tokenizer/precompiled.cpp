#include "taper/runtime/extension/llm/tokenizer/precompiled.h"

#include <memory>
#include <vector>

#include "taper/runtime/extension/llm/failure.h"

namespace taper::llm {
namespace {

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  }
  return value;
}

class CharacterMap {
 public:
  // `map` is the trie's size, the trie, and the texts that end with a zero byte
  explicit CharacterMap(std::string_view map) {
    if (map.size() < 4) refuse("the precompiled character map is too short");
    const size_t trie_bytes = little_endian(map, 0);
    if (trie_bytes % 4 != 0 || trie_bytes == 0 || trie_bytes > map.size() - 4) {
      refuse("the precompiled character map names a trie of " + std::to_string(trie_bytes) +
             " bytes, and has " + std::to_string(map.size() - 4));
    }
    for (size_t at = 4; at < 4 + trie_bytes; at += 4) units_.push_back(little_endian(map, at));
    texts_ = map.substr(4 + trie_bytes);
    if (texts_.empty() || texts_.back() != '\0') {
      refuse("the texts of the precompiled character map do not end");
    }
  }

  struct Entry {
    bool found = false;
    size_t length = 0;      // bytes of the key
    std::string_view text;  // what replaces it
  };

  // The first (shortest) entry that `text` begins with, or the longest.
  Entry find(std::string_view text, bool longest) const {
    Entry found;
    size_t node = offset_of(units_[0]);
    for (size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      node ^= byte;
      if (node >= units_.size() || label_of(units_[node]) != byte) break;
      const bool ends_here = (units_[node] >> 8 & 1) != 0;
      node ^= offset_of(units_[node]);
      if (node >= units_.size()) break;
      if (!ends_here) continue;
      const size_t place = units_[node] & 0x7FFFFFFF;
      if (place >= texts_.size()) break;
      const size_t end = texts_.find('\0', place);
      found = {true, i + 1, std::string_view(texts_).substr(place, end - place)};
      if (!longest) break;
    }
    if (!is_valid_utf8(found.text)) return {};
    return found;
  }

 private:
  static size_t offset_of(uint32_t unit) {
    return static_cast<size_t>(unit >> 10) << ((unit & 0x200) >> 6);
  }
  static uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }

  std::vector<uint32_t> units_;
  std::string texts_;
};

void apply_longest(const CharacterMap& map, Text& text) {
  TextBuilder builder(text);
  for (size_t at = 0; at < text.bytes.size();) {
    const CharacterMap::Entry entry = map.find(std::string_view(text.bytes).substr(at), true);
    const size_t length = entry.found ? entry.length : character_length(text.bytes[at]);
    const Range range{at, at + length};
    if (entry.found) {
      builder.replace(range, entry.text);
    } else {
      builder.copy(range);
    }
    at = range.end;
  }
  text = builder.finish();
}

// Writes what the map makes of characters, and remembers where Hugging Face believes they came
// from: characters that vanish at the start of a text are not counted.
class GraphemeWriter {
 public:
  explicit GraphemeWriter(const Text& text) : text_(text), builder_(text) {}

  // `range` became `characters`
  void put(Range range, std::string_view characters) {
    if (characters.empty() && builder_.size() == 0) return;
    const size_t begin = cursor_;
    const size_t count = count_characters(part(text_.bytes, range));
    for (size_t i = 0; i < count; ++i) cursor_ += character_length(text_.bytes[cursor_]);
    builder_.replace({begin, cursor_}, characters);
  }
  Text finish() { return builder_.finish(); }

 private:
  const Text& text_;
  TextBuilder builder_;
  size_t cursor_ = 0;
};

void apply_to_graphemes(const CharacterMap& map, Text& text) {
  constexpr size_t longest_cluster = 5;
  GraphemeWriter writer(text);
  for (size_t at = 0; at < text.bytes.size();) {
    const size_t end = at + first_grapheme(std::string_view(text.bytes).substr(at));
    if (end - at <= longest_cluster) {
      const CharacterMap::Entry whole = map.find(part(text.bytes, {at, end}), false);
      if (whole.found) {
        writer.put({at, end}, whole.text);
        at = end;
        continue;
      }
    }
    while (at < end) {
      const Range range{at, at + character_length(text.bytes[at])};
      const CharacterMap::Entry entry = map.find(part(text.bytes, range), false);
      writer.put(range, entry.found ? entry.text : part(text.bytes, range));
      at = range.end;
    }
  }
  text = writer.finish();
}

int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

Normalizer precompiled(std::string_view map, CharacterMapRules rules) {
  const auto shared = std::make_shared<const CharacterMap>(map);
  const bool longest = rules == CharacterMapRules::sentencepiece;
  return [shared, longest](Text& text) {
    if (longest) {
      apply_longest(*shared, text);
    } else {
      apply_to_graphemes(*shared, text);
    }
  };
}

std::string from_base64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  for (const char c : text) {
    const int value = sextet(c);
    if (value < 0) refuse("the precompiled character map is not in base 64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xFF);
  }
  return bytes;
}

}  // namespace taper::llm
