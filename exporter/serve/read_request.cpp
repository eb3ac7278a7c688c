#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "taper/exporter/serve/members.h"

namespace taper::serve {
namespace {

constexpr size_t most_stops = 16;

std::vector<std::string> stops_of(Members& request) {
  const json* stop = request.find("stop");
  if (stop == nullptr) return {};
  if (stop->is_string()) return {stop->get<std::string>()};
  std::vector<std::string> stops;
  if (!stop->is_array() || stop->size() > most_stops)
    refuse("stop", "it must be a text or a list of at most " + std::to_string(most_stops));
  for (const json& text : *stop) {
    if (!text.is_string()) refuse("stop", "it must be a text or a list of texts");
    stops.push_back(text.get<std::string>());
  }
  return stops;
}

std::vector<llm::SequenceBias> biases_of(Members& request, const llm::Tokenizer& tokenizer) {
  const json* biases = request.find("logit_bias");
  if (biases == nullptr) return {};
  if (!biases->is_object()) refuse("logit_bias", "it must be an object of tokens and numbers");
  std::vector<llm::SequenceBias> list;
  for (const auto& [token, bias] : biases->items()) {
    const bool is_id = !token.empty() && token.size() < 10 &&
                       token.find_first_not_of("0123456789") == std::string::npos;
    const int64_t id = is_id ? std::stoll(token) : -1;
    if (id < 0 || id >= tokenizer.vocabulary_size())
      refuse("logit_bias", "there is no token " + token.substr(0, 20));
    if (!bias.is_number() || std::abs(bias.get<double>()) > 100)
      refuse("logit_bias", "a bias must be a number from -100 to 100");
    list.push_back({{static_cast<llm::TokenId>(id)}, bias.get<float>()});
  }
  return list;
}

uint64_t random_seed() {
  std::random_device random;
  return (static_cast<uint64_t>(random()) << 32) | random();
}

llm::SamplingOptions sampling_of(Members& request, const llm::LanguageModel& model) {
  llm::SamplingOptions s = model.text().sampling;
  const auto number = [&](const char* name, float& to, double least, double most) {
    to = static_cast<float>(request.number(name, to, least, most));
  };
  number("temperature", s.temperature, 0, 2);
  number("top_p", s.top_p, 0, 1);
  number("min_p", s.min_p, 0, 1);
  number("presence_penalty", s.presence_penalty, -2, 2);
  number("frequency_penalty", s.frequency_penalty, -2, 2);
  number("repetition_penalty", s.repetition_penalty, 0.01, 100);
  s.top_k = static_cast<int>(request.integer("top_k", s.top_k, 0, 1 << 30));
  s.bias = biases_of(request, model.tokenizer());
  s.seed =
      request.find("seed") == nullptr
          ? random_seed()
          : static_cast<uint64_t>(request.integer("seed", 0, std::numeric_limits<int64_t>::min(),
                                                  std::numeric_limits<int64_t>::max()));
  return s;
}

/// Of chats: `logprobs` says whether, `top_logprobs` how many.
int chat_likeliest(Members& request) {
  const bool wanted = request.flag("logprobs", false);
  const auto count = static_cast<int>(request.integer("top_logprobs", 0, 0, 20));
  if (count > 0 && !wanted) refuse("top_logprobs", "it needs `logprobs`: true");
  return wanted ? count : -1;
}

int64_t max_tokens_of(Members& request, Endpoint endpoint, const Limits& limits) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const int64_t usual = endpoint == Endpoint::chat ? most : 16;  // as OpenAI's servers
  int64_t tokens = request.integer("max_tokens", usual, 1, most);
  if (endpoint == Endpoint::chat)
    tokens = request.integer("max_completion_tokens", tokens, 1, most);
  return limits.max_tokens > 0 ? std::min(tokens, limits.max_tokens) : tokens;
}

void read_stream_options(Members& request, ApiRequest& read) {
  read.streams = request.flag("stream", false);
  const json* options = request.find("stream_options");
  if (options == nullptr) return;
  if (!read.streams || !options->is_object())
    refuse("stream_options", "it must be an object, beside `stream`: true");
  Members members(*options);
  read.includes_usage = members.flag("include_usage", false);
  members.ignore({"include_obfuscation"});
  members.refuse_others();
}

/// What other servers do and this one does not: only the neutral value is taken.
void refuse_what_is_missing(Members& request) {
  request.ignore({"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"});
  request.only("store", false);
  request.only("modalities", {"text"});
  request.only("echo", false);
  request.only("best_of", 1);
  request.refuse_others();
}

void check_room(const std::vector<llm::TokenId>& prompt, int64_t context) {
  if (prompt.empty()) throw ApiError(400, "the prompt has no tokens");
  if (static_cast<int64_t>(prompt.size()) > context)
    throw ApiError(400,
                   "the prompt has " + std::to_string(prompt.size()) +
                       " tokens, but the context only " + std::to_string(context),
                   "", "context_length_exceeded");
}

std::shared_ptr<llm::GrammarMatcher> matcher_of(Schemas& schemas, const std::string& schema) {
  std::string why;
  auto matcher = schemas.matcher(schema, why);
  if (matcher == nullptr) throw ApiError(400, "the JSON schema: " + why, "", "invalid_value");
  return matcher;
}

}  // namespace

ApiRequest read_request(Endpoint endpoint, const std::string& body, const llm::LanguageModel& model,
                        Schemas& schemas, const std::string& model_id, const Limits& limits) {
  const json object = parse_request(body);
  Members request(object);
  const std::string adapter = check_model(request, model_id, model.text().adapters);
  ApiRequest read;
  read.endpoint = endpoint;
  read_stream_options(request, read);
  read.model = adapter.empty() ? model_id : adapter;
  TextRequest text;
  text.adapter = adapter;
  text.options.sampling = sampling_of(request, model);
  text.options.stop = stops_of(request);
  text.options.max_tokens = max_tokens_of(request, endpoint, limits);
  const bool is_chat = endpoint == Endpoint::chat;
  text.likeliest =
      is_chat ? chat_likeliest(request) : static_cast<int>(request.integer("logprobs", -1, 0, 5));
  const auto count = request.integer("n", 1, 1, limits.choices);
  std::vector<std::vector<llm::TokenId>> prompts;
  std::string schema;
  if (is_chat) {
    ChatPrompt chat = read_chat(request, model);
    prompts.push_back(std::move(chat.ids));
    schema = std::move(chat.schema);
    read.answer = chat.answer, read.calls_once = chat.calls_once;
    text.options.shows_special_tokens = has_special_marks(chat.answer);
  } else {
    prompts = token_lists(request, "prompt", model.tokenizer());
  }
  refuse_what_is_missing(request);
  if (prompts.size() * static_cast<size_t>(count) > static_cast<size_t>(limits.choices))
    refuse("prompt", "a request may have " + std::to_string(limits.choices) + " answers");
  for (const std::vector<llm::TokenId>& prompt : prompts) {
    check_room(prompt, model.context());
    for (int64_t i = 0; i < count; ++i) {
      read.texts.push_back(text);
      TextRequest& one = read.texts.back();
      one.prompt = prompt;
      one.options.sampling.seed += static_cast<uint64_t>(i);
      if (!schema.empty()) one.options.grammar = matcher_of(schemas, schema);
    }
  }
  return read;
}

}  // namespace taper::serve
