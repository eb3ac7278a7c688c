// Requests and responses as OpenAI's servers take and give them.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "taper/exporter/serve/engine.h"
#include "taper/exporter/serve/schemas.h"
#include "taper/runtime/extension/llm/embedder.h"
#include "taper/runtime/extension/llm/tools.h"

namespace taper::serve {

/// Templates and schemas keep the order of keys.
using json = nlohmann::ordered_json;

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

enum class Endpoint : uint8_t { chat, completions, embeddings };

struct Limits {
  int64_t max_tokens = 0;  ///< of an answer; 0: as many as the context has room for
  int choices = 8;         ///< answers of one request
};

/// What a request asks for. `texts` has `choices` elements for each prompt, in order.
struct ApiRequest {
  std::string model;  ///< its name, or that of an adapter
  Endpoint endpoint = Endpoint::chat;
  std::vector<TextRequest> texts;
  bool streams = false, includes_usage = false;
  llm::AnswerStyle answer;  ///< how the answers of a chat are taken apart
  bool calls_once = false;  ///< only the first call of an answer counts
};

/// Throws ApiError for what is wrong, and for what this server does not do.
ApiRequest read_request(Endpoint endpoint, const std::string& body, const llm::LanguageModel& model,
                        Schemas& schemas, const std::string& model_id, const Limits& limits);

/// Texts that become vectors.
struct EmbeddingRequest {
  std::vector<std::vector<llm::TokenId>> texts;
  bool is_base64 = false;  ///< vectors are written as the bytes of floats
};
EmbeddingRequest read_embedding_request(const std::string& body, llm::Embedder& embedder,
                                        const std::string& model_id);
json embedding_response(const EmbeddingRequest& request, const std::string& model_id,
                        const std::vector<std::vector<float>>& embeddings);

/// What came of one text since the last look, or all of it.
struct AnswerNews {
  llm::AnswerParts parts;
  std::vector<TokenChance> chances;
  llm::Finish finish = llm::Finish::none;
  llm::GenerationStatistics statistics;  ///< at the end
  size_t calls_before = 0;               ///< calls of this text that were told already

  bool has_parts() const {
    return !parts.thoughts.empty() || !parts.text.empty() || !parts.calls.empty() ||
           !chances.empty();
  }
};

/// The objects of one response share their id and time.
class Responses {
 public:
  Responses(Endpoint endpoint, std::string model_id, const llm::Tokenizer& tokenizer);

  /// The whole response. `texts` are those of all choices, with their ends.
  json whole(const std::vector<AnswerNews>& texts) const;
  /// A chunk of a stream. `began`: this is the first one of choice `index`.
  json chunk(size_t index, const AnswerNews& news, bool began) const;
  /// The last chunk, if the request asks for it.
  json usage_chunk(const std::vector<AnswerNews>& texts) const;

 private:
  json object(const char* kind) const;
  json chances(const std::vector<TokenChance>& chances) const;
  json chat_chances(const std::vector<TokenChance>& chances) const;
  json legacy_chances(const std::vector<TokenChance>& chances) const;

  Endpoint endpoint_;
  std::string id_, model_id_;
  int64_t created_;
  const llm::Tokenizer& tokenizer_;
};

/// Text for a response: JSON whose texts are valid UTF-8.
std::string text_of(const json& object);

}  // namespace taper::serve
