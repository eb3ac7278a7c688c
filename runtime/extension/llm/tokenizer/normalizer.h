#pragma once
#include <functional>
#include <string>

#include "taper/runtime/extension/llm/tokenizer/regex.h"
#include "taper/runtime/extension/llm/tokenizer/text.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {

/// Changes a text before it is cut into words. The functions below make them.
using Normalizer = std::function<void(Text&)>;

Normalizer unicode_normalizer(NormalForm form);
Normalizer lowercase();
/// Removes the nonspacing marks, which `nfd` before it separates from letters.
Normalizer strip_accents();
Normalizer strip(bool left, bool right);
/// Puts `prefix` before a text that is not empty.
Normalizer prepend(std::string prefix);
Normalizer replace(Regex pattern, std::string by);
/// Drops control characters and turns each white space into a blank.
Normalizer clean_text();
/// Puts blanks around each ideograph.
Normalizer space_ideographs();
/// Leaves one blank of several, and none at the start and at the end.
Normalizer collapse_blanks();
/// Turns each byte into the visible character that GPT-2 writes for it.
Normalizer visible_bytes();

/// The visible character for a byte: `!` for `!`, `Ġ` for a blank.
const std::string& visible_byte(unsigned char byte);
/// The byte of a visible character, or -1.
int byte_of_visible(char32_t character);

}  // namespace taper::llm
