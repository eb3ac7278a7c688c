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

/// How a family writes a call.
enum class ToolStyle : uint8_t {
  tagged,  ///< `<tool_call>{"name": …, "arguments": …}</tool_call>`: Qwen, Hermes, SmolLM 3
  plain,   ///< the whole answer is `{"name": …, "parameters": …}`: Llama 3
  listed,  ///< `[TOOL_CALLS] [{"name": …, "arguments": …}]`: Mistral
};

/// What a template does with tools.
struct ToolSupport {
  bool describes = false;               ///< it tells the model which tools there are
  ToolStyle style = ToolStyle::tagged;  ///< how it writes the calls of earlier answers
};
/// Looks at what the template writes about a tool and a call.
ToolSupport tool_support_of(const ChatTemplate& chat);

/// The same conversation for a template that knows no tools. The tools are described in the
/// system's message, calls are written as `tagged`, and results become messages of the user.
/// Messages that are no list in JSON come back as they are, and the template refuses them.
ChatInput with_tools_as_text(ChatInput input);

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

/// What an answer is made of: thoughts between `<think>` and `</think>`, text, and calls.
struct AnswerParts {
  std::string thoughts, text;
  std::vector<ToolCall> calls;
};

struct AnswerStyle {
  std::optional<ToolStyle> tools;     ///< none: calls are ordinary text
  bool begins_with_thoughts = false;  ///< the prompt ended with `<think>`
  bool begins_with_call = false;      ///< the prompt ended with `beginning_of_call`
};

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
  enum class State : uint8_t { start, thoughts, text, call };
  bool step(AnswerParts& parts, bool ends);
  bool step_start(bool ends);
  bool step_thoughts(AnswerParts& parts, bool ends);
  bool step_text(AnswerParts& parts, bool ends);
  bool step_call(AnswerParts& parts, bool ends);
  void enter(State state, size_t mark_end);
  void give(std::string& to, size_t count);

  const AnswerStyle style_;
  State state_;
  bool drops_blanks_;      ///< those that come next belong to a mark
  bool may_think_ = true;  ///< thoughts stand only before everything else
  std::string waiting_;
};

/// The calls of a text: objects with `name`, and `arguments` or `parameters`, one behind the other
/// or in a list. Empty if anything else is there.
std::vector<ToolCall> read_calls(std::string_view text);

}  // namespace taper::llm
