#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "taper/runtime/extension/llm/tokenizer/text.h"

namespace taper::llm {

/// A regular expression over valid UTF-8, with Unicode classes and look-around. PCRE2 runs it.
class Regex {
 public:
  /// Throws a Failure that quotes the pattern if it is wrong.
  explicit Regex(const std::string& pattern);

  /// One search through a text. It keeps its memory between calls, and belongs to one thread.
  class Search {
   public:
    Search(const Regex& regex, std::string_view text);
    /// Finds the next match that is not empty.
    bool next(Range& match);

   private:
    struct Freed {
      void operator()(void* data) const;
    };
    int match(size_t from);

    const Regex* regex_;
    std::string_view text_;
    size_t from_ = 0;
    std::unique_ptr<void, Freed> data_;
  };

 private:
  std::shared_ptr<const void> code_, limits_;
};

/// A pattern that matches `text` and nothing else.
std::string quoted_pattern(std::string_view text);

}  // namespace taper::llm
