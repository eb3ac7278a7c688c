#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <thread>
#include <utility>

#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/embedding_model.h"
#include "taper/exporter/serve/address.h"
#include "taper/exporter/serve/server.h"

namespace taper::cli {
namespace {

std::atomic<bool> ended{false};
void end(int) { ended = true; }

struct ServeArguments {
  ModelChoice model;
  std::string pooling;
  serve::ServerOptions server;
  int64_t port = 8080, sequences = 4, waiting = 64, body_bytes = 1 << 20, max_tokens = 0,
          seconds = 600;
};

int in_range(const char* option, int64_t value, int64_t least, int64_t most) {
  if (value < least || value > most)
    throw UsageError(option,
                     "it must be from " + std::to_string(least) + " to " + std::to_string(most));
  return static_cast<int>(value);
}

serve::ServerOptions options_of(const ServeArguments& a) {
  serve::ServerOptions options = a.server;
  constexpr int many = 1 << 30;
  options.port = in_range("--port", a.port, 0, 65535);
  options.body_bytes = static_cast<size_t>(in_range("--max-body", a.body_bytes, 1024, many));
  options.limits.max_tokens = in_range("--max-tokens", a.max_tokens, 0, many);
  options.engine.sequences = in_range("--parallel", a.sequences, 1, 256);
  options.engine.waiting = in_range("--max-waiting", a.waiting, 0, many);
  options.engine.seconds = in_range("--max-seconds", a.seconds, 1, many);
  if (options.api_key.empty())
    if (const char* key = std::getenv("TAPER_API_KEY")) options.api_key = key;
  if (options.model_id.empty())
    options.model_id = std::filesystem::path(a.model.model).lexically_normal().stem().string();
  if (options.model_id.empty()) options.model_id = "model";
  return options;
}

/// A model that writes gives embeddings, too, if its program has the states of tokens.
serve::Models models_of(const ServeArguments& a) {
  if (is_encoder(a.model.model)) return serve::Models(load_encoder(a.model.model, a.pooling));
  ModelChoice choice = a.model;
  choice.states = true;
  serve::Models models(choice.load());
  models.embedder = embedder_of(*models.language, a.pooling);
  return models;
}

void serve_until_ended(const ServeArguments& a, std::ostream& out) {
  const serve::ServerOptions options = options_of(a);
  serve::require_address(options.host, options.port);  // before the wait for the model
  serve::Models models = models_of(a);
  ended = false;
  const auto before_term = std::signal(SIGTERM, end), before_int = std::signal(SIGINT, end);
  {
    const serve::Server server(std::move(models), options);
    out << options.model_id << " at " << server.url() << "   for a browser; programs use "
        << server.url() << "/v1" << std::endl;
    while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::signal(SIGTERM, before_term), std::signal(SIGINT, before_int);
}

}  // namespace

void add_serve_command(CommandLine& line, std::ostream& out) {
  const auto a = std::make_shared<ServeArguments>();
  a->server.model_id.clear();
  Command command = line.add(
      "serve", "Serves a language model to browsers and to programs that know OpenAI's interface.");
  a->model.add_to(command);
  add_pooling(command, a->pooling);
  command.option("--port", a->port, "0: any that is free").shows_default();
  command
      .option("--host", a->server.host,
              "the address to listen on; only this machine reaches 127.0.0.1")
      .shows_default();
  command.option("--api-key", a->server.api_key,
                 "what clients must know; better in the environment variable TAPER_API_KEY");
  command.option("--name", a->server.model_id,
                 "the model's name for clients; by default that of the file");
  command
      .option("--parallel", a->sequences, "texts that are written at once; each has its own caches")
      .shows_default();
  command.option("--max-waiting", a->waiting, "texts that may wait for their turn").shows_default();
  command.option("--max-tokens", a->max_tokens,
                 "the most tokens of an answer; 0: what the context has room for");
  command.option("--max-seconds", a->seconds, "the longest life of a request").shows_default();
  command.option("--max-body", a->body_bytes, "the most bytes of a request").shows_default();
  command.does([a, &out] { serve_until_ended(*a, out); });
}

}  // namespace taper::cli
