#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/tools.h"

namespace taper::llm {

/// What begins a call inside of an answer, and what ends it. Without an end the call goes on to the
/// end of the answer.
struct CallMarks {
  std::string_view begin, end;
  bool are_special = false;  ///< special tokens: no part of an answer shows them

  /// A block of code. Ordinary answers have such blocks, too.
  bool are_fence() const { return end == "```"; }
};
const std::vector<CallMarks>& call_marks(std::optional<ToolStyle> style);

/// Special tokens of the family. No part of an answer shows them, wherever a model writes them.
const std::vector<std::string_view>& hidden_marks(const AnswerStyle& style);

/// The calls between such marks. `name`: of the function, if a header said it; then the text is its
/// arguments.
std::vector<ToolCall> calls_between_marks(std::string_view text, ToolStyle style,
                                          const std::string& name);

// ---- messages of gpt-oss: `<|channel|>analysis<|message|>…<|end|>`

namespace channel_marks {
inline constexpr std::string_view start = "<|start|>", channel = "<|channel|>",
                                  message = "<|message|>", constrain = "<|constrain|>",
                                  end = "<|end|>", call = "<|call|>", done = "<|return|>";
}  // namespace channel_marks
/// The first of these marks in a text.
struct FoundMark {
  size_t at = std::string_view::npos;
  std::string_view mark;
};
FoundMark find_first(std::string_view text, const std::vector<std::string_view>& marks);
/// A text without these marks.
std::string without(std::string_view text, const std::vector<std::string_view>& marks);
/// The length of the longest end of `text` with which a mark begins, without being all of it.
size_t possible_start(std::string_view text, const std::vector<std::string_view>& marks);

}  // namespace taper::llm
