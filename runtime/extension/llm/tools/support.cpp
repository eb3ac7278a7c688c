#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "taper/runtime/extension/llm/tools.h"

namespace taper::llm {
namespace {

using Json = nlohmann::ordered_json;

constexpr char probe_tool[] = R"([{"type": "function", "function": {"name": "probe_tool",
  "description": "A probe.", "parameters": {"type": "object", "properties": {}, "required": []}}}])";
// some templates want ids of nine characters
constexpr char probe_call[] = R"([{"role": "user", "content": "x"}, {"role": "assistant",
  "content": "", "tool_calls": [{"id": "probe0000", "type": "function",
  "function": {"name": "probe_call", "arguments": {"place": "x"}}}]}])";

/// Empty if the template refuses.
std::string rendered(const ChatTemplate& chat, const char* messages, const char* tools) {
  ChatInput input;
  input.messages = messages, input.tools = tools;
  input.bos_token = input.eos_token = "";
  const Result<std::string> text = chat.render(input);
  return text.ok() ? text.value() : "";
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// DeepSeek's own words.
std::string description_in_sections(const Json& tools) {
  std::string text = "## Tools\n\nYou have access to the following tools:\n";
  for (const Json& tool : tools) {
    const Json function = tool.is_object() ? tool.value("function", Json()) : Json();
    if (!function.is_object()) continue;
    const auto member = [&](const char* key) { return function.value(key, Json("")); };
    const auto words = [](const Json& j) {
      return j.is_string() ? j.get<std::string>() : j.dump();
    };
    text += "\n### " + words(member("name")) + "\nDescription: " + words(member("description")) +
            "\n\nParameters: " + function.value("parameters", Json::object()).dump() + "\n";
  }
  return text +
         "\nIMPORTANT: ALWAYS adhere to this exact format for tool use:\n"
         "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>tool_call_name<｜tool▁sep｜>tool_call_"
         "arguments"
         "<｜tool▁call▁end｜>{additional_tool_calls}<｜tool▁calls▁end｜>\n\nWhere:\n- "
         "`tool_call_name` must be an exact match to one of the available tools\n- "
         "`tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters "
         "Schema";
}

std::string description_of(const Json& tools) {
  std::string text =
      "# Tools\n\nYou may call functions to help the user. They are described inside "
      "<tools></tools>:\n<tools>\n";
  for (const Json& tool : tools) text += tool.dump() + "\n";
  return text +
         "</tools>\n\nTo call a function, write a JSON object with its name and its arguments "
         "inside <tool_call></tool_call>:\n<tool_call>\n"
         "{\"name\": <function-name>, \"arguments\": <arguments-json-object>}\n</tool_call>";
}

std::string content_of(const Json& message) {
  const Json content = message.value("content", Json());
  return content.is_string() ? content.get<std::string>() : "";
}

void add_description(Json& messages, const std::string& description, bool takes_system) {
  Json& first = messages.front();
  const Json role = first.is_object() ? first.value("role", Json()) : Json();
  if (role == "system") {
    first["content"] = content_of(first) + "\n\n" + description;
  } else if (!takes_system && role == "user") {
    first["content"] = description + "\n\n" + content_of(first);
  } else {
    const Json system = {{"role", "system"}, {"content", description}};
    messages.insert(messages.begin(), system);
  }
}

void write_calls(Json& message) {
  std::string text = content_of(message);
  for (const Json& call : message["tool_calls"]) {
    const Json function = call.is_object() ? call.value("function", Json()) : Json();
    text +=
        (text.empty() ? "<tool_call>\n" : "\n<tool_call>\n") + function.dump() + "\n</tool_call>";
  }
  message["content"] = text;
  message.erase("tool_calls");
}

/// Results that follow each other are one message, because users and assistants alternate.
Json without_tools(const Json& messages) {
  Json changed = Json::array();
  bool follows_result = false;
  for (Json message : messages) {
    const bool is_result = message.is_object() && message.value("role", Json()) == "tool";
    if (is_result) {
      const std::string text = "<tool_response>\n" + content_of(message) + "\n</tool_response>";
      if (follows_result)
        changed.back()["content"] = content_of(changed.back()) + "\n" + text;
      else
        changed.push_back({{"role", "user"}, {"content", text}});
    } else {
      if (message.is_object() && message.value("tool_calls", Json()).is_array())
        write_calls(message);
      changed.push_back(std::move(message));
    }
    follows_result = is_result;
  }
  return changed;
}

/// References point into the schema, which now stands at `place`.
void move_references(Json& schema, const std::string& place) {
  if (schema.is_array())
    for (Json& item : schema) move_references(item, place);
  if (!schema.is_object()) return;
  for (auto& [key, value] : schema.items()) {
    if (key == "$ref" && value.is_string() && value.get<std::string>().rfind('#', 0) == 0)
      value = place + value.get<std::string>().substr(1);
    else
      move_references(value, place);
  }
}

/// Whether it requires arguments that it does not name.
bool requires_others(const Json& schema) {
  const Json named = schema.value("properties", Json::object()),
             required = schema.value("required", Json::array());
  return std::any_of(required.begin(), required.end(), [&](const Json& name) {
    return !name.is_string() || !named.contains(name.get<std::string>());
  });
}

/// Allows the arguments that a schema names only, unless it says otherwise. A small model would
/// invent more of them without end.
void close(Json& schema) {
  for (const char* keyword :
       {"additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf", "if",
        "dependentSchemas", "dependentRequired", "minProperties"})
    if (!schema.is_object() || schema.contains(keyword)) return;
  if (requires_others(schema)) return;
  schema["additionalProperties"] = false;
}

ToolStyle style_of(const std::string& call) {
  if (contains(call, "[TOOL_CALLS]")) return ToolStyle::listed;
  if (contains(call, "<｜tool▁calls▁begin｜>")) return ToolStyle::sectioned;
  if (contains(call, "<|START_ACTION|>") || contains(call, "\"tool_name\""))
    return ToolStyle::actions;
  if (contains(call, "<|channel|>")) return ToolStyle::channels;
  if (contains(call, "<tool_call>")) return ToolStyle::tagged;
  if (contains(call, "<start_function_call>")) return ToolStyle::fenced;
  return contains(call, "\"parameters\"") ? ToolStyle::plain : ToolStyle::tagged;
}

AnswerForm form_of(const std::string& answer) {
  if (contains(answer, "<|channel|>")) return AnswerForm::channels;
  if (contains(answer, "<|START_RESPONSE|>") || contains(answer, "<|START_TEXT|>"))
    return AnswerForm::sections;
  return contains(answer, "[THINK]") ? AnswerForm::bracketed : AnswerForm::plain;
}

}  // namespace

