// An HTTP server with the interface of OpenAI's: chat completions, completions, embeddings, models;
// and a page to chat in a browser, health and metrics.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "taper/exporter/serve/api.h"

namespace taper::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;         ///< 0: any that is free
  std::string api_key;  ///< empty: everybody may ask
  std::string model_id = "model";
  size_t body_bytes = 1 << 20;  ///< the largest request
  int connections = 256;        ///< served at once; more wait
  int read_seconds = 5;         ///< a client that sends nothing for so long is left
  int write_seconds = 5;        ///< so is one that takes nothing
  int body_seconds = 30;        ///< a request must be there after so long
  Limits limits;
  EngineOptions engine;
};

/// What is served. One of them may be missing.
struct Models {
  Models(llm::LanguageModel writes) : language(std::move(writes)) {}  // NOLINT: converts
  explicit Models(std::unique_ptr<llm::Embedder> embeds) : embedder(std::move(embeds)) {}

  std::optional<llm::LanguageModel> language;
  std::unique_ptr<llm::Embedder> embedder;
};

class Server {
 public:
  /// Listens, and answers in threads of its own. Throws std::runtime_error if the address is taken,
  /// or if an adapter has the model's name.
  Server(Models models, const ServerOptions& options);
  /// Ends all answers and closes the connections.
  ~Server();

  int port() const;
  std::string url() const;  ///< "http://127.0.0.1:8080"

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::serve
