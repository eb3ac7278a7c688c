// Requests and responses as OpenAI's servers take and give them.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "taper/exporter/serve/engine.h"

namespace taper::serve {

using nlohmann::json;

/// A request that is refused: an HTTP status and OpenAI's error object.
class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message, std::string parameter = "",
           std::string code = "")
      : std::runtime_error(message),
        status(status),
        parameter(std::move(parameter)),
        code(std::move(code)) {}

  json body() const;

  int status;
  std::string parameter, code;
};

enum class Endpoint : uint8_t { chat, completions };

struct Limits {
  int64_t max_tokens = 0;  ///< of an answer; 0: as many as the context has room for
  int choices = 8;         ///< answers of one request
};

/// What a request asks for. `texts` has `choices` elements for each prompt, in order.
struct ApiRequest {
  Endpoint endpoint = Endpoint::chat;
  std::vector<TextRequest> texts;
  bool streams = false, includes_usage = false;
};

/// Throws ApiError for what is wrong, and for what this server does not do.
ApiRequest read_request(Endpoint endpoint, const std::string& body, const llm::LanguageModel& model,
                        const std::string& model_id, const Limits& limits);

/// The objects of one response share their id and time.
class Responses {
 public:
  Responses(Endpoint endpoint, std::string model_id, const llm::Tokenizer& tokenizer);

  /// The whole response. `texts` are those of all choices, with their ends.
  json whole(const std::vector<Progress>& texts) const;
  /// A chunk of a stream. `began`: this is the first one of choice `index`.
  json chunk(size_t index, const Progress& progress, bool began) const;
  /// The last chunk, if the request asks for it.
  json usage_chunk(const std::vector<Progress>& texts) const;

 private:
  json object(const char* kind) const;
  json chances(const Progress& progress) const;
  json chat_chances(const Progress& progress) const;
  json legacy_chances(const Progress& progress) const;

  Endpoint endpoint_;
  std::string id_, model_id_;
  int64_t created_;
  const llm::Tokenizer& tokenizer_;
};

/// Text for a response: JSON whose texts are valid UTF-8.
std::string text_of(const json& object);

}  // namespace taper::serve
