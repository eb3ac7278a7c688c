#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace taper::llm {

/// Bytes in the UTF-8 character that starts with this byte; 1 for a byte that starts none.
inline size_t character_length(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// The character at `at` of valid UTF-8.
char32_t character_at(std::string_view text, size_t at);

void append_character(std::string& text, char32_t character);

/// The bytes of the first complete and valid character of `text`. 0: a longer text could begin with
/// one. Negative: the number of bytes that no character begins with, a maximal part as Unicode
/// (chapter 3.9) recommends it for U+FFFD.
int first_character(std::string_view text);

/// `text`, with U+FFFD in the place of what is not UTF-8.
std::string valid_utf8(std::string_view text);
bool is_valid_utf8(std::string_view text);
bool is_ascii(std::string_view text);

size_t count_characters(std::string_view text);

bool is_whitespace(char32_t c);   ///< White_Space
bool is_numeric(char32_t c);      ///< Nd, Nl, No
bool is_word(char32_t c);         ///< letters, marks, digits, `_`: \w
bool is_punctuation(char32_t c);  ///< P*, and the marks of ASCII
bool is_control(char32_t c);      ///< Cc, Cf, Cs, Co, but not tab, newline and carriage return
bool is_nonspacing_mark(char32_t c);
bool is_ideograph(char32_t c);  ///< what BERT calls a Chinese character

/// Appends the lower case, which is two characters for U+0130.
void append_lower(std::string& text, char32_t c);

/// Appends the upper case, which is two characters for U+00DF.
void append_upper(std::string& text, char32_t c);
bool is_letter(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);

/// The bytes of the first grapheme cluster (UAX #29) of valid UTF-8.
size_t first_grapheme(std::string_view text);

enum class NormalForm : uint8_t { nfc, nfd, nfkc, nfkd };

/// The bytes at the start of valid UTF-8 that normalize without regard to what follows them.
size_t first_segment(std::string_view text);

/// The characters of which the full decomposition of `c` consists.
size_t decomposition_length(char32_t c, NormalForm form);

/// The Unicode normal form (UAX #15).
std::string normalize(std::string_view text, NormalForm form);

}  // namespace taper::llm
