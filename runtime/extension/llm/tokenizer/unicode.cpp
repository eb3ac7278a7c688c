#include "taper/runtime/extension/llm/tokenizer/unicode.h"

#include <utf8proc.h>

#include <cstdlib>
#include <new>

namespace taper::llm {
namespace {

const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xC0) == 0x80; }

// The second byte decides whether a character is overlong, a surrogate, or above U+10FFFF.
bool second_byte_fits(uint8_t first, uint8_t second) {
  const uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return second >= low && second <= high;
}

// The first character of the canonical or compatibility decomposition.
char32_t first_of_decomposition(char32_t c) {
  utf8proc_int32_t parts[32];
  int boundary = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<utf8proc_int32_t>(c), parts, 32,
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT), &boundary);
  return count < 1 ? c : static_cast<char32_t>(parts[0]);
}

// True if a composition, or an exchange of marks, may join the character to those before it.
bool may_join(char32_t c) {
  if (c < 0x300) return false;
  const char32_t first = first_of_decomposition(c);
  const bool vowel_or_final = first >= 0x1160 && first <= 0x11FF;  // of Hangul
  const utf8proc_category_t kind = category(first);
  return vowel_or_final || kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_MC ||
         kind == UTF8PROC_CATEGORY_ME ||
         utf8proc_get_property(static_cast<utf8proc_int32_t>(first))->combining_class != 0;
}

utf8proc_option_t options_of(NormalForm form) {
  const bool composes = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  return static_cast<utf8proc_option_t>(UTF8PROC_STABLE |
                                        (composes ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) |
                                        (compatible ? UTF8PROC_COMPAT : 0));
}

}  // namespace

char32_t character_at(std::string_view text, size_t at) {
  const uint8_t* p = bytes_of(text) + at;
  switch (character_length(text[at])) {
    case 1:
      return p[0];
    case 2:
      return static_cast<char32_t>((p[0] & 0x1F) << 6 | (p[1] & 0x3F));
    case 3:
      return static_cast<char32_t>((p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F));
    default:
      return static_cast<char32_t>((p[0] & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 |
                                   (p[3] & 0x3F));
  }
}

void append_character(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c);
    return;
  }
  if (c < 0x800) {
    text += static_cast<char>(0xC0 | c >> 6);
  } else {
    if (c < 0x10000) {
      text += static_cast<char>(0xE0 | c >> 12);
    } else {
      text += static_cast<char>(0xF0 | c >> 18);
      text += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    }
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
  }
  text += static_cast<char>(0x80 | (c & 0x3F));
}

int first_character(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return -1;
  const int length = static_cast<int>(character_length(text[0]));
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) == text.size()) return 0;
    const char byte = text[static_cast<size_t>(i)];
    if (!is_continuation(byte)) return -i;
    if (i == 1 && !second_byte_fits(first, static_cast<uint8_t>(byte))) return -1;
  }
  return length;
}

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const int length = first_character(text);
    const size_t used = length == 0 ? text.size() : static_cast<size_t>(std::abs(length));
    if (length > 0) {
      valid += text.substr(0, used);
    } else {
      valid += "\uFFFD";
    }
    text.remove_prefix(used);
  }
  return valid;
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const int length = first_character(text);
    if (length <= 0) return false;
    text.remove_prefix(static_cast<size_t>(length));
  }
  return true;
}

bool is_ascii(std::string_view text) {
  uint8_t all = 0;
  for (const char c : text) all = static_cast<uint8_t>(all | static_cast<uint8_t>(c));
  return all < 0x80;
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += !is_continuation(c);
  return count;
}

bool is_whitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  const utf8proc_category_t kind = category(c);
  return c == 0x85 || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
         kind == UTF8PROC_CATEGORY_ZP;
}

bool is_numeric(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_word(char32_t c) {
  const utf8proc_category_t kind = category(c);
  const bool letter = kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
  const bool mark = kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
  return letter || mark || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  }
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_CC;
}

bool is_nonspacing_mark(char32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }

bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

void append_lower(std::string& text, char32_t c) {
  if (c == 0x130) {
    text += "i\u0307";
  } else {
    append_character(text,
                     static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_upper(std::string& text, char32_t c) {
  if (c == 0xDF) {
    text += "SS";
  } else {
    append_character(text,
                     static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

bool is_letter(char32_t c) {
  return category(c) >= UTF8PROC_CATEGORY_LU && category(c) <= UTF8PROC_CATEGORY_LO;
}

bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }
bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU || category(c) == UTF8PROC_CATEGORY_LT;
}

size_t first_grapheme(std::string_view text) {
  if (text.empty()) return 0;
  utf8proc_int32_t state = 0;
  char32_t last = character_at(text, 0);
  size_t at = character_length(text[0]);
  while (at < text.size()) {
    const char32_t next = character_at(text, at);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last),
                                         static_cast<utf8proc_int32_t>(next), &state)) {
      break;
    }
    last = next;
    at += character_length(text[at]);
  }
  return at;
}

size_t first_segment(std::string_view text) {
  if (text.empty()) return 0;
  size_t at = character_length(text[0]);
  while (at < text.size() && may_join(character_at(text, at))) at += character_length(text[at]);
  return at;
}

size_t decomposition_length(char32_t c, NormalForm form) {
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  utf8proc_int32_t parts[32];
  int boundary = 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  const utf8proc_ssize_t count =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 32, options, &boundary);
  return count < 1 ? 1 : static_cast<size_t>(count);
}

std::string normalize(std::string_view text, NormalForm form) {
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t length = utf8proc_map(
      bytes_of(text), static_cast<utf8proc_ssize_t>(text.size()), &made, options_of(form));
  if (length == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (length < 0) return std::string(text);
  std::string normal(reinterpret_cast<char*>(made), static_cast<size_t>(length));
  std::free(made);
  return normal;
}

}  // namespace taper::llm
