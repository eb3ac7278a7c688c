/// Turns a conversation into the text that a model was trained on.
///
///   taper::Result<taper::llm::ChatTemplate> chat =
///       taper::llm::ChatTemplate::parse(text_of_the_template, &why);
///   taper::llm::ChatInput input;
///   input.messages = taper::llm::messages_json({{"user", "Hello"}});
///   input.add_generation_prompt = true;
///   taper::Result<std::string> prompt = chat->render(input, &why);
#pragma once
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "taper/runtime/core/result.h"

namespace taper::llm {

/// What a template is rendered with. JSON as in the requests of servers, because templates read
/// tools, pictures and thoughts in many forms.
struct ChatInput {
  std::string messages;   ///< a list of objects with `role` and `content`
  std::string tools;      ///< a list; empty: none
  std::string documents;  ///< a list; empty: none
  std::string variables;  ///< an object: more names that the template may use; empty: none
  std::optional<std::string> bos_token, eos_token;
  bool add_generation_prompt = false;   ///< the text ends where the assistant begins
  bool continue_final_message = false;  ///< the text ends with the content of the last message
  std::optional<std::tm> now;           ///< for templates that tell the date; otherwise the clock
};

/// The messages of a conversation without tools: pairs of role and content.
std::string messages_json(const std::vector<std::pair<std::string, std::string>>& messages);

/// The part of Jinja that models' templates use, with the settings of transformers. It is
/// immutable, and any number of threads may use it. A template cannot run for long, take much
/// memory, or reach anything but its input.
class ChatTemplate {
 public:
  /// `message` gets the reason of an error: "line 3: the block 'if' does not end".
  static Result<ChatTemplate> parse(std::string_view text, std::string* message = nullptr);

  Result<std::string> render(const ChatInput& input, std::string* message = nullptr) const;

 private:
  struct Syntax;
  explicit ChatTemplate(std::shared_ptr<const Syntax> syntax) : syntax_(std::move(syntax)) {}

  std::shared_ptr<const Syntax> syntax_;
};

}  // namespace taper::llm
