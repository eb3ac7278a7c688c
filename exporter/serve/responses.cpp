#include <chrono>
#include <random>
#include <utility>

#include "taper/exporter/serve/api.h"

namespace taper::serve {
namespace {

json finish_reason(llm::Finish finish) {
  switch (finish) {
    case llm::Finish::none:
      return nullptr;
    case llm::Finish::end:
    case llm::Finish::stop:
      return "stop";
    default:
      return "length";  // of the answer, of the context or of the time
  }
}

std::string random_id() {
  static constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::random_device random;
  std::string id;
  for (int i = 0; i < 24; ++i) id += digits[random() % digits.size()];
  return id;
}

json usage_of(const std::vector<Progress>& texts) {
  int64_t prompt = 0, answer = 0, cached = 0;
  for (const Progress& text : texts) {
    prompt += text.statistics.prompt_tokens, answer += text.statistics.answer_tokens;
    cached += text.statistics.cached_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", answer},
          {"total_tokens", prompt + answer},
          {"prompt_tokens_details", {{"cached_tokens", cached}}}};
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
      id_((endpoint == Endpoint::chat ? "chatcmpl-" : "cmpl-") + random_id()),
      model_id_(std::move(model_id)),
      created_(std::chrono::duration_cast<std::chrono::seconds>(
                   std::chrono::system_clock::now().time_since_epoch())
                   .count()),
      tokenizer_(tokenizer) {}

json Responses::object(const char* kind) const {
  return {{"id", id_}, {"object", kind}, {"created", created_}, {"model", model_id_}};
}

// A token's bytes may be a part of a character, so they stand beside its text.
json Responses::chat_chances(const Progress& progress) const {
  const auto token = [&](llm::TokenId id, double log_probability) {
    const std::string bytes = tokenizer_.bytes_of(id);
    const std::string& text = bytes.empty() ? std::string(tokenizer_.token(id)) : bytes;
    return json{{"token", text},
                {"logprob", log_probability},
                {"bytes", std::vector<uint8_t>(bytes.begin(), bytes.end())}};
  };
  json content = json::array();
  for (const TokenChance& chance : progress.chances) {
    content.push_back(token(chance.id, chance.log_probability));
    json& top = content.back()["top_logprobs"] = json::array();
    for (const auto& [id, log_probability] : chance.likeliest)
      top.push_back(token(id, log_probability));
  }
  return {{"content", content}, {"refusal", nullptr}};
}

json Responses::legacy_chances(const Progress& progress) const {
  json tokens = json::array(), log_probabilities = json::array(), tops = json::array();
  for (const TokenChance& chance : progress.chances) {
    tokens.push_back(tokenizer_.bytes_of(chance.id));
    log_probabilities.push_back(chance.log_probability);
    json top = json::object();
    for (const auto& [id, log_probability] : chance.likeliest)
      top[tokenizer_.bytes_of(id)] = log_probability;
    tops.push_back(top);
  }
  return {{"tokens", tokens}, {"token_logprobs", log_probabilities}, {"top_logprobs", tops}};
}

json Responses::chances(const Progress& progress) const {
  if (progress.chances.empty()) return nullptr;
  return endpoint_ == Endpoint::chat ? chat_chances(progress) : legacy_chances(progress);
}

json Responses::whole(const std::vector<Progress>& texts) const {
  const bool is_chat = endpoint_ == Endpoint::chat;
  json response = object(is_chat ? "chat.completion" : "text_completion");
  json& choices = response["choices"] = json::array();
  for (const Progress& text : texts) {
    json choice = {{"index", choices.size()},
                   {"logprobs", chances(text)},
                   {"finish_reason", finish_reason(text.finish)}};
    if (is_chat)
      choice["message"] = {{"role", "assistant"}, {"content", text.text}, {"refusal", nullptr}};
    else
      choice["text"] = text.text;
    choices.push_back(std::move(choice));
  }
  response["usage"] = usage_of(texts);
  return response;
}

json Responses::chunk(size_t index, const Progress& progress, bool began) const {
  const bool is_chat = endpoint_ == Endpoint::chat;
  json response = object(is_chat ? "chat.completion.chunk" : "text_completion");
  json choice = {{"index", index},
                 {"logprobs", chances(progress)},
                 {"finish_reason", finish_reason(progress.finish)}};
  if (is_chat) {
    json& delta = choice["delta"] = json::object();
    if (began) delta["role"] = "assistant";
    if (began || !progress.text.empty()) delta["content"] = progress.text;
  } else {
    choice["text"] = progress.text;
  }
  response["choices"] = json::array({std::move(choice)});
  return response;
}

json Responses::usage_chunk(const std::vector<Progress>& texts) const {
  const bool is_chat = endpoint_ == Endpoint::chat;
  json response = object(is_chat ? "chat.completion.chunk" : "text_completion");
  response["choices"] = json::array();
  response["usage"] = usage_of(texts);
  return response;
}

}  // namespace taper::serve
