#include "taper/runtime/extension/llm/tools/marks.h"

#include <algorithm>

namespace taper::llm {

const std::vector<CallMarks>& call_marks(std::optional<ToolStyle> style) {
  static const std::vector<CallMarks> none,
      tagged = {{"<tool_call>", "</tool_call>"}}, listed = {{"[TOOL_CALLS]", ""}},
      sectioned = {{"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", true}},
      actions = {{"<|START_ACTION|>", "<|END_ACTION|>", true},
                 {"Action: ```json", "```"},
                 {"Action:\n```json", "```"}},
      fenced = {{"<tool_call>", "</tool_call>"},
                {"```json", "```"},
                {"```tool_code", "```"},
                {"```tool_call", "```"},
                {"```python", "```"},
                {"<start_function_call>", "<end_function_call>", true}};
  if (!style) return none;
  switch (*style) {
    case ToolStyle::tagged:
      return tagged;
    case ToolStyle::listed:
      return listed;
    case ToolStyle::sectioned:
      return sectioned;
    case ToolStyle::actions:
      return actions;
    case ToolStyle::fenced:
      return fenced;
    default:
      return none;
  }
}

const std::vector<std::string_view>& hidden_marks(const AnswerStyle& style) {
  static const std::vector<std::string_view> none,
      of_channels = {channel_marks::start,     channel_marks::channel, channel_marks::message,
                     channel_marks::constrain, channel_marks::end,     channel_marks::call,
                     channel_marks::done},
      of_sections = {"<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>",
                     "<|END_RESPONSE|>",   "<|START_TEXT|>",   "<|END_TEXT|>",
                     "<|START_ACTION|>",   "<|END_ACTION|>"},
      of_calls = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",    "<｜tool▁call▁begin｜>",
                  "<｜tool▁call▁end｜>",    "<｜tool▁sep｜>",          "<｜tool▁outputs▁begin｜>",
                  "<｜tool▁outputs▁end｜>", "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"};
  if (style.form == AnswerForm::channels) return of_channels;
  if (style.form == AnswerForm::sections) return of_sections;
  return style.tools == ToolStyle::sectioned ? of_calls : none;
}

FoundMark find_first(std::string_view text, const std::vector<std::string_view>& marks) {
  FoundMark first;
  for (const std::string_view mark : marks) {
    const size_t at = text.find(mark);
    if (at < first.at) first = {at, mark};
  }
  return first;
}

std::string without(std::string_view text, const std::vector<std::string_view>& marks) {
  std::string rest;
  for (const char c : text) {
    rest += c;
    for (const std::string_view mark : marks)
      if (rest.size() >= mark.size() &&
          rest.compare(rest.size() - mark.size(), mark.size(), mark) == 0)
        rest.resize(rest.size() - mark.size());
  }
  return rest;
}

size_t possible_start(std::string_view text, const std::vector<std::string_view>& marks) {
  size_t longest = 0;
  for (const std::string_view mark : marks) {
    size_t length = std::min(text.size(), mark.size() - 1);
    while (length > longest && text.substr(text.size() - length) != mark.substr(0, length))
      --length;
    longest = std::max(longest, length);
  }
  return longest;
}

std::string_view beginning_of_thoughts(AnswerForm form) {
  switch (form) {
    case AnswerForm::plain:
      return "<think>";
    case AnswerForm::bracketed:
      return "[THINK]";
    case AnswerForm::sections:
      return "<|START_THINKING|>";
    default:
      return "";
  }
}

std::string_view end_of_thoughts(AnswerForm form) {
  switch (form) {
    case AnswerForm::plain:
      return "</think>";
    case AnswerForm::bracketed:
      return "[/THINK]";
    case AnswerForm::sections:
      return "<|END_THINKING|>";
    default:
      return "";
  }
}

std::string_view beginning_of_text(AnswerForm form) {
  if (form == AnswerForm::channels) return "<|channel|>final<|message|>";
  return form == AnswerForm::sections ? "<|START_RESPONSE|>" : "";
}

bool has_special_marks(const AnswerStyle& style) {
  return style.tools || style.form != AnswerForm::plain;
}

}  // namespace taper::llm
