// The part of a request that only conversations have: messages, tools, and the form of the answer.
#include <algorithm>
#include <string_view>
#include <utility>

#include "taper/exporter/serve/members.h"
#include "taper/runtime/extension/llm/answer_style.h"

namespace taper::serve {
namespace {

// ---- messages

/// A text, or a list of parts of which only texts are known.
std::string content_of(const json& message, const std::string& place) {
  const auto found = message.find("content");
  if (found == message.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) refuse(place + ".content", "it must be a text or a list of parts");
  std::string text;
  for (const json& part : *found) {
    if (!part.is_object() || part.value("type", json()) != "text" || !part.contains("text") ||
        !part["text"].is_string())
      refuse(place + ".content", "only parts of type `text` are supported");
    text += part["text"].get<std::string>();
  }
  return text;
}

/// null: they are no object in JSON.
json arguments_of(const json& given) {
  if (!given.is_string()) return given;
  if (given == "") return json::object();  // of a call without arguments
  try {
    return parse_request(given.get<std::string>());
  } catch (const ApiError&) {
    return nullptr;
  }
}

/// The calls of an earlier answer. Clients send their arguments as JSON in a text; templates write
/// objects.
json calls_of(const json& calls, const std::string& place) {
  const auto wrong = [&] {
    refuse(
        place + ".tool_calls",
        "it must be a list of objects with `function`, which has `name` and `arguments` in JSON");
  };
  if (!calls.is_array()) wrong();
  json read = json::array();
  for (const json& call : calls) {
    json one = call;
    if (!one.is_object() || !one.value("function", json()).is_object()) wrong();
    json& function = one["function"];
    if (!function.value("name", json()).is_string()) wrong();
    const json arguments = arguments_of(function.value("arguments", json::object()));
    if (!arguments.is_object()) wrong();
    function["arguments"] = arguments;
    read.push_back(std::move(one));
  }
  return read;
}

json message_of(const json& given, const std::string& place) {
  if (!given.is_object()) refuse(place, "it must be an object");
  const json role = given.value("role", json());
  const bool is_known = role == "system" || role == "developer" || role == "user" ||
                        role == "assistant" || role == "tool";
  if (!is_known) refuse(place + ".role", "it must be system, developer, user, assistant or tool");
  json message = {{"role", role == "developer" ? json("system") : role},
                  {"content", content_of(given, place)}};
  for (const char* name : {"name", "tool_call_id", "reasoning_content"}) {
    const json value = given.value(name, json());
    if (value.is_null()) continue;
    if (!value.is_string()) refuse(place + "." + name, "it must be a text");
    message[name] = value;
  }
  const json calls = given.value("tool_calls", json());
  if (calls.is_null()) return message;
  if (role != "assistant") refuse(place + ".tool_calls", "only an assistant calls tools");
  if (calls != json::array()) message["tool_calls"] = calls_of(calls, place);
  return message;
}

std::string messages_of(Members& request) {
  const json* given = request.find("messages");
  if (given == nullptr || !given->is_array() || given->empty())
    refuse("messages", "it must be a list of messages");
  json messages = json::array();
  for (const json& message : *given)
    messages.push_back(message_of(message, "messages[" + std::to_string(messages.size()) + "]"));
  return messages.dump();
}

// ---- tools

void check_tool(const json& tool, size_t index) {
  const std::string place = "tools[" + std::to_string(index) + "]";
  if (!tool.is_object() || tool.value("type", json()) != "function")
    refuse(place, "only tools of type `function` are supported");
  const json function = tool.value("function", json());
  if (!function.is_object() || !function.value("name", json()).is_string())
    refuse(place + ".function", "it must be an object with a `name`");
  const auto name = function["name"].get<std::string>();
  const bool is_readable = std::ranges::none_of(name, [](unsigned char c) {
    return c <= ' ' || std::string_view("<>{}[]\"\\").find(c) != std::string_view::npos;
  });
  if (name.empty() || !is_readable)
    refuse(place + ".function.name", "it must be a name without blanks, quotes and brackets");
  const json parameters = function.value("parameters", json::object());
  if (!parameters.is_object()) refuse(place + ".function.parameters", "it must be a JSON schema");
}

struct Tools {
  std::string list;  ///< in JSON; empty: the model knows none
  std::vector<std::string> names;
  bool is_forced = false;
  std::string name;  ///< of the tool that must be called; empty: any
};

void read_tool_choice(Members& request, Tools& tools) {
  const json* given = request.find("tool_choice");
  const json choice = given == nullptr ? json("auto") : *given;
  if (choice == "none") return tools.list.clear();
  if (choice == "auto") return;
  if (tools.list.empty()) refuse("tool_choice", "there are no `tools`");
  tools.is_forced = true;
  if (choice == "required") return;
  const json function = choice.is_object() ? choice.value("function", json()) : json();
  const json name = function.is_object() ? function.value("name", json()) : json();
  if (!name.is_string() || name == "")
    refuse("tool_choice", "it must be none, auto, required, or an object that names a function");
  tools.name = name;
}

Tools tools_of(Members& request) {
  Tools tools;
  const json* list = request.find("tools");
  if (list != nullptr && !list->is_array()) refuse("tools", "it must be a list");
  for (size_t i = 0; list != nullptr && i < list->size(); ++i) check_tool((*list)[i], i);
  if (list != nullptr && !list->empty()) tools.list = list->dump();
  for (size_t i = 0; list != nullptr && i < list->size(); ++i)
    tools.names.push_back((*list)[i]["function"]["name"]);
  read_tool_choice(request, tools);
  return tools;
}

// ---- the form of the answer

std::string schema_of(Members& request) {
  const json* format = request.find("response_format");
  if (format == nullptr) return "";
  const json type = format->is_object() ? format->value("type", json()) : json();
  if (type == "text") return "";
  if (type == "json_object") return R"({"type": "object"})";
  if (type != "json_schema")
    refuse("response_format", "its `type` must be text, json_object or json_schema");
  const json named = format->value("json_schema", json());
  const json schema = named.is_object() ? named.value("schema", json()) : json();
  if (!schema.is_object()) refuse("response_format.json_schema.schema", "it must be a JSON schema");
  return schema.dump();
}

void append(std::vector<llm::TokenId>& ids, const std::string& text,
            const llm::Tokenizer& tokenizer) {
  llm::EncodeOptions as_it_stands;
  as_it_stands.add_special_tokens = false;
  const std::vector<llm::TokenId> more = tokenizer.encode(text, as_it_stands);
  ids.insert(ids.end(), more.begin(), more.end());
}

std::string variables_of(Members& request) {
  const json* variables = request.find("chat_template_kwargs");
  if (variables == nullptr) return "";
  if (!variables->is_object()) refuse("chat_template_kwargs", "it must be an object");
  return variables->dump();
}

}  // namespace

ChatPrompt read_chat(Members& request, const llm::LanguageModel& model) {
  llm::ChatInput input;
  input.messages = messages_of(request);
  input.variables = variables_of(request);
  const Tools tools = tools_of(request);
  input.tools = tools.list;
  ChatPrompt chat;
  chat.calls_once = !request.flag("parallel_tool_calls", true);
  chat.schema = schema_of(request);
  if (!chat.schema.empty() && !tools.list.empty())
    refuse("response_format", "an answer in JSON calls no tools; set `tool_choice` to none");

  std::string why;
  Result<std::vector<llm::TokenId>> ids = model.prompt(std::move(input), &why);
  if (!ids.ok()) refuse("messages", why);
  chat.ids = std::move(ids.value());
  const llm::ToolStyle style = model.text().tools.style;
  llm::AnswerStyle& answer = chat.answer = llm::answer_style_behind(chat.ids, model.text());
  if (!tools.list.empty()) answer.tools = style, answer.tool_names = tools.names;
  if (tools.is_forced) {
    chat.schema = llm::schema_of_call(style, tools.list, tools.name);
    if (chat.schema.empty()) refuse("tool_choice", "there is no tool `" + tools.name + "`");
  }
  answer.begins_with_call = tools.is_forced;
  if (chat.schema.empty()) return chat;
  // a schema leaves no room for thoughts
  if (std::exchange(answer.begins_with_thoughts, false))
    append(chat.ids, "\n" + std::string(end_of_thoughts(answer.form)) + "\n\n", model.tokenizer());
  const std::string_view begin =
      tools.is_forced ? beginning_of_call(style) : beginning_of_text(answer.form);
  answer.begins_with_text = !tools.is_forced && !begin.empty();
  append(chat.ids, std::string(begin), model.tokenizer());
  return chat;
}

}  // namespace taper::serve
