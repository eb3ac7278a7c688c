// What the server answers. The texts are those of greedy decoding, which transformers recorded.
#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "taper/tests/exporter/llm/random_adapter.h"
#include "taper/tests/exporter/serve/talking_server.h"

namespace taper::serve {
namespace {

using testing::HasSubstr;

constexpr char chats[] = "/v1/chat/completions", completions[] = "/v1/completions";

class server : public TalkingServer {};

TEST_F(server, answers_a_conversation) {
  const json answer = post(chats, chat());
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["model"], "talking");
  EXPECT_EQ(answer["choices"].size(), 1u);
  EXPECT_EQ(answer["choices"][0]["message"]["content"], this->answer());
  EXPECT_EQ(answer["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 16);
  EXPECT_EQ(answer["usage"]["completion_tokens"], 24);
  EXPECT_EQ(answer["usage"]["total_tokens"], 40);
  const json again = post(chats, chat());
  EXPECT_EQ(again["choices"][0]["message"]["content"], this->answer());
  EXPECT_EQ(again["usage"]["prompt_tokens_details"]["cached_tokens"], 15);
  EXPECT_NE(again["id"], answer["id"]);
}

TEST_F(server, streams_the_same_text) {
  const httplib::Result result = client().Post(
      chats, chat({{"stream", true}, {"stream_options", {{"include_usage", true}}}}).dump(),
      "application/json");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->get_header_value("Content-Type"), "text/event-stream");
  std::string text;
  const std::vector<json> events = events_of(result->body);
  ASSERT_GE(events.size(), 3u);  // tokens that come at once share one
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  for (const json& event : events) {
    EXPECT_EQ(event["object"], "chat.completion.chunk");
    EXPECT_EQ(event["id"], events[0]["id"]);
    for (const json& choice : event["choices"]) text += choice["delta"].value("content", "");
  }
  EXPECT_EQ(text, answer());
  EXPECT_EQ(events[events.size() - 2]["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(events.back()["usage"]["total_tokens"], 40);
}

TEST_F(server, continues_texts_and_tokens) {
  const json of_ids = post(completions, completion());
  EXPECT_EQ(of_ids["object"], "text_completion");
  EXPECT_EQ(of_ids["choices"][0]["text"], answer());
  const json of_texts =
      post(completions, completion({{"prompt", {talking_.question(), "t1 t2"}}, {"n", 2}}));
  ASSERT_EQ(of_texts["choices"].size(), 4u);
  EXPECT_EQ(of_texts["choices"][0]["text"], answer());
  EXPECT_EQ(of_texts["choices"][1]["text"], answer());
  EXPECT_EQ(of_texts["choices"][2]["text"], of_texts["choices"][3]["text"]);
  EXPECT_NE(of_texts["choices"][2]["text"], answer());
  EXPECT_EQ(of_texts["choices"][3]["index"], 3);
}

TEST_F(server, repeats_an_answer_with_the_same_seed) {
  const json options = {{"temperature", 1.5}, {"seed", 7}, {"n", 2}};
  const json one = post(chats, chat(options)), two = post(chats, chat(options));
  EXPECT_EQ(one["choices"], two["choices"]);
  EXPECT_NE(one["choices"][0]["message"], one["choices"][1]["message"]);
  const json other = post(chats, chat({{"temperature", 1.5}, {"seed", 70}}));
  EXPECT_NE(other["choices"][0]["message"], one["choices"][0]["message"]);
}

TEST_F(server, ends_at_a_stop_string) {
  const json answer = post(chats, chat({{"stop", {"t183", "never"}}}));
  EXPECT_EQ(answer["choices"][0]["message"]["content"], "t202 t41 t41 ");
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
}

TEST_F(server, forbids_tokens_by_bias) {
  const json answer = post(chats, chat({{"logit_bias", {{"202", -100}}}}));
  EXPECT_EQ(answer["choices"][0]["message"]["content"].get<std::string>().find("t202"),
            std::string::npos);
}

/// The logits of the model itself give the same probabilities.
TEST_F(server, tells_the_probabilities_of_tokens) {
  const json answer =
      post(chats, chat({{"max_tokens", 2}, {"logprobs", true}, {"top_logprobs", 3}}));
  const json& content = answer["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2u);
  llm::Sequence sequence = llm::Sequence::create(*model_).value();
  const Span<float> logits =
      sequence.append({talking_.prompt.data(), static_cast<index_t>(talking_.prompt.size())})
          .value();
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  EXPECT_EQ(content[0]["token"], " t202");
  EXPECT_NEAR(content[0]["logprob"].get<double>(), logits[202] - std::log(sum), 1e-5);
  ASSERT_EQ(content[0]["top_logprobs"].size(), 3u);
  EXPECT_EQ(content[0]["top_logprobs"][0]["logprob"], content[0]["logprob"]);
  EXPECT_GT(content[0]["logprob"], content[0]["top_logprobs"][1]["logprob"]);
  const json legacy = post(completions, completion({{"max_tokens", 2}, {"logprobs", 1}}));
  EXPECT_EQ(legacy["choices"][0]["logprobs"]["token_logprobs"][0], content[0]["logprob"]);
}

TEST_F(server, names_its_model) {
  const httplib::Result models = client().Get("/v1/models");
  ASSERT_TRUE(models);
  EXPECT_EQ(json::parse(models->body)["data"][0]["id"], "talking");
  EXPECT_EQ(client().Get("/health")->body, R"({"status":"ok"})");
  EXPECT_THAT(client().Get("/")->body, HasSubstr("<title>Taper</title>"));
  EXPECT_THAT(refusal(chats, chat({{"model", "gpt-9"}}), 404),
              HasSubstr("this server has `talking`"));
  EXPECT_EQ(json::parse(client().Get("/v1/models/talking")->body)["id"], "talking");
  EXPECT_EQ(client().Get("/v1/models/gpt-9")->status, 404);
}

TEST_F(server, lets_a_request_choose_an_adapter) {
  llm::TextModelOptions options;
  options.exact = true;
  options.lora = {"pirate=" + tests::peft_folder(talking_.folder, {.name = "pirate"})};
  model_.emplace(llm::load_text_model(talking_.folder, options));
  start({});
  const json models = json::parse(client().Get("/v1/models")->body)["data"];
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[1]["id"], "pirate");
  EXPECT_EQ(json::parse(client().Get("/v1/models/pirate")->body)["id"], "pirate");
  const json answer = post(chats, chat({{"model", "pirate"}}));
  EXPECT_EQ(answer["model"], "pirate");
  EXPECT_NE(answer["choices"][0]["message"]["content"], this->answer());
  EXPECT_EQ(post(chats, chat())["choices"][0]["message"]["content"], this->answer());
  EXPECT_THAT(refusal(chats, chat({{"model", "gpt-9"}}), 404),
              HasSubstr("this server has `talking`, `pirate`"));
  EXPECT_THAT([&] { Server(*model_, {.model_id = "pirate"}); },
              testing::ThrowsMessage<std::runtime_error>(HasSubstr(
                  "an adapter has the name of the model, `pirate`; give the model another")));
}

TEST_F(server, tells_a_wrong_path_from_a_wrong_method) {
  const httplib::Result nothing = client().Get("/v1/nothing");
  EXPECT_EQ(nothing->status, 404);
  EXPECT_THAT(nothing->body, HasSubstr("there is nothing at /v1/nothing"));
  const httplib::Result get = client().Get(chats);
  EXPECT_EQ(get->status, 405);
  EXPECT_EQ(get->get_header_value("Allow"), "POST");
  EXPECT_THAT(get->body, HasSubstr("/v1/chat/completions takes POST, not GET"));
  EXPECT_EQ(client().Post("/health", "{}", "application/json")->status, 405);
  EXPECT_EQ(client().Delete("/v1/models")->status, 405);
}

TEST_F(server, counts) {
  post(chats, chat());
  post(chats, chat());
  const std::string metrics = client().Get("/metrics")->body;
  EXPECT_THAT(metrics, HasSubstr("\ntaper_requests_total 2\n"));
  EXPECT_THAT(metrics, HasSubstr("\ntaper_answer_tokens_total 48\n"));
  EXPECT_THAT(metrics, HasSubstr("\ntaper_prompt_tokens_cached_total 15\n"));
  EXPECT_THAT(metrics, HasSubstr("\ntaper_texts_running 0\n"));
}

TEST_F(server, says_what_is_wrong_with_a_request) {
  const auto raw = [&](const std::string& body) {
    const httplib::Result result = client().Post(chats, body, "application/json");
    EXPECT_EQ(result->status, 400);
    return json::parse(result->body)["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(raw("{"), "the request is not valid JSON");
  EXPECT_EQ(raw("[]"), "the request is not a JSON object");
  EXPECT_EQ(raw("\xff\xfe"), "the request is not valid JSON");
  EXPECT_EQ(raw(std::string(100000, '[')), "the request is nested too deeply");
  const json error = post(chats, chat({{"temperature", 3}}), 400)["error"];
  EXPECT_EQ(error["type"], "invalid_request_error");
  EXPECT_EQ(error["param"], "temperature");
  EXPECT_EQ(error["message"], "temperature: it must be a number from 0 to 2");
  EXPECT_THAT(refusal(chats, chat({{"messages", "hi"}})), HasSubstr("a list of messages"));
  EXPECT_THAT(refusal(chats, chat({{"messages", {{{"role", "robot"}, {"content", ""}}}}})),
              HasSubstr("messages[0].role"));
  EXPECT_THAT(refusal(chats, chat({{"max_tokens", 0}})), HasSubstr("an integer from 1"));
  EXPECT_THAT(refusal(chats, chat({{"seed", 1.5}})), HasSubstr("seed"));
  EXPECT_THAT(refusal(chats, chat({{"n", 9}})), HasSubstr("n: "));
  EXPECT_THAT(refusal(chats, chat({{"stream", 1}})), HasSubstr("true or false"));
  EXPECT_THAT(refusal(chats, chat({{"logit_bias", {{"256", 1}}}})), HasSubstr("no token 256"));
  EXPECT_THAT(refusal(chats, chat({{"top_logprobs", 2}})), HasSubstr("it needs `logprobs`"));
  EXPECT_THAT(refusal(completions, completion({{"prompt", {1, 256}}})), HasSubstr("below 256"));
  EXPECT_THAT(refusal(completions, completion({{"prompt", ""}})), HasSubstr("has no tokens"));
  EXPECT_THAT(refusal(completions, completion({{"prompt", std::vector<int>(300, 1)}})),
              HasSubstr("the prompt has 300 tokens, but the context only 256"));
}

TEST_F(server, refuses_what_it_cannot_do) {
  const auto unsupported = [&](const char* name, const json& value) {
    EXPECT_EQ(refusal(chats, chat({{name, value}})),
              "this server does not support `" + std::string(name) + "`");
  };
  unsupported("audio", json::object());
  unsupported("anything", 1);
  post(chats, chat({{"tools", json::array()},
                    {"tool_choice", "none"},
                    {"parallel_tool_calls", true},
                    {"user", "me"},
                    {"response_format", {{"type", "text"}}},
                    {"functions", nullptr}}));
  EXPECT_EQ(refusal(completions, completion({{"echo", true}})),
            "this server does not support `echo`");
}

/// More clients than sequences: each gets its own answer, the same as alone.
TEST_F(server, answers_many_clients_at_once) {
  ServerOptions options;
  options.engine.sequences = 3;
  start(options);
  std::vector<std::string> want, got(12);
  for (int i = 0; i < 3; ++i)
    want.push_back(
        post(completions, completion({{"prompt", {i + 1, 5, 9}}}))["choices"][0]["text"]);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < got.size(); ++i)
    threads.emplace_back([&, i] {
      const json answer = post(completions, completion({{"prompt", {i % 3 + 1, 5, 9}}}));
      got[i] = answer["choices"][0]["text"];
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i % 3]) << i;
}

}  // namespace
}  // namespace taper::serve
