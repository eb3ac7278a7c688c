#pragma once
#include <optional>
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer/regex.h"

namespace taper::llm {

/// One step from tokens to text, as tokenizer.json names them.
struct DecoderStep {
  enum class Kind : uint8_t {
    byte_level,     ///< visible characters become bytes
    byte_fallback,  ///< a run of `<0x0A>` becomes text, or U+FFFD for each if it is not UTF-8
    fuse,           ///< all tokens become one
    strip,          ///< takes up to `start` and `stop` times `text` from the ends of a token
    replace,        ///< matches of `pattern` become `by`
    metaspace,      ///< `text` becomes a blank, but not before the first word if `drops_first`
    word_piece,     ///< blanks stand before tokens that do not begin with `text`
    suffix,         ///< `text` becomes a blank, but is dropped at the end
    words,          ///< blanks stand between tokens
  };
  Kind kind;
  std::string text, by;
  std::optional<Regex> pattern;
  size_t start = 0, stop = 0;
  bool drops_first = false;
  bool cleans_up = false;  ///< English: no blank before punctuation
};

/// Decodes tokens one after the other. The texts that it returns add up to the text of all tokens,
/// and each is valid UTF-8: bytes wait until their character is complete.
class DecoderStream {
 public:
  /// The steps must outlive the stream.
  explicit DecoderStream(const std::vector<DecoderStep>& steps);

  std::string push(std::string token);
  /// What still waits. The stream is then as new.
  std::string finish();

 private:
  struct State {
    bool started = false;
    bool fused = false;  // the tokens that arrive are parts of one
    std::string held;
    size_t count = 0;
  };

  void feed(size_t step, std::string token);
  void end(size_t step);
  void byte_level(size_t step, std::string_view token);
  void byte_fallback(size_t step, std::string token);
  void release_bytes(size_t step);
  void strip(size_t step, std::string token);
  void metaspace(size_t step, std::string_view token);
  void word_piece(size_t step, std::string token);
  void suffix(size_t step, std::string token);
  void replace(size_t step, std::string token);
  std::string take_complete();

  const std::vector<DecoderStep>* steps_;
  std::vector<State> states_;
  std::string bytes_;  // decoded, and not yet returned
};

}  // namespace taper::llm
