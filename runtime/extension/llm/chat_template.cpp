#include "taper/runtime/extension/llm/chat_template.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "taper/runtime/extension/llm/chat/evaluator.h"
#include "taper/runtime/extension/llm/chat/operations.h"
#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/llm/tokenizer/unicode.h"

namespace taper::llm {

struct ChatTemplate::Syntax {
  chat::Block block;
};

namespace {

using chat::ArgumentReader;
using chat::Arguments;
using chat::Function;
using chat::Value;
using Json = nlohmann::ordered_json;

// Behind the content of a message that is to be continued. The blank shows whether the template
// trims the content.
constexpr std::string_view mark = "CONTINUE_FINAL_MESSAGE_TAG ";

Json parse_json(const std::string& text, const char* name) {
  const bool valid = is_valid_utf8(text);
  Json json = valid ? Json::parse(text, nullptr, /*allow_exceptions=*/false) : Json();
  if (!valid || json.is_discarded()) refuse(std::string(name) + " is not JSON");
  return json;
}

Value list_or_none(const std::string& text, const char* name) {
  if (text.empty()) return Value::none();
  const Json json = parse_json(text, name);
  if (!json.is_array() && !json.is_null()) refuse(std::string(name) + " is not a list");
  return chat::from_json(json);
}

// Puts the mark behind the text of the last message.
void mark_end(Json& message) {
  Json& content = message["content"];
  if (content.is_string()) {
    content = content.get<std::string>() + std::string(mark);
    return;
  }
  if (content.is_array()) {
    for (auto part = content.rbegin(); part != content.rend(); ++part) {
      if (!part->is_object() || !part->contains("text") || !(*part)["text"].is_string()) continue;
      (*part)["text"] = (*part)["text"].get<std::string>() + std::string(mark);
      return;
    }
  }
  refuse("the last message has no text that could be continued");
}

Json messages_of(const ChatInput& input) {
  Json messages = parse_json(input.messages, "messages");
  if (!messages.is_array()) refuse("messages is not a list");
  if (messages.empty()) refuse("there are no messages");
  for (Json& message : messages) {
    if (!message.is_object()) refuse("a message is not an object");
    Json kept = Json::object();
    for (const auto& [key, value] : message.items()) {
      if (!value.is_null()) kept[key] = value;
    }
    message = std::move(kept);
  }
  if (input.continue_final_message) mark_end(messages.back());
  return messages;
}

// The text up to the mark.
std::string cut_at_mark(std::string text) {
  const size_t at = text.rfind(mark.substr(0, mark.size() - 1));
  if (at == std::string::npos) refuse("the template leaves out the end of the last message");
  const bool keeps_blanks = text.compare(at, mark.size(), mark) == 0;
  text.resize(at);
  if (keeps_blanks) return text;
  size_t end = text.size();
  while (end > 0 && is_whitespace(static_cast<unsigned char>(text[end - 1]))) --end;
  text.resize(end);
  return text;
}

Value raise_exception(const Arguments& arguments) {
  refuse(chat::text_of(ArgumentReader(arguments, "raise_exception").need(0, "message")));
}

Value range(const Arguments& arguments) {
  const ArgumentReader in(arguments, "range");
  const bool one = arguments.positional.size() < 2;
  const int64_t begin = one ? 0 : in.integer(0, "start", 0);
  const int64_t end = in.integer(one ? 0 : 1, "stop", 0), step = in.integer(2, "step", 1);
  constexpr size_t most = 100000;
  if (step == 0) refuse("range() arg 3 must not be zero");
  chat::List numbers;
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (numbers.size() == most)
      refuse("a range has more than " + std::to_string(most) + " numbers");
    numbers.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return numbers;
}

chat::Dict named_members(const Arguments& arguments) {
  chat::Dict members;
  for (const Value& given : arguments.positional) {
    if (given.is_dict()) members.insert(members.end(), given.dict().begin(), given.dict().end());
  }
  for (const auto& [name, value] : arguments.named) members.emplace_back(name, value);
  return members;
}

std::tm clock_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
#ifdef _WIN32
  localtime_s(&local, &now);
#else
  localtime_r(&now, &local);
#endif
  return local;
}

Function formats_time(const std::optional<std::tm>& now) {
  return [time = now.has_value() ? *now : clock_now()](const Arguments& arguments) -> Value {
    const std::string format = ArgumentReader(arguments, "strftime_now").text(0, "format", "");
    char text[512];
    return std::string(text, std::strftime(text, sizeof text, format.c_str(), &time));
  };
}

// The names that every template may use.
void set_functions(const ChatInput& input, std::vector<Value>& namespaces, chat::Scope& scope) {
  scope.set("raise_exception", Function(raise_exception));
  scope.set("range", Function(range));
  scope.set("dict",
            Function([](const Arguments& arguments) -> Value { return named_members(arguments); }));
  scope.set("namespace", Function([&namespaces](const Arguments& arguments) -> Value {
              namespaces.emplace_back(named_members(arguments), Value::Kind::name_space);
              return namespaces.back();
            }));
  scope.set("strftime_now", formats_time(input.now));
}

void set_input(const ChatInput& input, chat::Scope& scope) {
  scope.set("messages", chat::from_json(messages_of(input)));
  scope.set("tools", list_or_none(input.tools, "tools"));
  scope.set("documents", list_or_none(input.documents, "documents"));
  scope.set("add_generation_prompt", input.add_generation_prompt);
  if (input.bos_token.has_value()) scope.set("bos_token", *input.bos_token);
  if (input.eos_token.has_value()) scope.set("eos_token", *input.eos_token);
  if (input.variables.empty()) return;
  const Json variables = parse_json(input.variables, "variables");
  if (!variables.is_object()) refuse("variables is not an object");
  for (const auto& [name, value] : variables.items()) scope.set(name, chat::from_json(value));
}

std::string render_text(const chat::Block& block, const ChatInput& input) {
  std::vector<Value> namespaces;
  std::string text;
  // a namespace may hold itself: let go of what they hold, whatever happens
  struct Clear {
    std::vector<Value>& namespaces;
    ~Clear() {
      for (Value& one : namespaces) one.changeable_dict().clear();
    }
  } clear{namespaces};
  chat::Scope scope;
  set_functions(input, namespaces, scope);
  set_input(input, scope);
  chat::Evaluator evaluator;
  text = evaluator.render(block, scope);
  return input.continue_final_message ? cut_at_mark(std::move(text)) : text;
}

}  // namespace

std::string messages_json(const std::vector<std::pair<std::string, std::string>>& messages) {
  Json list = Json::array();
  for (const auto& [role, content] : messages) {
    list.push_back({{"role", valid_utf8(role)}, {"content", valid_utf8(content)}});
  }
  return list.dump();
}

Result<ChatTemplate> ChatTemplate::parse(std::string_view text, std::string* message) {
  return guarded<ChatTemplate>(message, [&] {
    auto syntax = std::make_shared<Syntax>();
    syntax->block = chat::parse(valid_utf8(text));
    return ChatTemplate(std::move(syntax));
  });
}

Result<std::string> ChatTemplate::render(const ChatInput& input, std::string* message) const {
  return guarded<std::string>(message, [&] { return render_text(syntax_->block, input); });
}

}  // namespace taper::llm
