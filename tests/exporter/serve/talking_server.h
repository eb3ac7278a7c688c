// A server of the model that tests/exporter/llm/talking_model.h makes, and a client of it.
#pragma once
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "taper/exporter/llm/text_model.h"
#include "taper/exporter/serve/server.h"
#include "taper/tests/exporter/llm/talking_model.h"

namespace taper::serve {

using llm::words;

/// The events of a stream, without "[DONE]", which must be the last one.
inline std::vector<json> events_of(const std::string& body) {
  std::vector<json> events;
  std::istringstream lines(body);
  bool done = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    EXPECT_FALSE(done) << line;
    EXPECT_EQ(line.substr(0, 6), "data: ");
    done = line == "data: [DONE]";
    if (!done) events.push_back(json::parse(line.substr(6)));
  }
  EXPECT_TRUE(done);
  return events;
}

class TalkingServer : public testing::Test {
 protected:
  void SetUp() override {
    TAPER_GOLDEN_DATA_OR_SKIP(source, "hf_tiny/smollm");
    talking_ = llm::talking_model(source);
    llm::TextModelOptions options;
    options.exact = true;
    model_.emplace(llm::load_text_model(talking_.folder, options));
    start({});
  }
  void start(ServerOptions options) {
    options.model_id = "talking";
    server_.reset();
    server_ = std::make_unique<Server>(*model_, options);
  }

  httplib::Client client() const {
    httplib::Client client("127.0.0.1", server_->port());
    client.set_read_timeout(20);
    return client;
  }
  /// The body of the answer.
  json post(const std::string& path, const json& request, int status = 200) const {
    const httplib::Result result = client().Post(path, request.dump(), "application/json");
    if (!result) return ADD_FAILURE() << httplib::to_string(result.error()), json();
    EXPECT_EQ(result->status, status) << result->body;
    return json::parse(result->body);
  }
  std::string refusal(const std::string& path, const json& request, int status = 400) const {
    const json answer = post(path, request, status);
    return answer.value("error", json::object()).value("message", "");
  }
  json chat(const json& more = json::object()) const {
    json request = {{"messages", {{{"role", "user"}, {"content", talking_.question()}}}},
                    {"temperature", 0},
                    {"max_tokens", 24}};
    request.update(more);
    return request;
  }
  json completion(const json& more = json::object()) const {
    json request = {{"prompt", talking_.prompt}, {"temperature", 0}, {"max_tokens", 24}};
    request.update(more);
    return request;
  }
  std::string answer() const { return words(talking_.answer); }

  llm::TalkingModel talking_;
  std::optional<llm::LanguageModel> model_;
  std::unique_ptr<Server> server_;
};

}  // namespace taper::serve
