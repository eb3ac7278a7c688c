#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <ostream>
#include <thread>
#include <utility>

#include "taper/exporter/base/error.h"
#include "taper/exporter/cli/answer.h"
#include "taper/exporter/cli/commands.h"
#include "taper/exporter/cli/embedding_model.h"
#include "taper/exporter/io/format_text.h"
#include "taper/exporter/llm/named_adapter.h"
#include "taper/exporter/serve/address.h"
#include "taper/exporter/serve/server.h"

namespace taper::cli {
namespace {

std::atomic<bool> ended{false};
void end(int) { ended = true; }

constexpr int usual_sequences = 4;

struct ServeArguments {
  ModelChoice model;
  std::string pooling;
  serve::ServerOptions server;
  int64_t port = 8080, sequences = 0, waiting = 64, body_bytes = 1 << 20, max_tokens = 0,
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
  options.engine.sequences = in_range("--parallel", a.sequences, 0, 256);
  options.engine.waiting = in_range("--max-waiting", a.waiting, 0, many);
  options.engine.seconds = in_range("--max-seconds", a.seconds, 1, many);
  if (options.api_key.empty())
    if (const char* key = std::getenv("TAPER_API_KEY")) options.api_key = key;
  if (options.model_id.empty())
    options.model_id = std::filesystem::path(a.model.model).lexically_normal().stem().string();
  if (options.model_id.empty()) options.model_id = "model";
  return options;
}

/// A model that writes gives embeddings, too, if its program has the states of tokens. They need a
/// row of their own.
serve::Models models_of(const ServeArguments& a, int sequences) {
  if (is_encoder(a.model.model)) {
    const llm::AdapterFiles adapters = llm::adapter_files(a.model.lora);
    if (!adapters.by_name.empty())
      throw ExportError(a.model.model +
                        ": an encoder takes one adapter; give --lora without a name");
    return serve::Models(load_encoder(a.model.model, a.pooling, adapters.always));
  }
  ModelChoice choice = a.model;
  choice.states = true;
  choice.rows = (sequences > 0 ? sequences : usual_sequences) + 1;
  serve::Models models(choice.load());
  models.embedder = embedder_of(*models.language, a.pooling);
  return models;
}

/// As many as one call computes together.
int sequences_of(const serve::Models& models) {
  const auto rows = static_cast<int>(models.language->rows());
  if (rows == 1) return usual_sequences;
  return std::max(1, models.embedder != nullptr ? rows - 1 : rows);
}

std::string caches_text(const llm::LanguageModel& model, int sequences) {
  const std::string way = sequences == 1     ? "one text at a time"
                          : model.rows() > 1 ? "texts at once, a token of each in one call"
                                             : "texts at once, one token after the other";
  return (sequences == 1 ? way : std::to_string(sequences) + " " + way) + "; up to " +
         io::bytes_text(static_cast<int64_t>(model.cache_bytes())) +
         " of caches for each, at a context of " + std::to_string(model.context()) + " tokens";
}

void serve_until_ended(const ServeArguments& a, std::ostream& out) {
  serve::ServerOptions options = options_of(a);
  serve::require_address(options.host, options.port);  // before the wait for the model
  serve::Models models = models_of(a, options.engine.sequences);
  std::string caches;
  if (models.language) {
    if (options.engine.sequences == 0) options.engine.sequences = sequences_of(models);
    caches = caches_text(*models.language, options.engine.sequences);
  }
  ended = false;
  const auto before_term = std::signal(SIGTERM, end), before_int = std::signal(SIGINT, end);
  {
    const serve::Server server(std::move(models), options);
    out << options.model_id << " at " << server.url() << "   for a browser; programs use "
        << server.url() << "/v1\n";
    if (!caches.empty()) out << caches << '\n';
    out << std::flush;
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
  command.option("--parallel", a->sequences,
                 "texts that are written at once, each with its own caches; 0: as many as the "
                 "program was exported for, or 4");
  command.option("--max-waiting", a->waiting, "texts that may wait for their turn").shows_default();
  command.option("--max-tokens", a->max_tokens,
                 "the most tokens of an answer; 0: what the context has room for");
  command.option("--max-seconds", a->seconds, "the longest life of a request").shows_default();
  command.option("--max-body", a->body_bytes, "the most bytes of a request").shows_default();
  command.does([a, &out] { serve_until_ended(*a, out); });
}

}  // namespace taper::cli
