// An HTTP server with the interface of OpenAI's: chat completions, completions, models; and a page
// to chat in a browser, health and metrics.
#pragma once
#include <memory>
#include <string>

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
  Limits limits;
  EngineOptions engine;
};

class Server {
 public:
  /// Listens, and answers in threads of its own. Throws std::runtime_error if the address is taken.
  Server(llm::LanguageModel model, const ServerOptions& options);
  /// Ends all answers and closes the connections.
  ~Server();

  int port() const;
  std::string url() const;  ///< "http://127.0.0.1:8080"

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::serve
