#include <chrono>
#include <random>
#include <utility>

#include "taper/exporter/serve/api.h"

namespace taper::serve {
namespace {

json finish_reason(const AnswerNews& news) {
  switch (news.finish) {
    case llm::Finish::none:
      return nullptr;
    case llm::Finish::end:
    case llm::Finish::stop:
      return news.parts.calls.size() + news.calls_before > 0 ? "tool_calls" : "stop";
    default:
      return "length";  // of the answer, of the context or of the time
  }
}

std::string random_id(int length) {
  static constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string id;
  for (int i = 0; i < length; ++i) id += digits[random() % digits.size()];
  return id;
}

json usage_of(const std::vector<AnswerNews>& texts) {
  int64_t prompt = 0, answer = 0, cached = 0;
  for (const AnswerNews& text : texts) {
    prompt += text.statistics.prompt_tokens, answer += text.statistics.answer_tokens;
    cached += text.statistics.cached_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", answer},
          {"total_tokens", prompt + answer},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
}

/// Mistral's templates want ids of nine letters and digits.
json call_of(const llm::ToolCall& call) {
  return {{"id", random_id(9)},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

json message_of(const llm::AnswerParts& parts) {
  const bool has_text = parts.text.find_first_not_of(" \n\r\t") != std::string::npos;
  json message = {{"role", "assistant"},
                  {"content", has_text || parts.calls.empty() ? json(parts.text) : json()},
                  {"refusal", nullptr}};
  if (!parts.thoughts.empty()) message["reasoning_content"] = parts.thoughts;
  for (const llm::ToolCall& call : parts.calls) message["tool_calls"].push_back(call_of(call));
  return message;
}

json delta_of(const AnswerNews& news, bool began) {
  json delta = json::object();
  if (began) delta["role"] = "assistant";
  const llm::AnswerParts& parts = news.parts;
  const bool is_empty = parts.thoughts.empty() && parts.calls.empty();
  if (!parts.thoughts.empty()) delta["reasoning_content"] = parts.thoughts;
  if (!parts.text.empty() || (began && is_empty)) delta["content"] = parts.text;
  for (size_t i = 0; i < parts.calls.size(); ++i) {
    json call = {{"index", news.calls_before + i}};
    call.update(call_of(parts.calls[i]));
    delta["tool_calls"].push_back(std::move(call));
  }
  return delta;
}

}  // namespace

json ApiError::body() const {
  const char* type = status == 401   ? "authentication_error"
                     : status == 429 ? "rate_limit_error"
                     : status >= 500 ? "server_error"
                                     : "invalid_request_error";
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  return {{"error",
           {{"message", what()},
            {"type", type},
            {"param", or_null(parameter)},
            {"code", or_null(code)}}}};
}

std::string text_of(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

Responses::Responses(Endpoint endpoint, std::string model_id, const llm::Tokenizer& tokenizer)
    : endpoint_(endpoint),
      id_((endpoint == Endpoint::chat ? "chatcmpl-" : "cmpl-") + random_id(24)),
      model_id_(std::move(model_id)),
      created_(std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count()),
      tokenizer_(tokenizer) {}

json Responses::object(const char* kind) const {
  return {{"id", id_}, {"object", kind}, {"created", created_}, {"model", model_id_}};
}

// A token's bytes may be a part of a character, so they stand beside its text.
json Responses::chat_chances(const std::vector<TokenChance>& chances) const {
  const auto token = [&](llm::TokenId id, double log_probability) {
    const std::string bytes = tokenizer_.bytes_of(id);
    const std::string& text = bytes.empty() ? std::string(tokenizer_.token(id)) : bytes;
    return json{{"token", text},
                {"logprob", log_probability},
                {"bytes", std::vector<uint8_t>(bytes.begin(), bytes.end())}};
  };
  json content = json::array();
  for (const TokenChance& chance : chances) {
    content.push_back(token(chance.id, chance.log_probability));
    json& top = content.back()["top_logprobs"] = json::array();
    for (const auto& [id, log_probability] : chance.likeliest)
      top.push_back(token(id, log_probability));
  }
  return {{"content", content}, {"refusal", nullptr}};
}

json Responses::legacy_chances(const std::vector<TokenChance>& chances) const {
  json tokens = json::array(), log_probabilities = json::array(), tops = json::array();
  for (const TokenChance& chance : chances) {
    tokens.push_back(tokenizer_.bytes_of(chance.id));
    log_probabilities.push_back(chance.log_probability);
    json top = json::object();
    for (const auto& [id, log_probability] : chance.likeliest)
      top[tokenizer_.bytes_of(id)] = log_probability;
    tops.push_back(top);
  }
  return {{"tokens", tokens}, {"token_logprobs", log_probabilities}, {"top_logprobs", tops}};
}

json Responses::chances(const std::vector<TokenChance>& chances) const {
  if (chances.empty()) return nullptr;
  return endpoint_ == Endpoint::chat ? chat_chances(chances) : legacy_chances(chances);
}

json Responses::whole(const std::vector<AnswerNews>& texts) const {
  const bool is_chat = endpoint_ == Endpoint::chat;
  json response = object(is_chat ? "chat.completion" : "text_completion");
  json& choices = response["choices"] = json::array();
  for (const AnswerNews& text : texts) {
    json choice = {{"index", choices.size()},
                   {"logprobs", chances(text.chances)},
                   {"finish_reason", finish_reason(text)}};
    if (is_chat)
      choice["message"] = message_of(text.parts);
    else
      choice["text"] = text.parts.text;
    choices.push_back(std::move(choice));
  }
  response["usage"] = usage_of(texts);
  return response;
}

json Responses::chunk(size_t index, const AnswerNews& news, bool began) const {
  const bool is_chat = endpoint_ == Endpoint::chat;
  json response = object(is_chat ? "chat.completion.chunk" : "text_completion");
  json choice = {{"index", index}};
  if (is_chat)
    choice["delta"] = delta_of(news, began);
  else
    choice["text"] = news.parts.text;
  choice["logprobs"] = chances(news.chances);
  choice["finish_reason"] = finish_reason(news);
  response["choices"] = json::array({std::move(choice)});
  return response;
}

json Responses::usage_chunk(const std::vector<AnswerNews>& texts) const {
  const bool is_chat = endpoint_ == Endpoint::chat;
  json response = object(is_chat ? "chat.completion.chunk" : "text_completion");
  response["choices"] = json::array();
  response["usage"] = usage_of(texts);
  return response;
}

}  // namespace taper::serve
