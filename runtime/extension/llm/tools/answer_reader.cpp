#include <algorithm>
#include <iterator>
#include <utility>

#include "taper/runtime/extension/llm/tools.h"
#include "taper/runtime/extension/llm/tools/marks.h"

namespace taper::llm {
namespace {

constexpr std::string_view python_tag = "<|python_tag|>", blanks = " \t\r\n";

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

bool may_start_with(std::string_view text, const std::vector<std::string_view>& starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return may_start_with(text, start); });
}

/// What stands in front of a message of gpt-oss.
struct Header {
  std::string channel, recipient;
  bool is_call = false;
};

std::string word_after(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return "";
  text.remove_prefix(at + mark.size());
  return std::string(text.substr(0, text.find_first_of(" \t\r\n<")));
}

Header read_header(std::string_view text) {
  Header header{word_after(text, channel_marks::channel), word_after(text, "to=")};
  header.is_call = !header.recipient.empty();
  constexpr std::string_view space = "functions";
  if (starts_with(header.recipient, space)) {
    header.recipient.erase(0, space.size());
    if (starts_with(header.recipient, ".")) header.recipient.erase(0, 1);
    header.is_call = true;  // without a name here, the call has it inside
  }
  return header;
}

bool shows_marks(const CallMarks* marks) { return marks != nullptr && !marks->are_special; }

/// The tool that a name stands for: itself, or what is behind a module's name; empty: none of them.
std::string known_name(const std::string& name, const std::vector<std::string>& names) {
  for (const std::string& found : {name, name.substr(name.rfind('.') + 1)})
    if (std::find(names.begin(), names.end(), found) != names.end()) return found;
  return "";
}

/// No call is left if one of them calls something else than these tools.
void keep_known(std::vector<ToolCall>& calls, const std::vector<std::string>& names) {
  if (names.empty()) return;
  for (ToolCall& call : calls) call.name = known_name(call.name, names);
  if (std::any_of(calls.begin(), calls.end(), [](const ToolCall& c) { return c.name.empty(); }))
    calls.clear();
}

AnswerStyle checked(AnswerStyle style) {
  if (style.form != AnswerForm::channels && style.tools == ToolStyle::channels) style.tools.reset();
  return style;
}

}  // namespace

