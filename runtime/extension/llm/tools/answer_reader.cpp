#include <algorithm>
#include <iterator>
#include <utility>

#include "taper/runtime/extension/llm/tools.h"

namespace taper::llm {
namespace {

constexpr std::string_view begin_thoughts = "<think>", end_thoughts = "</think>",
                           end_call = "</tool_call>", python_tag = "<|python_tag|>",
                           blanks = " \t\r\n";

/// The length of the longest end of `text` that `mark` begins with, without being all of it.
size_t possible_start(std::string_view text, std::string_view mark) {
  size_t length = std::min(text.size(), mark.size() - 1);
  while (length > 0 && text.substr(text.size() - length) != mark.substr(0, length)) --length;
  return length;
}

bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}
bool may_start_with(std::string_view text, std::string_view start) {
  return text.size() < start.size() && starts_with(start, text);
}

size_t end_of_blanks(std::string_view text) {
  return std::min(text.find_first_not_of(blanks), text.size());
}
size_t begin_of_last_blanks(std::string_view text) {
  return text.find_last_not_of(blanks) + 1;  // npos + 1 is 0
}

/// What begins a call inside of an answer; empty: nothing does.
std::string_view mark_of(std::optional<ToolStyle> style) {
  if (style == ToolStyle::tagged) return "<tool_call>";
  if (style == ToolStyle::listed) return "[TOOL_CALLS]";
  return {};
}

}  // namespace

AnswerReader::AnswerReader(const AnswerStyle& style)
    : style_(style),
      state_(style.begins_with_call       ? State::call
             : style.begins_with_thoughts ? State::thoughts
                                          : State::start),
      drops_blanks_(style.begins_with_thoughts) {}

AnswerParts AnswerReader::push(std::string_view piece) {
  AnswerParts parts;
  waiting_ += piece;
  while (step(parts, false)) continue;
  return parts;
}

AnswerParts AnswerReader::finish() {
  AnswerParts parts;
  while (step(parts, true)) continue;
  return parts;
}

// False: more of the answer is needed.
bool AnswerReader::step(AnswerParts& parts, bool ends) {
  if (waiting_.empty()) return false;
  switch (state_) {
    case State::start:
      return step_start(ends);
    case State::thoughts:
      return step_thoughts(parts, ends);
    case State::text:
      return step_text(parts, ends);
    default:
      return step_call(parts, ends);
  }
}

// A state begins behind a mark. Blanks beside the marks of thoughts belong to these.
void AnswerReader::enter(State state, size_t mark_end) {
  waiting_.erase(0, mark_end);
  state_ = state;
  drops_blanks_ = state == State::thoughts || state == State::start;
}

void AnswerReader::give(std::string& to, size_t count) {
  std::string front = waiting_.substr(0, count);
  waiting_.erase(0, count);
  if (drops_blanks_) front.erase(0, end_of_blanks(front));
  drops_blanks_ = drops_blanks_ && front.empty();
  to += front;
}

// The first characters decide whether thoughts, a call of the plain style or a text follow.
bool AnswerReader::step_start(bool ends) {
  const size_t first = end_of_blanks(waiting_);
  const std::string_view text = std::string_view(waiting_).substr(first);
  const bool is_plain = style_.tools == ToolStyle::plain;
  const bool may_follow = text.empty() || (may_think_ && may_start_with(text, begin_thoughts)) ||
                          (is_plain && may_start_with(text, python_tag));
  if (may_follow && !ends) return false;
  if (may_think_ && starts_with(text, begin_thoughts)) {
    enter(State::thoughts, first + begin_thoughts.size());
  } else if (is_plain && (starts_with(text, "{") || starts_with(text, python_tag))) {
    state_ = State::call;
  } else {
    state_ = State::text;
  }
  return true;
}

bool AnswerReader::step_thoughts(AnswerParts& parts, bool ends) {
  const std::string_view text = waiting_;
  const size_t end = text.find(end_thoughts);
  if (end != std::string::npos) {
    give(parts.thoughts, begin_of_last_blanks(text.substr(0, end)));
    enter(State::start, waiting_.find(end_thoughts) + end_thoughts.size());
    may_think_ = false;
    return true;
  }
  const size_t ready = ends ? text.size() : text.size() - possible_start(text, end_thoughts);
  give(parts.thoughts, begin_of_last_blanks(text.substr(0, ready)));
  return false;
}

// Blanks wait: they are no part of the text if a call follows.
bool AnswerReader::step_text(AnswerParts& parts, bool ends) {
  const std::string_view mark = mark_of(style_.tools), text = waiting_;
  const size_t at = mark.empty() ? std::string::npos : text.find(mark);
  if (at != std::string::npos) {
    give(parts.text, begin_of_last_blanks(text.substr(0, at)));
    enter(State::call, waiting_.find(mark) + mark.size());
    return true;
  }
  const bool may_call = !ends && !mark.empty();
  const size_t ready =
      may_call ? begin_of_last_blanks(text.substr(0, text.size() - possible_start(text, mark)))
               : text.size();
  give(parts.text, ready);
  return false;
}

// The answer's end ends every call. A call that cannot be read is text.
bool AnswerReader::step_call(AnswerParts& parts, bool ends) {
  const bool is_tagged = style_.tools == ToolStyle::tagged;
  const size_t end = is_tagged ? waiting_.find(end_call) : std::string::npos;
  if (end == std::string::npos && !ends) return false;
  const bool is_closed = end != std::string::npos;
  const std::string body = waiting_.substr(0, end);
  waiting_.erase(0, is_closed ? end + end_call.size() : end);
  state_ = State::text;
  std::string_view calls = body;
  calls.remove_prefix(end_of_blanks(calls));
  if (starts_with(calls, python_tag)) calls.remove_prefix(python_tag.size());
  std::vector<ToolCall> found = read_calls(calls);
  std::move(found.begin(), found.end(), std::back_inserter(parts.calls));
  if (found.empty())
    parts.text.append(mark_of(style_.tools)).append(body).append(is_closed ? end_call : "");
  return true;
}

}  // namespace taper::llm
