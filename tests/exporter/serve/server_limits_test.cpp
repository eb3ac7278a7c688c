// Clients that are strangers, too many, too large, stalled or gone.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "taper/tests/exporter/serve/talking_server.h"

namespace taper::serve {
namespace {

using testing::HasSubstr, testing::Not;
using Clock = std::chrono::steady_clock;

constexpr char chats[] = "/v1/chat/completions";

/// A connection that may do what no client should.
class Wire {
 public:
  explicit Wire(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET, address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int failed = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address);
    EXPECT_EQ(failed, 0);
  }
  ~Wire() { ::close(socket_); }
  Wire(const Wire&) = delete;

  void send(const std::string& bytes) const {
    (void)::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void post(const json& request) const {
    const std::string body = request.dump();
    send(std::string("POST ") + chats +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  /// Until something came that contains `part`, or the end.
  std::string read_until(const std::string& part) const {
    std::string all;
    char bytes[4096];
    while (all.find(part) == std::string::npos) {
      const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
      if (count <= 0) break;
      all.append(bytes, static_cast<size_t>(count));
    }
    return all;
  }

 private:
  int socket_;
};

class server_limits : public TalkingServer {
 protected:
  /// Answers take some seconds, if nobody stops them.
  void SetUp() override {
    TalkingServer::SetUp();
    if (IsSkipped()) return;
    llm::TextModelOptions options;
    options.context = 20000;
    model_.emplace(llm::load_text_model(talking_.folder, options));
    start({});
  }
  json endless(const json& more = json::object()) const {
    json request = chat({{"max_tokens", 19000}, {"stream", true}});
    request.update(more);
    return request;
  }
  uint64_t metric(const std::string& name) const {
    const std::string text = client().Get("/metrics")->body;
    const size_t at = text.find("\ntaper_" + name + " ");
    EXPECT_NE(at, std::string::npos) << name;
    return std::stoull(text.substr(at + name.size() + 8));
  }
  /// Waits until the metric has this value, at most ten seconds.
  void expect_soon(const std::string& name, uint64_t value) const {
    for (int i = 0; i < 500; ++i) {
      if (metric(name) == value) return;  // it may change again: others wait
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << name << " is not " << value;
  }
};

TEST_F(server_limits, let_a_text_be_read_while_it_is_written) {
  const Wire wire(server_->port());
  wire.post(endless());
  for (int i = 0; i < 20; ++i) EXPECT_THAT(wire.read_until("data: "), HasSubstr("data: "));
  EXPECT_EQ(metric("texts_running"), 1u);
}

TEST_F(server_limits, ask_for_a_key) {
  ServerOptions options;
  options.api_key = "secret";
  start(options);
  const auto status = [&](const std::string& path, const char* authorization) {
    const httplib::Headers headers = {{"Authorization", authorization}};
    return client().Get(path, headers)->status;
  };
  EXPECT_EQ(status("/v1/models", "Bearer secret"), 200);
  for (const char* wrong :
       {"", "Bearer", "Bearer secre", "Bearer secret2", "Bearer sfcret", "secret"})
    EXPECT_EQ(status("/v1/models", wrong), 401) << wrong;
  EXPECT_EQ(status("/metrics", ""), 401);
  EXPECT_EQ(status("/health", ""), 200);
  EXPECT_EQ(status("/", ""), 200);
  EXPECT_EQ(post(chats, chat(), 401)["error"]["code"], "invalid_api_key");
}

TEST_F(server_limits, refuse_other_sites) {
  for (const char* host : {"example.com:80", "127.evil.example", "localhost.evil.example"}) {
    const httplib::Headers rebound = {{"Host", host}};
    EXPECT_EQ(client().Get("/v1/models", rebound)->status, 403) << host;
  }
  for (const char* host : {"localhost", "127.0.0.1:1", "[::1]:8080"}) {
    const httplib::Headers headers = {{"Host", host}};
    EXPECT_EQ(client().Get("/v1/models", headers)->status, 200) << host;
  }
  const httplib::Result form = client().Post(chats, chat().dump(), "text/plain");
  EXPECT_EQ(form->status, 415);
  EXPECT_THAT(form->body, HasSubstr("must be application/json"));
}

// A page may post plain text to other sites, and the text may look like a request.
TEST_F(server_limits, take_no_request_out_of_a_body_that_was_refused) {
  const std::string inner = chat().dump();
  const std::string smuggled = std::string("POST ") + chats +
                               " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                               "Content-Length: " +
                               std::to_string(inner.size()) + "\r\n\r\n" + inner;
  const std::string body = std::string(8192, ' ') + smuggled;
  const Wire page(server_->port());
  page.send(std::string("POST ") + chats +
            " HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_THAT(page.read_until("\r\n\r\n"), HasSubstr(" 415 "));
  page.send(body);
  EXPECT_THAT(page.read_until("choices"), Not(HasSubstr("choices")));
}

TEST_F(server_limits, refuse_a_large_body_without_a_length) {
  ServerOptions options;
  options.body_bytes = 5000;
  start(options);
  const Wire client(server_->port());
  client.send(std::string("POST ") + chats +
              " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              "Transfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 8; ++i) client.send("400\r\n" + std::string(1024, ' ') + "\r\n");
  EXPECT_THAT(client.read_until("5000 bytes"), HasSubstr(" 413 "));
}

TEST_F(server_limits, refuse_a_large_body) {
  ServerOptions options;
  options.body_bytes = 5000;
  start(options);
  const httplib::Result large =
      client().Post(chats, chat({{"user", std::string(6000, 'x')}}).dump(), "application/json");
  ASSERT_TRUE(large);
  EXPECT_EQ(large->status, 413);
  EXPECT_EQ(json::parse(large->body)["error"]["message"], "a request may have 5000 bytes");
  const Wire claims(server_->port());
  claims.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: 99999999999999\r\n\r\n{");
  post(chats, chat());  // nobody waits for the rest of it
}

TEST_F(server_limits, refuse_those_who_would_wait_too_long) {
  ServerOptions options;
  options.engine.sequences = 1, options.engine.waiting = 1;
  start(options);
  const Wire first(server_->port()), second(server_->port());
  first.post(endless());
  first.read_until("t202");
  second.post(endless());
  expect_soon("texts_waiting", 1);
  const httplib::Result third = client().Post(chats, chat().dump(), "application/json");
  EXPECT_EQ(third->status, 429);
  EXPECT_EQ(third->get_header_value("Retry-After"), "1");
  EXPECT_EQ(json::parse(third->body)["error"]["type"], "rate_limit_error");
}

TEST_F(server_limits, end_an_answer_in_time) {
  ServerOptions options;
  options.engine.seconds = 0.3;
  start(options);
  const auto begin = Clock::now();
  const json answer = post(chats, endless({{"stream", false}}));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8));
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_LT(answer["usage"]["completion_tokens"], 19000);
}

TEST_F(server_limits, bound_an_answer) {
  ServerOptions options;
  options.limits.max_tokens = 5;
  start(options);
  EXPECT_EQ(post(chats, chat())["usage"]["completion_tokens"], 5);
}

TEST_F(server_limits, stop_working_for_a_client_that_is_gone) {
  for (const bool streams : {true, false}) {
    start({});
    {
      const Wire wire(server_->port());
      wire.post(endless({{"stream", streams}}));
      expect_soon("texts_running", 1);
      if (streams) wire.read_until("t202");
    }
    expect_soon("texts_running", 0);
    EXPECT_EQ(metric("texts_cancelled_total"), 1u);
  }
}

TEST_F(server_limits, forget_a_client_that_is_gone_while_it_waits) {
  ServerOptions options;
  options.engine.sequences = 1;
  start(options);
  const Wire first(server_->port());
  first.post(endless());
  first.read_until("t202");
  {
    const Wire second(server_->port());
    second.post(endless());
    expect_soon("texts_waiting", 1);
  }
  expect_soon("texts_waiting", 0);
}

/// Each of 200 clients stalls, vanishes or sends rubbish. Others are answered as before.
TEST_F(server_limits, do_not_let_bad_clients_disturb_others) {
  const auto begin = Clock::now();
  std::vector<std::unique_ptr<Wire>> stalled;
  for (int i = 0; i < 200; ++i) {
    auto wire = std::make_unique<Wire>(server_->port());
    if (i % 4 == 1) wire->send("POST /v1/chat/completions HTTP/1.1\r\nContent-Le");
    if (i % 4 == 2) wire->send(std::string(100, '\xfe') + "\r\n\r\n");
    if (i % 4 == 3) wire->post(endless());
    if (i % 8 < 4) stalled.push_back(std::move(wire));  // the others vanish
  }
  EXPECT_EQ(client().Get("/health")->status, 200);
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10));
  stalled.clear();
  EXPECT_EQ(post(chats, chat({{"max_tokens", 2}}))["choices"][0]["message"]["content"],
            words({202, 41}));
  expect_soon("texts_running", 0);
}

TEST_F(server_limits, let_a_server_end_while_it_answers) {
  ServerOptions options;
  options.read_seconds = 1;  // so long an idle connection may take
  start(options);
  const Wire wire(server_->port()), waits(server_->port());
  wire.post(endless());
  wire.read_until("t202");
  const auto begin = Clock::now();
  server_.reset();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(8));
}

TEST_F(server_limits, leave_a_client_whose_request_comes_too_slowly) {
  ServerOptions options;
  options.body_seconds = 1;
  start(options);
  const Wire slow(server_->port());
  slow.send(std::string("POST ") + chats +
            " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 1000\r\n\r\n");
  for (int i = 0; i < 8; ++i) {
    slow.send(" ");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_THAT(slow.read_until("seconds"), HasSubstr(" 408 "));
}

/// The answer waits for a client that takes nothing. Others get theirs.
TEST_F(server_limits, do_not_wait_for_a_client_that_takes_nothing) {
  ServerOptions options;
  options.engine.sequences = 2, options.write_seconds = 1;
  start(options);
  const Wire lazy(server_->port());
  lazy.post(endless({{"max_tokens", 4000}, {"logprobs", true}, {"top_logprobs", 20}}));
  expect_soon("texts_running", 1);
  const auto begin = Clock::now();
  EXPECT_EQ(post(chats, chat({{"max_tokens", 2}}))["choices"][0]["message"]["content"],
            words({202, 41}));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(4));
  expect_soon("texts_running", 0);  // its buffers are full, and nobody takes more
}

TEST_F(server_limits, name_a_host_that_is_wrong) {
  for (const auto& [host, why] : {std::pair("no.such.host.invalid", "there is no host"),
                                  std::pair("192.0.2.1", "is no address of this machine")}) {
    ServerOptions options;
    options.host = host;
    try {
      const Server server(*model_, options);
      FAIL() << host;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
}

TEST_F(server_limits, refuse_an_address_that_is_taken) {
  ServerOptions options;
  options.port = server_->port();
  try {
    const Server second(*model_, options);
    FAIL() << "two servers have one address";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot be used: another program has it"));
  }
}

}  // namespace
}  // namespace taper::serve
