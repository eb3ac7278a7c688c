#pragma once
#include <functional>
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer/normalizer.h"

namespace taper::llm {

/// A text, cut into words: ranges in order, of which none is empty.
struct Words {
  Text text;
  std::vector<Range> ranges;
  bool starts_input = true;  ///< false: added tokens or other words lie before the text
};

/// Cuts words into smaller ones, or changes them. The functions below make them.
using PreTokenizer = std::function<void(Words&)>;

/// What becomes of a delimiter, with the names of tokenizer.json.
enum class SplitBehavior : uint8_t { removed, isolated, with_previous, with_next, contiguous };

/// Cuts at the matches of a pattern. `invert`: what lies between them are the delimiters.
PreTokenizer split(Regex pattern, SplitBehavior behavior, bool invert);
/// Cuts at single characters.
PreTokenizer split(std::function<bool(char32_t)> is_delimiter, SplitBehavior behavior);

/// Blanks become `replacement`, which words begin with.
enum class PrependScheme : uint8_t { never, first, always };
PreTokenizer metaspace(std::string replacement, PrependScheme scheme, bool splits);

/// Cuts before each `mark` that does not follow another one.
PreTokenizer cut_before(std::string mark);

/// A blank before each word that begins with none.
PreTokenizer add_prefix_space();

/// Applies a normalizer to each word.
PreTokenizer change_words(Normalizer normalizer);

}  // namespace taper::llm