ToolSupport tool_support_of(const ChatTemplate& chat) {
  constexpr char question[] = R"([{"role": "user", "content": "x"}])",
                 answer[] = R"([{"role": "user", "content": "x"},
                   {"role": "assistant", "content": "x"}, {"role": "user", "content": "x"}])",
                 of_system[] = R"([{"role": "system", "content": "probe_system"},
                   {"role": "user", "content": "x"}])";
  ToolSupport support;
  const std::string with_answer = rendered(chat, answer, "");
  support.form = form_of(with_answer);
  support.takes_system = contains(rendered(chat, of_system, ""), "probe_system");
  support.describes = contains(rendered(chat, question, probe_tool), "probe_tool");
  // some templates cannot do without tools
  std::string call = rendered(chat, probe_call, "");
  if (call.empty()) call = rendered(chat, probe_call, probe_tool);
  support.writes_calls = contains(call, "probe_call");
  if (support.describes) {
    support.style = style_of(call);
  } else if (support.writes_calls && style_of(call) == ToolStyle::sectioned) {
    support.style = ToolStyle::sectioned;
  } else if (contains(with_answer, "<start_of_turn>model")) {
    support.style = ToolStyle::fenced;
  }
  return support;
}

ChatInput with_tools_as_text(ChatInput input, const ToolSupport& support) {
  const Json messages = Json::parse(input.messages, nullptr, /*allow_exceptions=*/false);
  const Json tools = Json::parse(input.tools, nullptr, /*allow_exceptions=*/false);
  if (!messages.is_array() || messages.empty()) return input;
  const bool keeps_calls = support.writes_calls && support.style == ToolStyle::sectioned;
  Json changed = keeps_calls ? messages : without_tools(messages);
  if (tools.is_array() && !tools.empty())
    add_description(changed, keeps_calls ? description_in_sections(tools) : description_of(tools),
                    support.takes_system);
  input.messages = changed.dump();
  input.tools.clear();
  return input;
}

std::string_view beginning_of_call(ToolStyle style) {
  switch (style) {
    case ToolStyle::tagged:
    case ToolStyle::fenced:
      return "<tool_call>\n";
    case ToolStyle::listed:
      return "[TOOL_CALLS]";
    case ToolStyle::sectioned:
      return "<｜tool▁calls▁begin｜>";
    case ToolStyle::actions:
      return "<|START_ACTION|>";
    case ToolStyle::channels:
      return "<|channel|>commentary to=functions <|constrain|>json<|message|>";
    default:
      return "";
  }
}

std::string schema_of_call(ToolStyle style, const std::string& tools, const std::string& name) {
  const Json list = Json::parse(tools, nullptr, /*allow_exceptions=*/false);
  const bool is_action = style == ToolStyle::actions;
  const char* const key = style == ToolStyle::plain || is_action ? "parameters" : "arguments";
  const char* const name_key = is_action ? "tool_name" : "name";
  Json definitions = Json::object(), calls = Json::array();
  for (const Json& tool : list) {
    const Json function = tool.is_object() ? tool.value("function", Json()) : Json();
    const Json called = function.is_object() ? function.value("name", Json()) : Json();
    if (!called.is_string() || (!name.empty() && called != name)) continue;
    const std::string place = "#/$defs/" + std::to_string(definitions.size());
    Json arguments = function.value("parameters", Json{{"type", "object"}});
    close(arguments);
    move_references(arguments, place);
    definitions[std::to_string(definitions.size())] = std::move(arguments);
    calls.push_back({{"type", "object"},
                     {"properties", {{name_key, {{"const", called}}}, {key, {{"$ref", place}}}}},
                     {"required", {name_key, key}},
                     {"additionalProperties", false}});
  }
  if (calls.empty()) return "";
  Json schema = {{"anyOf", std::move(calls)}};
  if (style == ToolStyle::listed || is_action)
    schema = {
        {"type", "array"}, {"prefixItems", {std::move(schema)}}, {"items", false}, {"minItems", 1}};
  schema["$defs"] = std::move(definitions);
  return schema.dump();
}

}  // namespace taper::llm
