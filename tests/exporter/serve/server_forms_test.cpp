// Answers that must have a form: JSON, and calls of tools. The model's weights are random, so that
// only the mask can make them right. And embeddings.
#include <gmock/gmock.h>

#include <bit>
#include <cstring>
#include <fstream>

#include "taper/exporter/llm/text_encoder.h"
#include "taper/tests/exporter/serve/talking_server.h"

namespace taper::serve {
namespace {

using testing::HasSubstr;

constexpr char chats[] = "/v1/chat/completions", embeddings[] = "/v1/embeddings";

/// The model of TalkingServer with a token for each byte, and with states.
class server_forms : public TalkingServer {
 protected:
  void SetUp() override {
    TalkingServer::SetUp();
    if (IsSkipped()) return;
    std::ofstream(talking_.folder + "/tokenizer.json") << llm::byte_tokenizer();
    load("{% for m in messages %}{{ m.content }}\n{% endfor %}");
  }
  void load(const std::string& chat_template) {
    std::ofstream(talking_.folder + "/chat_template.jinja") << chat_template;
    llm::TextModelOptions options;
    options.exact = true, options.context = 1024, options.states = true;
    model_.emplace(llm::load_text_model(talking_.folder, options));
    Models models(*model_);
    models.embedder = std::make_unique<llm::LanguageModelEmbedder>(*model_, llm::Pooling::last);
    ServerOptions of_server;
    of_server.model_id = "talking";
    server_.reset();
    server_ = std::make_unique<Server>(std::move(models), of_server);
  }
  static json ask(const json& more) {
    json request = {{"messages", {{{"role", "user"}, {"content", "Weather?"}}}},
                    {"temperature", 1},
                    {"seed", 3},
                    {"logit_bias", no_blanks()},
                    {"max_tokens", 600}};
    request.update(more);
    return request;
  }
  /// A random model writes blanks as far as it may.
  static json no_blanks() { return {{"9", -100}, {"10", -100}, {"13", -100}, {"32", -100}}; }
  static json tools() {
    return json::parse(R"([{"type": "function", "function": {"name": "weather", "parameters":
      {"type": "object", "additionalProperties": false, "required": ["city", "days"],
       "properties": {"city": {"enum": ["Rome", "Oslo"]}, "days": {"type": "integer",
       "minimum": 1, "maximum": 9}}}}}, {"type": "function", "function": {"name": "time",
      "parameters": {"type": "object", "additionalProperties": false, "properties": {}}}}])");
  }
  json first_choice(const json& more) const { return post(chats, ask(more))["choices"][0]; }

  /// What the events of a stream add up to. There is one call at most.
  struct Streamed {
    std::string content, name, arguments, finish;
  };
  Streamed streamed(json more) const {
    more["stream"] = true;
    const httplib::Result result = client().Post(chats, ask(more).dump(), "application/json");
    Streamed all;
    if (!result) return all;
    for (const json& event : events_of(result->body)) {
      const json& choice = event["choices"][0];
      const json& delta = choice["delta"];
      all.content += delta.value("content", "");
      if (!choice["finish_reason"].is_null()) all.finish = choice["finish_reason"];
      for (const json& call : delta.value("tool_calls", json::array())) {
        EXPECT_EQ(call["index"], 0);
        all.name += call["function"]["name"], all.arguments += call["function"]["arguments"];
      }
    }
    return all;
  }
};

json as_schema(const json& schema) {
  return {{"type", "json_schema"}, {"json_schema", {{"name", "answer"}, {"schema", schema}}}};
}

TEST_F(server_forms, write_json_that_a_schema_accepts) {
  const json schema = json::parse(R"({"type": "object", "additionalProperties": false,
    "required": ["city", "tags"], "properties": {"city": {"type": "string", "maxLength": 8},
    "tags": {"type": "array", "items": {"enum": ["hot", "cold", 3]}, "maxItems": 4}}})");
  for (const int seed : {1, 2, 3}) {
    const json choice = first_choice({{"response_format", as_schema(schema)}, {"seed", seed}});
    EXPECT_EQ(choice["finish_reason"], "stop");
    const json answer = json::parse(choice["message"]["content"].get<std::string>());
    EXPECT_EQ(answer.size(), 2u) << answer;
    EXPECT_TRUE(answer["city"].is_string());
    EXPECT_LE(answer["tags"].size(), 4u);
    for (const json& tag : answer["tags"]) EXPECT_TRUE(tag == "hot" || tag == "cold" || tag == 3);
  }
}

