/// Tools that a model may call: how its family writes a call, and what an answer is made of.
///
///   taper::llm::AnswerReader reader({taper::llm::ToolStyle::tagged});
///   while (answer.step()) show(reader.push(answer.piece()));
///   show(reader.finish());
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/chat_template.h"

namespace taper::llm {

struct CallMarks;

/// How a family writes a call.
enum class ToolStyle : uint8_t {
  tagged,  ///< `<tool_call>{"name": …, "arguments": …}</tool_call>`: Qwen, Hermes, SmolLM 3
  plain,   ///< the whole answer is `{"name": …, "parameters": …}`: Llama 3
  listed,  ///< `[TOOL_CALLS] [{"name": …, "arguments": …}]`, or `[TOOL_CALLS]NAME[ARGS]{…}`:
           ///< Mistral
  sectioned,  ///< `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}`: DeepSeek
  actions,  ///< `<|START_ACTION|>[{"tool_name": …, "parameters": …}]<|END_ACTION|>`: Command R7B
            ///< and A; "Action: ```json […]```": Command R
  channels,  ///< `<|channel|>commentary to=functions.NAME <|message|>{…}`: gpt-oss
  fenced,    ///< a block between ``` or the whole answer, in JSON or as a call of Python: Gemma;
             ///< `<start_function_call>call:NAME{…}`: FunctionGemma
};

/// What stands around thoughts and texts.
enum class AnswerForm : uint8_t {
  plain,      ///< `<think>…</think>` in front of the text
  bracketed,  ///< `[THINK]…[/THINK]`: Mistral
  sections,  ///< `<|START_THINKING|>…<|END_THINKING|><|START_RESPONSE|>…<|END_RESPONSE|>`: Command
  channels,  ///< messages with the channels analysis, commentary and final: gpt-oss
};

/// What a template does with tools.
struct ToolSupport {
  bool describes = false;               ///< it tells the model which tools there are
  ToolStyle style = ToolStyle::tagged;  ///< how it writes the calls of earlier answers
  AnswerForm form = AnswerForm::plain;
  bool writes_calls = false;  ///< it writes calls in its style, though it may describe no tools
  bool takes_system = true;   ///< it takes a message of the system
};
/// Looks at what the template writes about a tool, a call and an answer.
ToolSupport tool_support_of(const ChatTemplate& chat);

/// The same conversation for a template that describes no tools: the system's message does, or the
/// first message of the user if there can be none. If the template writes no calls, they are
/// written as `tagged`, and results become messages of the user. Messages that are no list in JSON
/// come back as they are, and the template refuses them.
ChatInput with_tools_as_text(ChatInput input, const ToolSupport& support = {});

// ---- calls that must come

/// The text of the assistant with which a call begins.
std::string_view beginning_of_call(ToolStyle style);
/// A JSON schema of what follows: one call of these tools. `tools` is a JSON list, as in requests.
/// `name`: the tool that must be called; empty: any. Empty if no tool fits. Arguments that the
/// tool's schema does not name are not allowed, unless it speaks of them.
std::string schema_of_call(ToolStyle style, const std::string& tools, const std::string& name);

// ---- answers

struct ToolCall {
  std::string name, arguments;  ///< arguments: an object in JSON
};

/// What an answer is made of: thoughts, text, and calls.
struct AnswerParts {
  std::string thoughts, text;
  std::vector<ToolCall> calls;
};

struct AnswerStyle {
  std::optional<ToolStyle> tools;     ///< none: calls are ordinary text
  bool begins_with_thoughts = false;  ///< the prompt ended with `beginning_of_thoughts`
  bool begins_with_call = false;      ///< the prompt ended with `beginning_of_call`
  AnswerForm form = AnswerForm::plain;
  bool begins_with_text = false;  ///< the prompt ended with `beginning_of_text`
  /// If not empty, blocks of code and whole answers that call something else are text.
  std::vector<std::string> tool_names;
};

/// `<think>`; empty: an answer cannot begin inside of thoughts.
std::string_view beginning_of_thoughts(AnswerForm form);
/// What ends these thoughts: `</think>`.
std::string_view end_of_thoughts(AnswerForm form);
/// What stands in front of a text that must come; often empty.
std::string_view beginning_of_text(AnswerForm form);
/// Whether marks are special tokens: GenerateOptions::shows_special_tokens must be set.
bool has_special_marks(const AnswerStyle& style);

/// Takes an answer apart, as it comes piece by piece. All parts together have all of the answer,
/// but for the marks, and for blanks beside them. What only looks like a call is text.
class AnswerReader {
 public:
  explicit AnswerReader(const AnswerStyle& style);

  /// The parts that can be told already.
  AnswerParts push(std::string_view piece);
  /// What still waits, at the end of the answer.
  AnswerParts finish();

 private:
  enum class State : uint8_t { start, header, thoughts, text, call };
  bool step(AnswerParts& parts, bool ends);
  bool step_start(bool ends);
  bool step_start_of_message(bool ends);
  bool step_header(bool ends);
  bool step_thoughts(AnswerParts& parts, bool ends);
  bool step_text(AnswerParts& parts, bool ends);
  bool step_call(AnswerParts& parts, bool ends);
  bool may_begin_with_call(std::string_view text, bool ends) const;
  void enter(State state, size_t mark_end);
  void begin_call(const CallMarks* marks, size_t at, size_t mark_end);
  void pass(std::string_view mark, size_t at);
  void give(std::string& to, size_t count);

  const AnswerStyle style_;
  State state_;
  bool drops_blanks_;                ///< those that come next belong to a mark
  bool may_think_ = true;            ///< thoughts stand only before everything else
  const CallMarks* call_ = nullptr;  ///< of the present call; nullptr: none
  std::string front_;   ///< blanks and the mark before it, which are text if it is none
  std::string called_;  ///< the name in its header
  std::string waiting_;
};

/// The calls of a text, in the style between its marks: objects with `name` or `tool_name`, and
/// `arguments` or `parameters`, one behind the other or in a list; for some styles also their own
/// form. Empty if anything else is there.
std::vector<ToolCall> read_calls(std::string_view text, ToolStyle style = ToolStyle::tagged);

}  // namespace taper::llm