AnswerReader::AnswerReader(const AnswerStyle& style)
    : style_(checked(style)),
      state_(style.begins_with_call       ? State::call
             : style.begins_with_thoughts ? State::thoughts
             : style.begins_with_text     ? State::text
                                          : State::start),
      drops_blanks_(style.begins_with_thoughts) {
  const std::vector<CallMarks>& marks = call_marks(style_.tools);
  if (style.begins_with_call && !marks.empty()) call_ = &marks[0];
}

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
  const bool has_fence = call_ != nullptr && call_->are_fence();
  const bool waits_for_call = ends && state_ == State::call && (!called_.empty() || has_fence);
  if (waiting_.empty() && !waits_for_call) return false;
  switch (state_) {
    case State::start:
      return step_start(ends);
    case State::header:
      return step_header(ends);
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

// Of styles in which a whole answer may be a call.
bool AnswerReader::may_begin_with_call(std::string_view text, bool ends) const {
  if (style_.tools == ToolStyle::fenced) return starts_with(text, "{") || starts_with(text, "[");
  if (style_.tools != ToolStyle::plain) return false;
  return starts_with(text, "{") || starts_with(text, python_tag) ||
         (!ends && may_start_with(text, python_tag));
}

// The first characters decide whether thoughts, a call that is a whole answer, or a text follow.
bool AnswerReader::step_start(bool ends) {
  if (style_.form == AnswerForm::channels) return step_start_of_message(ends);
  const size_t first = end_of_blanks(waiting_);
  const std::string_view text = std::string_view(waiting_).substr(first),
                         thoughts = beginning_of_thoughts(style_.form);
  const bool may_follow = text.empty() || (may_think_ && may_start_with(text, thoughts)) ||
                          (style_.tools == ToolStyle::plain && may_start_with(text, python_tag));
  if (may_follow && !ends) return false;
  if (may_think_ && starts_with(text, thoughts)) {
    enter(State::thoughts, first + thoughts.size());
  } else if (may_begin_with_call(text, ends)) {
    begin_call(nullptr, first, first);
  } else {
    state_ = State::text;
  }
  return true;
}

// A text without a header is one for the user.
bool AnswerReader::step_start_of_message(bool ends) {
  constexpr std::string_view recipient = "to=";
  const size_t first = end_of_blanks(waiting_);
  const std::string_view text = std::string_view(waiting_).substr(first);
  const std::vector<std::string_view>& marks = hidden_marks(style_);
  const bool may_follow =
      text.empty() || may_start_with(text, marks) || may_start_with(text, recipient);
  if (may_follow && !ends) return false;
  const FoundMark mark = find_first(text, marks);
  if (starts_with(text, recipient) ||
      (mark.at == 0 && (mark.mark == channel_marks::start || mark.mark == channel_marks::channel)))
    state_ = State::header;
  else if (mark.at == 0)
    enter(State::start, first + mark.mark.size());
  else
    state_ = State::text;
  return true;
}

// A header without a message says nothing.
bool AnswerReader::step_header(bool ends) {
  static const std::vector<std::string_view> marks = {channel_marks::message, channel_marks::end,
                                                      channel_marks::call, channel_marks::done};
  const FoundMark end = find_first(waiting_, marks);
  if (end.at == std::string::npos) {
    if (ends) waiting_.clear();
    return false;
  }
  if (end.mark != channel_marks::message)
    return enter(State::start, end.at + end.mark.size()), true;
  const Header header = read_header(std::string_view(waiting_).substr(0, end.at));
  const bool is_call = header.is_call && style_.tools.has_value();
  called_ = header.recipient;
  enter(is_call                        ? State::call
        : header.channel == "analysis" ? State::thoughts
                                       : State::text,
        end.at + end.mark.size());
  return true;
}

// Only blanks wait in front of `at`. `marks`: nullptr if the call has none.
void AnswerReader::begin_call(const CallMarks* marks, size_t at, size_t mark_end) {
  front_ = waiting_.substr(0, shows_marks(marks) ? mark_end : at);
  if (drops_blanks_) front_.erase(0, at);
  call_ = marks;
  enter(State::call, mark_end);
}

// What follows a special token in thoughts or in a text.
void AnswerReader::pass(std::string_view mark, size_t at) {
  const size_t end = at + mark.size();
  if (style_.form == AnswerForm::channels) {
    if (mark == channel_marks::message || mark == channel_marks::constrain)
      waiting_.erase(at, mark.size());
    else  // the next message may follow without an end of this one
      enter(State::start,
            mark == channel_marks::start || mark == channel_marks::channel ? at : end);
  } else if (mark == beginning_of_thoughts(style_.form)) {
    enter(State::thoughts, end);
  } else if (state_ == State::thoughts) {
    enter(State::start, at), may_think_ = false;
  } else {
    enter(State::text, end);
  }
}

bool AnswerReader::step_thoughts(AnswerParts& parts, bool ends) {
  const std::string_view usual_end = end_of_thoughts(style_.form);
  std::vector<std::string_view> marks;
  if (!usual_end.empty()) marks.push_back(usual_end);
  if (style_.form != AnswerForm::plain)
    marks.insert(marks.end(), hidden_marks(style_).begin(), hidden_marks(style_).end());
  const std::string_view text = waiting_;
  if (const FoundMark end = find_first(text, marks); end.at != std::string::npos) {
    give(parts.thoughts, begin_of_last_blanks(text.substr(0, end.at)));
    const size_t at = waiting_.find(end.mark);
    if (end.mark == usual_end)
      enter(State::start, at + end.mark.size()), may_think_ = false;
    else
      pass(end.mark, at);
    return true;
  }
  const size_t ready = ends ? text.size() : text.size() - possible_start(text, marks);
  give(parts.thoughts, begin_of_last_blanks(text.substr(0, ready)));
  return false;
}

// Blanks wait: they are no part of the text if a call follows.
bool AnswerReader::step_text(AnswerParts& parts, bool ends) {
  const std::vector<CallMarks>& calls = call_marks(style_.tools);
  std::vector<std::string_view> marks;
  for (const CallMarks& call : calls) marks.push_back(call.begin);
  marks.insert(marks.end(), hidden_marks(style_).begin(), hidden_marks(style_).end());
  const std::string_view text = waiting_;
  if (const FoundMark found = find_first(text, marks); found.at != std::string::npos) {
    give(parts.text, begin_of_last_blanks(text.substr(0, found.at)));
    const size_t at = waiting_.find(found.mark);
    const auto call = std::find_if(calls.begin(), calls.end(),
                                   [&](const CallMarks& c) { return c.begin == found.mark; });
    if (call == calls.end()) return pass(found.mark, at), true;
    begin_call(&*call, at, at + found.mark.size());
    return true;
  }
  const bool may_end = !ends && !marks.empty();
  const size_t ready =
      may_end ? begin_of_last_blanks(text.substr(0, text.size() - possible_start(text, marks)))
              : text.size();
  give(parts.text, ready);
  return false;
}

// The answer's end ends every call. A call that cannot be read is text.
bool AnswerReader::step_call(AnswerParts& parts, bool ends) {
  static const std::vector<std::string_view> message_ends = {
      channel_marks::end, channel_marks::call, channel_marks::done, channel_marks::start,
      channel_marks::channel};
  const bool in_channel = style_.form == AnswerForm::channels;
  std::vector<std::string_view> marks;
  if (in_channel)
    marks = message_ends;
  else if (call_ != nullptr && !call_->end.empty())
    marks = {call_->end};
  const FoundMark end = find_first(waiting_, marks);
  const bool is_closed = end.at != std::string::npos;
  if (!is_closed && !ends) return false;
  const std::string body = waiting_.substr(0, end.at);
  const bool stays = end.mark == channel_marks::start || end.mark == channel_marks::channel;
  waiting_.erase(0, is_closed ? end.at + (stays ? 0 : end.mark.size()) : end.at);
  state_ = in_channel ? State::start : State::text;
  std::string_view calls = body;
  calls.remove_prefix(end_of_blanks(calls));
  if (starts_with(calls, python_tag)) calls.remove_prefix(python_tag.size());
  std::vector<ToolCall> found =
      calls_between_marks(calls, style_.tools.value_or(ToolStyle::tagged), called_);
  const bool may_be_text = !in_channel && (call_ == nullptr || call_->are_fence());
  if (may_be_text && !style_.begins_with_call) keep_known(found, style_.tool_names);
  std::string text = std::exchange(front_, "") + body;
  if (is_closed && shows_marks(call_)) text += call_->end;
  called_.clear();
  if (found.empty()) parts.text += without(text, hidden_marks(style_));
  std::move(found.begin(), found.end(), std::back_inserter(parts.calls));
  return true;
}

}  // namespace taper::llm