TEST_F(server_forms, write_an_object_of_any_kind) {
  const json choice = first_choice({{"response_format", {{"type", "json_object"}}},
                                    {"logit_bias", {{"125", 100}, {"32", -100}}}});  // }
  EXPECT_EQ(json::parse(choice["message"]["content"].get<std::string>()), json::object());
}

TEST_F(server_forms, call_the_tool_that_must_be_called) {
  const json forced = {
      {"tools", tools()},
      {"tool_choice", {{"type", "function"}, {"function", {{"name", "weather"}}}}}};
  const json choice = first_choice(forced);
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], nullptr);
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
  const json& call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["id"].get<std::string>().size(), 9u);
  EXPECT_EQ(call["function"]["name"], "weather");
  const json arguments = json::parse(call["function"]["arguments"].get<std::string>());
  EXPECT_TRUE(arguments["city"] == "Rome" || arguments["city"] == "Oslo") << arguments;
  EXPECT_GE(arguments["days"], 1);
  EXPECT_LE(arguments["days"], 9);

  // the call and its result go back to the model
  json messages = {{{"role", "user"}, {"content", "Weather?"}}, choice["message"]};
  messages.push_back({{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "sunny"}});
  const json next = first_choice(
      {{"messages", messages}, {"tools", tools()}, {"tool_choice", "none"}, {"max_tokens", 3}});
  EXPECT_EQ(next["finish_reason"], "length");
  messages[1]["tool_calls"][0]["function"]["arguments"] = "";  // as some clients send none
  EXPECT_EQ(first_choice({{"messages", messages}, {"max_tokens", 3}})["finish_reason"], "length");
}

TEST_F(server_forms, stream_calls) {
  const Streamed all = streamed({{"tools", tools()}, {"tool_choice", "required"}});
  EXPECT_EQ(all.content, "");
  EXPECT_TRUE(all.name == "weather" || all.name == "time") << all.name;
  EXPECT_TRUE(json::parse(all.arguments).is_object());
  EXPECT_EQ(all.finish, "tool_calls");
}

/// The template's own way to write a call decides.
TEST_F(server_forms, call_in_the_style_of_the_family) {
  const char* const styles[] = {
      "{{ tools }}{% for m in messages %}{{ m.content }}{% if m.tool_calls %}"
      "[TOOL_CALLS]{{ m.tool_calls | tojson }}{% endif %}{% endfor %}",
      "{{ tools }}{% for m in messages %}{{ m.content }}{% if m.tool_calls %}"
      "{\"name\": \"x\", \"parameters\": {}}{% endif %}{% endfor %}",
      "{{ tools }}{% for m in messages %}{{ m.content }}{% if m.tool_calls %}"
      "<｜tool▁calls▁begin｜>{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}",
      "{{ tools }}{% for m in messages %}{{ m.content }}{% if m.tool_calls %}"
      "<|START_ACTION|>{{ m.tool_calls[0].function.name }}{% endif %}{% endfor %}",
      "{{ tools }}{% for m in messages %}{{ m.content }}{% if m.tool_calls %}"
      "<|channel|>{{ m.tool_calls[0].function.name }}{% elif m.role == 'assistant' %}"
      "<|channel|>final{% endif %}{% endfor %}",
      "{% for m in messages %}{% if m.role == 'assistant' %}<start_of_turn>model{% endif %}"
      "{{ m.content }}{% endfor %}"};
  const llm::ToolStyle want[] = {llm::ToolStyle::listed,    llm::ToolStyle::plain,
                                 llm::ToolStyle::sectioned, llm::ToolStyle::actions,
                                 llm::ToolStyle::channels,  llm::ToolStyle::fenced};
  for (size_t i = 0; i < std::size(styles); ++i) {
    load(styles[i]);
    EXPECT_EQ(model_->text().tools.style, want[i]);
    const json message = first_choice({{"tools", tools()}, {"tool_choice", "required"}})["message"];
    ASSERT_EQ(message["tool_calls"].size(), 1u) << message;
    EXPECT_TRUE(message["content"].is_null() || message["content"] == "") << message;
    const json& call = message["tool_calls"][0]["function"];
    const Streamed stream = streamed({{"tools", tools()}, {"tool_choice", "required"}});
    EXPECT_EQ(stream.name, call["name"]);
    EXPECT_EQ(stream.arguments, call["arguments"]);
    EXPECT_EQ(stream.content, "");
    // a call that is cut is a text, which has no mark of the prompt
    const json cut = {{"tools", tools()}, {"tool_choice", "required"}, {"max_tokens", 4}};
    const std::string text = first_choice(cut)["message"]["content"];
    EXPECT_TRUE(text.starts_with("{\"") || text.starts_with("[{\"")) << text;
    EXPECT_EQ(streamed(cut).content, text);
    // what must have a form is the text, whatever stands around texts
    const json choice = first_choice({{"response_format", as_schema({{"enum", {"x", true}}})}});
    const json value = json::parse(choice["message"]["content"].get<std::string>());
    EXPECT_TRUE(value == "x" || value == true) << value;
  }
}

