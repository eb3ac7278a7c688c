#pragma once
#include <string_view>

#include "taper/runtime/extension/llm/tokenizer/normalizer.h"

namespace taper::llm {

/// Who reads a character map: the two disagree about which of several entries counts.
enum class CharacterMapRules : uint8_t {
  sentencepiece,  ///< the longest entry at each place
  hugging_face,   ///< whole grapheme clusters of up to 5 bytes, then characters
};

/// The character map that SentencePiece stores in a model: a double-array trie (Darts) from
/// character sequences to what replaces them. Throws a Failure if `map` is damaged.
Normalizer precompiled(std::string_view map, CharacterMapRules rules);

/// The bytes of a text in base 64. Throws a Failure if it is none.
std::string from_base64(std::string_view text);

}  // namespace taper::llm
