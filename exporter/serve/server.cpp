#include "taper/exporter/serve/server.h"

#include <httplib.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "taper/exporter/serve/address.h"
#include "taper/exporter/serve/answer.h"
#include "taper/exporter/serve/metrics.h"
#include "taper/exporter/serve/workers.h"

namespace taper::serve {

/// The page, made of page/ by the build.
extern const std::string_view chat_page;

namespace {

using httplib::Request;
using httplib::Response;
using Handled = httplib::Server::HandlerResponse;

constexpr char json_type[] = "application/json";

/// What the server has, and how to ask for it.
struct Route {
  const char *method, *path;
};
constexpr Route routes[] = {{"GET", "/"},
                            {"GET", "/health"},
                            {"GET", "/metrics"},
                            {"GET", "/v1/models"},
                            {"POST", "/v1/chat/completions"},
                            {"POST", "/v1/completions"},
                            {"POST", "/v1/embeddings"}};

/// The method that a path takes; nullptr: there is no such path.
const char* method_of(const std::string& path) {
  for (const Route& route : routes)
    if (path == route.path) return route.method;
  return nullptr;
}

void fail(Response& response, const ApiError& error) {
  response.status = error.status;
  response.set_content(text_of(error.body()), json_type);
}

/// Takes as long for a wrong key as for the right one.
bool equal(std::string_view given, std::string_view wanted) {
  size_t different = given.size() ^ wanted.size();
  for (size_t i = 0; i < given.size(); ++i)
    different |= static_cast<size_t>(given[i] ^ wanted[i % wanted.size()]);
  return different == 0;
}

/// Names such as 127.evil.example are not of this machine.
bool is_loopback(const std::string& host) {
  const bool is_number = host.find_first_not_of("0123456789.") == std::string::npos;
  return host == "localhost" || host == "::1" || (is_number && host.starts_with("127."));
}

/// "localhost" of "localhost:8080", "::1" of "[::1]:8080".
std::string name_of(const std::string& host) {
  if (host.starts_with("[")) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

struct Server::Parts {
  Parts(Models models, const ServerOptions& given)
      : options(given), embedder(std::move(models.embedder)) {
    if (!models.language) return;
    schemas.emplace(models.language->tokenizer());
    engine.emplace(std::move(*models.language), given.engine);
  }

  void set_limits();
  void set_routes();
  void listen();
  void admit(const Request& request) const;
  std::string body_of(const Request& request, const httplib::ContentReader& read) const;
  void embed(const std::string& body, Response& response);
  void complete(Endpoint endpoint, const std::string& body, Response& response);
  json models() const;

  const ServerOptions options;
  std::optional<Engine> engine;  ///< of the model that writes
  std::optional<Schemas> schemas;
  std::mutex embedding;
  std::unique_ptr<llm::Embedder> embedder;
  std::atomic<bool> ends{false};
  httplib::Server http;
  socket_t listener = -1;
  int port = 0;
  std::thread thread;
};

/// A page of another site must not reach a server on this machine, so requests must name a host of
/// the machine, and bodies must be JSON, which browsers do not send elsewhere without asking.
void Server::Parts::admit(const Request& request) const {
  if (is_loopback(options.host) && !is_loopback(name_of(request.get_header_value("Host"))))
    throw ApiError(403, "this server answers requests to localhost only");
  const bool is_open = request.path == "/" || request.path == "/health";
  if (!options.api_key.empty() && !is_open &&
      !equal(request.get_header_value("Authorization"), "Bearer " + options.api_key))
    throw ApiError(401, "the header `Authorization: Bearer KEY` is missing, or its key is wrong",
                   "", "invalid_api_key");
  if (request.method == "POST" && !request.get_header_value("Content-Type").starts_with(json_type))
    throw ApiError(415, "the header `Content-Type` must be application/json");
}

json Server::Parts::models() const {
  json list = json::array();
  const auto add = [&](const std::string& name) {
    list.push_back({{"id", name},
                    {"object", "model"},
                    {"created", 0},
                    {"owned_by", "taper"},
                    {"context_length", engine ? engine->model().context() : embedder->longest()}});
  };
  add(options.model_id);
  if (engine)
    for (const std::string& adapter : engine->model().text().adapters) add(adapter);
  return {{"object", "list"}, {"data", list}};
}

/// The limit of httplib holds for bodies that say their size. Others are chunked or compressed. Its
/// timeout holds for each part of a body, so that a slow client could keep a thread for hours.
std::string Server::Parts::body_of(const Request& request,
                                   const httplib::ContentReader& read) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point latest = Clock::now() + std::chrono::seconds(options.body_seconds);
  std::string body;
  bool is_late = false,
       is_too_large = request.get_header_value<uint64_t>("Content-Length") > options.body_bytes;
  const bool is_read = !is_too_large && read([&](const char* bytes, size_t count) {
    is_too_large = count > options.body_bytes - body.size();
    is_late = Clock::now() > latest;
    if (!is_too_large) body.append(bytes, count);
    return !is_too_large && !is_late;
  });
  if (is_late)
    throw ApiError(408, "the request took longer than " + std::to_string(options.body_seconds) +
                            " seconds to come");
  if (is_too_large)
    throw ApiError(413, "a request may have " + std::to_string(options.body_bytes) + " bytes");
  if (!is_read) throw ApiError(400, "the request cannot be read");
  return body;
}

/// Texts of different requests take turns.
void Server::Parts::embed(const std::string& body, Response& response) {
  if (!embedder)
    throw ApiError(400, "the model gives no embeddings: export the program with --states");
  const EmbeddingRequest request = read_embedding_request(body, *embedder, options.model_id);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::vector<float>> embeddings;
  for (const std::vector<llm::TokenId>& text : request.texts) {
    const std::chrono::duration<double> gone = std::chrono::steady_clock::now() - begin;
    if (ends || gone.count() > options.engine.seconds)
      throw ApiError(503, "the server had no time for all texts; send fewer at once");
    const std::lock_guard lock(embedding);
    std::string why;
    Result<std::vector<float>> embedding_of_text =
        embedder->embed({text.data(), static_cast<index_t>(text.size())}, &why);
    if (!embedding_of_text.ok()) throw ApiError(500, why);
    embeddings.push_back(std::move(embedding_of_text.value()));
  }
  response.set_content(text_of(embedding_response(request, options.model_id, embeddings)),
                       json_type);
}

void Server::Parts::complete(Endpoint endpoint, const std::string& body, Response& response) {
  if (!engine) throw ApiError(400, "the model only gives embeddings: /v1/embeddings");
  ApiRequest read =
      read_request(endpoint, body, engine->model(), *schemas, options.model_id, options.limits);
  const auto most = static_cast<size_t>(options.engine.sequences + options.engine.waiting);
  if (read.texts.size() > most)
    throw ApiError(
        400, "the server writes at most " + std::to_string(most) + " texts for a request", "n");
  auto jobs = engine->submit(read.texts);
  if (!jobs) {
    response.set_header("Retry-After", "1");
    throw ApiError(429, "too many requests wait already");
  }
  Responses responses(endpoint, read.model, engine->model().tokenizer());
  const auto answer =
      std::make_shared<Answer>(std::move(read), std::move(*jobs), std::move(responses));
  if (std::string_view(answer->media_type()).ends_with("event-stream"))
    response.set_header("Cache-Control", "no-cache");
  response.set_chunked_content_provider(
      answer->media_type(),
      [answer](size_t, httplib::DataSink& sink) { return answer->send(sink); });
}

void Server::Parts::set_limits() {
  http.new_task_queue = [most = static_cast<size_t>(options.connections)] {
    return new Workers(most);
  };
  http.set_payload_max_length(options.body_bytes);
  http.set_read_timeout(options.read_seconds);
  http.set_write_timeout(options.write_seconds);
  http.set_keep_alive_timeout(options.read_seconds);
  // a body that was refused unread must not be taken for the next request
  http.set_keep_alive_max_count(1);
  http.set_tcp_nodelay(true);
  // an address that another server has must be refused, not shared
  http.set_socket_options([this](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    listener = socket;
  });
}

void Server::Parts::set_routes() {
  http.set_pre_routing_handler([this](const Request& request, Response& response) {
    try {
      admit(request);
      return Handled::Unhandled;
    } catch (const ApiError& error) {
      fail(response, error);
      return Handled::Handled;
    }
  });
  http.set_error_handler([this](const Request& request, Response& response) {
    if (!response.body.empty()) return;
    const int status = response.status;
    if (const char* method = method_of(request.path); status == 404 && method != nullptr) {
      response.set_header("Allow", method);
      return fail(response, ApiError(405, request.path + " takes " + method + ", not " +
                                              request.method.substr(0, 20)));
    }
    fail(response,
         status == 404 ? ApiError(404, "there is nothing at " + request.path)
         : status == 413
             ? ApiError(413, "a request may have " + std::to_string(options.body_bytes) + " bytes")
             : ApiError(status, "the request cannot be read"));
  });
  http.Get("/", [](const Request&, Response& response) {
    response.set_content(chat_page.data(), chat_page.size(), "text/html; charset=utf-8");
  });
  http.Get("/health", [](const Request&, Response& response) {
    response.set_content(R"({"status":"ok"})", json_type);
  });
  http.Get("/metrics", [this](const Request&, Response& response) {
    response.set_content(metrics_text(engine ? engine->counts() : EngineCounts()),
                         "text/plain; version=0.0.4");
  });
  http.Get("/v1/models", [this](const Request&, Response& response) {
    response.set_content(text_of(models()), json_type);
  });
  http.Get("/v1/models/(.+)", [this](const Request& request, Response& response) {
    const json all = models();
    for (const json& model : all["data"])
      if (model["id"] == request.matches[1].str())
        return response.set_content(text_of(model), json_type);
    fail(response,
         ApiError(404, "this server has `" + options.model_id + "`", "model", "model_not_found"));
  });
  const auto post = [this](const char* path, Endpoint endpoint) {
    http.Post(path, [this, endpoint](const Request& request, Response& response,
                                     const httplib::ContentReader& read) {
      try {
        const std::string body = body_of(request, read);
        if (endpoint == Endpoint::embeddings)
          embed(body, response);
        else
          complete(endpoint, body, response);
      } catch (const ApiError& error) {
        fail(response, error);
      } catch (const std::exception& error) {
        fail(response, ApiError(500, error.what()));
      }
    });
  };
  post("/v1/chat/completions", Endpoint::chat);
  post("/v1/completions", Endpoint::completions);
  post("/v1/embeddings", Endpoint::embeddings);
}

void Server::Parts::listen() {
  require_address(options.host, options.port);
  port = options.port == 0 ? http.bind_to_any_port(options.host.c_str()) : options.port;
  if (port < 0 || (options.port != 0 && !http.bind_to_port(options.host.c_str(), options.port)))
    throw std::runtime_error("the address " + options.host + ":" + std::to_string(options.port) +
                             " cannot be used");
  // httplib lets 5 connections wait: if more come at once, theirs take seconds
  ::listen(listener, options.connections);
  thread = std::thread([this] { http.listen_after_bind(); });
  while (!http.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// A request could not choose an adapter with the model's name.
static Models named_apart(Models models, const std::string& model_id) {
  if (!models.language) return models;
  const std::vector<std::string>& adapters = models.language->text().adapters;
  if (std::find(adapters.begin(), adapters.end(), model_id) != adapters.end())
    throw std::runtime_error("an adapter has the name of the model, `" + model_id +
                             "`; give the model another one with --name");
  return models;
}

Server::Server(Models models, const ServerOptions& options)
    : parts_(std::make_unique<Parts>(named_apart(std::move(models), options.model_id), options)) {
  parts_->set_limits();
  parts_->set_routes();
  parts_->listen();
}

Server::~Server() {
  parts_->ends = true;
  parts_->http.stop();
  parts_->thread.join();
}

int Server::port() const { return parts_->port; }
std::string Server::url() const {
  const std::string& host = parts_->options.host;
  const bool is_v6 = host.find(':') != std::string::npos;
  return "http://" + (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port());
}

}  // namespace taper::serve