TEST_F(server_forms, say_what_is_wrong) {
  const auto why = [&](const json& more) { return refusal(chats, ask(more)); };
  EXPECT_THAT(why({{"response_format", {{"type", "xml"}}}}), HasSubstr("text, json_object or"));
  EXPECT_THAT(why({{"response_format", as_schema({{"type", "text"}})}}),
              HasSubstr("the JSON schema: #/type: there is no type \"text\""));
  EXPECT_THAT(why({{"response_format", {{"type", "json_schema"}}}}), HasSubstr("a JSON schema"));
  EXPECT_THAT(why({{"tools", "x"}}), HasSubstr("tools: it must be a list"));
  EXPECT_THAT(why({{"tools", {{{"type", "retrieval"}}}}}), HasSubstr("of type `function`"));
  EXPECT_THAT(why({{"tool_choice", "required"}}), HasSubstr("there are no `tools`"));
  EXPECT_THAT(why({{"tools", tools()}, {"tool_choice", 1}}), HasSubstr("none, auto, required"));
  const json unknown = {{"type", "function"}, {"function", {{"name", "x"}}}};
  EXPECT_THAT(why({{"tools", tools()}, {"tool_choice", unknown}}), HasSubstr("no tool `x`"));
  EXPECT_THAT(why({{"tools", tools()}, {"response_format", {{"type", "json_object"}}}}),
              HasSubstr("an answer in JSON calls no tools"));
  const json calls = {{{"function", {{"name", "x"}, {"arguments", "{"}}}}};
  EXPECT_THAT(why({{"messages", {{{"role", "assistant"}, {"tool_calls", calls}}}}}),
              HasSubstr("messages[0].tool_calls"));
  for (const char* name : {"", "a b", "a\n", "</tool_call>", "a\"b", "a\\"}) {
    const json tool = {{"type", "function"}, {"function", {{"name", name}}}};
    EXPECT_THAT(why({{"tools", {tool}}}), HasSubstr("without blanks, quotes and brackets")) << name;
  }
  json large = json::object();
  for (int i = 0; i < 1025; ++i) large[std::to_string(i)] = i;
  EXPECT_THAT(why({{"metadata", large}}), HasSubstr("more than 1024 members"));
}

std::vector<float> golden_vector(const io::Array& states, int64_t row) {
  const auto values = states.values<float>();
  const int64_t width = states.sizes.back();
  std::vector<float> state(values.begin() + row * width, values.begin() + (row + 1) * width);
  double squares = 0;
  for (const float x : state) squares += static_cast<double>(x) * x;
  for (float& x : state) x /= static_cast<float>(std::sqrt(squares));
  return state;
}

void expect_near(const json& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i].get<float>(), want[i], 1e-4) << i;
}

/// The last state, as transformers gives it.
TEST_F(server_forms, embed_texts) {
  const io::SafeTensors golden =
      io::read_safetensors(tests::golden_data("hf_tiny/smollm") / "golden.safetensors");
  const auto ids = golden.tensors.at("input_ids").values<int64_t>();
  const std::vector<float> want = golden_vector(golden.tensors.at("hidden.final"), 39);
  const json answer = post(embeddings, {{"input", ids}});
  EXPECT_EQ(answer["data"][0]["object"], "embedding");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 40);
  expect_near(answer["data"][0]["embedding"], want);
  const json two = post(embeddings, {{"input", {"A", "B"}}});
  EXPECT_EQ(two["data"][1]["index"], 1);
  EXPECT_NE(two["data"][0]["embedding"], two["data"][1]["embedding"]);
  EXPECT_EQ(post(embeddings, {{"input", {{65}, {66}}}})["data"], two["data"]);
}

TEST_F(server_forms, write_vectors_as_bytes_if_asked) {
  const json floats = post(embeddings, {{"input", "A"}})["data"][0]["embedding"];
  const std::string text =
      post(embeddings, {{"input", "A"}, {"encoding_format", "base64"}})["data"][0]["embedding"];
  ASSERT_EQ(text.size(), (floats.size() * 4 + 2) / 3 * 4);
  const auto digit = [](char c) {
    const std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return c == '=' ? 0u : static_cast<uint32_t>(digits.find(c));
  };
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 4) {
    const uint32_t three = digit(text[i]) << 18 | digit(text[i + 1]) << 12 |
                           digit(text[i + 2]) << 6 | digit(text[i + 3]);
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(three >> shift & 0xFF);
  }
  for (size_t i = 0; i < floats.size(); ++i) {
    float x = 0;
    std::memcpy(&x, bytes.data() + 4 * i, 4);
    EXPECT_EQ(x, floats[i].get<float>());
  }
}

TEST_F(server_forms, say_what_is_wrong_with_texts_to_embed) {
  EXPECT_THAT(refusal(embeddings, json::object()), HasSubstr("input: it must be a text"));
  EXPECT_THAT(refusal(embeddings, {{"input", ""}}), HasSubstr("a text has no tokens"));
  EXPECT_THAT(refusal(embeddings, {{"input", json::array()}}), HasSubstr("it is empty"));
  EXPECT_THAT(refusal(embeddings, {{"input", {1, 256}}}), HasSubstr("below 256"));
  EXPECT_THAT(refusal(embeddings, {{"input", std::string(2000, 'a')}}),
              HasSubstr("a text has 2000 tokens, but the model reads 1024 at most"));
  EXPECT_THAT(refusal(embeddings, {{"input", "a"}, {"dimensions", 5}}), HasSubstr("`dimensions`"));
  EXPECT_THAT(refusal(embeddings, {{"input", "a"}, {"encoding_format", "f16"}}),
              HasSubstr("float or base64"));
  start({});
  EXPECT_THAT(refusal(embeddings, {{"input", "a"}}), HasSubstr("the model gives no embeddings"));
}

/// An encoder alone. Its tokenizer is that of words: the ids of the golden data are its texts.
TEST(server_embeddings, come_from_an_encoder) {
  TAPER_GOLDEN_DATA_OR_SKIP(source, "hf_tiny/bert");
  const std::filesystem::path folder = tests::scratch_file("encoder");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "1_Pooling");
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(source / name, folder / name);
  std::ofstream(folder / "tokenizer.json") << llm::word_tokenizer(200);
  const io::SafeTensors golden = io::read_safetensors(source / "golden.safetensors");
  const auto ids = golden.tensors.at("batch.input_ids").values<int64_t>();
  const auto mask = golden.tensors.at("batch.attention_mask").values<int64_t>();
  const int64_t columns = golden.tensors.at("batch.input_ids").sizes.back();
  for (const bool first : {false, true}) {
    std::ofstream(folder / "1_Pooling/config.json")
        << json{{first ? "pooling_mode_cls_token" : "pooling_mode_mean_tokens", true}};
    ServerOptions options;
    const Server server(Models(std::make_unique<llm::TextEncoder>(folder.string())), options);
    httplib::Client client("127.0.0.1", server.port());
    json texts = json::array();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i % static_cast<size_t>(columns) == 0) texts.push_back(json::array());
      if (mask[i] != 0) texts.back().push_back(ids[i]);
    }
    const httplib::Result result =
        client.Post(embeddings, json{{"input", texts}}.dump(), "application/json");
    ASSERT_TRUE(result);
    const json data = json::parse(result->body)["data"];
    ASSERT_EQ(data.size(), texts.size());
    const io::Array& want =
        golden.tensors.at(first ? "batch.cls_normalized" : "batch.mean_pooled_normalized");
    for (size_t i = 0; i < data.size(); ++i)
      expect_near(data[i]["embedding"], golden_vector(want, static_cast<int64_t>(i)));
    const httplib::Result chat = client.Post(chats, "{}", "application/json");
    EXPECT_THAT(chat->body, HasSubstr("the model only gives embeddings"));
  }
}

}  // namespace
}  // namespace taper::serve
