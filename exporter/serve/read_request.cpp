#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <utility>

#include "taper/exporter/serve/api.h"

namespace taper::serve {
namespace {

constexpr int most_depth = 64;  // of a request's JSON
constexpr size_t most_stops = 16;

[[noreturn]] void refuse(const std::string& parameter, const std::string& why) {
  throw ApiError(400, parameter + ": " + why, parameter, "invalid_value");
}

json parsed(const std::string& body) {
  const auto limit = [](int depth, json::parse_event_t, json&) {
    if (depth > most_depth) throw ApiError(400, "the request is nested too deeply");
    return true;
  };
  try {
    json request = json::parse(body, limit);
    if (!request.is_object()) throw ApiError(400, "the request is not a JSON object");
    return request;
  } catch (const json::exception&) {
    throw ApiError(400, "the request is not valid JSON");
  }
}

/// The members of a request. What nobody asked for at the end is refused.
class Members {
 public:
  explicit Members(const json& request) : request_(request) {}

  /// nullptr: it is absent or null.
  const json* find(const std::string& name) {
    known_.insert(name);
    const auto found = request_.find(name);
    return found == request_.end() || found->is_null() ? nullptr : &*found;
  }
  double number(const std::string& name, double missing, double least, double most) {
    const json* value = find(name);
    if (value == nullptr) return missing;
    const double number = value->is_number() ? value->get<double>() : std::nan("");
    if (!(number >= least && number <= most))
      refuse(name, "it must be a number from " + text(least) + " to " + text(most));
    return number;
  }
  int64_t integer(const std::string& name, int64_t missing, int64_t least, int64_t most) {
    const json* value = find(name);
    if (value == nullptr) return missing;
    if (!value->is_number_integer() || value->get<int64_t>() < least ||
        value->get<int64_t>() > most ||
        (value->is_number_unsigned() &&
         value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())))
      refuse(name,
             "it must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return value->get<int64_t>();
  }
  bool flag(const std::string& name, bool missing) {
    const json* value = find(name);
    if (value == nullptr) return missing;
    if (!value->is_boolean()) refuse(name, "it must be true or false");
    return value->get<bool>();
  }
  std::string text_or(const std::string& name, const std::string& missing) {
    const json* value = find(name);
    if (value == nullptr) return missing;
    if (!value->is_string()) refuse(name, "it must be a text");
    return value->get<std::string>();
  }
  /// A member that changes nothing here.
  void ignore(std::initializer_list<const char*> names) {
    for (const char* name : names) known_.insert(name);
  }
  /// A member that may only have the value that changes nothing.
  void only(const std::string& name, const json& neutral) {
    const json* value = find(name);
    if (value != nullptr && *value != neutral) unsupported(name);
  }
  void refuse_others() const {
    for (const auto& [name, value] : request_.items())
      if (!value.is_null() && !known_.contains(name)) unsupported(name);
  }

 private:
  [[noreturn]] static void unsupported(const std::string& name) {
    throw ApiError(400, "this server does not support `" + name.substr(0, 100) + "`",
                   name.substr(0, 100), "unsupported_parameter");
  }
  static std::string text(double number) {
    const std::string text = json(number).dump();
    return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
  }

  const json& request_;
  std::set<std::string> known_;
};

// ---- prompts

/// A text, or a list of parts of which only texts are known.
std::string content_of(const json& message, const std::string& place) {
  const auto found = message.find("content");
  if (found == message.end() || found->is_null()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) refuse(place + ".content", "it must be a text or a list of parts");
  std::string text;
  for (const json& part : *found) {
    if (!part.is_object() || part.value("type", json()) != "text" || !part.contains("text") ||
        !part["text"].is_string())
      refuse(place + ".content", "only parts of type `text` are supported");
    text += part["text"].get<std::string>();
  }
  return text;
}

std::string messages_of(Members& request) {
  const json* messages = request.find("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty())
    refuse("messages", "it must be a list of messages");
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const json& message : *messages) {
    const std::string place = "messages[" + std::to_string(pairs.size()) + "]";
    if (!message.is_object()) refuse(place, "it must be an object");
    const json role = message.value("role", json());
    const bool is_known =
        role == "system" || role == "developer" || role == "user" || role == "assistant";
    if (!is_known) refuse(place + ".role", "it must be system, developer, user or assistant");
    if (message.contains("tool_calls") && !message["tool_calls"].is_null())
      refuse(place + ".tool_calls", "this server has no tools");
    pairs.emplace_back(role == "developer" ? "system" : role.get<std::string>(),
                       content_of(message, place));
  }
  return llm::messages_json(pairs);
}

std::vector<llm::TokenId> chat_prompt(Members& request, const llm::LanguageModel& model) {
  llm::ChatInput input;
  input.messages = messages_of(request);
  std::string why;
  Result<std::vector<llm::TokenId>> prompt = model.prompt(std::move(input), &why);
  if (!prompt.ok()) refuse("messages", why);
  return std::move(prompt.value());
}

std::vector<llm::TokenId> ids_of(const json& list, const llm::Tokenizer& tokenizer) {
  std::vector<llm::TokenId> ids;
  for (const json& id : list) {
    if (!id.is_number_unsigned() ||
        id.get<uint64_t>() >= static_cast<uint64_t>(tokenizer.vocabulary_size()))
      refuse("prompt",
             "a token must be an integer below " + std::to_string(tokenizer.vocabulary_size()));
    ids.push_back(id.get<llm::TokenId>());
  }
  return ids;
}

/// A text, tokens, or a list of either.
std::vector<std::vector<llm::TokenId>> prompts_of(Members& request,
                                                  const llm::Tokenizer& tokenizer) {
  const json* prompt = request.find("prompt");
  if (prompt == nullptr)
    refuse("prompt", "it must be a text, a list of tokens, or a list of these");
  if (prompt->is_string()) return {tokenizer.encode(prompt->get<std::string>())};
  std::vector<std::vector<llm::TokenId>> prompts;
  if (prompt->is_array() && !prompt->empty() && prompt->front().is_number())
    return {ids_of(*prompt, tokenizer)};
  if (prompt->is_array())
    for (const json& one : *prompt) {
      if (one.is_string())
        prompts.push_back(tokenizer.encode(one.get<std::string>()));
      else if (one.is_array())
        prompts.push_back(ids_of(one, tokenizer));
      else
        refuse("prompt", "it must be a text, a list of tokens, or a list of these");
    }
  if (prompts.empty()) refuse("prompt", "it is empty");
  return prompts;
}

// ---- options

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

void check_model(Members& request, const std::string& model_id) {
  const std::string wanted = request.text_or("model", model_id);
  if (wanted != model_id)
    throw ApiError(
        404,
        "there is no model `" + wanted.substr(0, 100) + "`; this server has `" + model_id + "`",
        "model", "model_not_found");
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
  request.ignore({"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key",
                  "parallel_tool_calls"});
  request.only("store", false);
  request.only("tools", json::array());
  request.only("tool_choice", "none");
  request.only("response_format", {{"type", "text"}});
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

}  // namespace

ApiRequest read_request(Endpoint endpoint, const std::string& body, const llm::LanguageModel& model,
                        const std::string& model_id, const Limits& limits) {
  const json object = parsed(body);
  Members request(object);
  check_model(request, model_id);
  ApiRequest read;
  read.endpoint = endpoint;
  read_stream_options(request, read);
  TextRequest text;
  text.options.sampling = sampling_of(request, model);
  text.options.stop = stops_of(request);
  text.options.max_tokens = max_tokens_of(request, endpoint, limits);
  const bool is_chat = endpoint == Endpoint::chat;
  text.likeliest =
      is_chat ? chat_likeliest(request) : static_cast<int>(request.integer("logprobs", -1, 0, 5));
  const auto count = request.integer("n", 1, 1, limits.choices);
  using Prompts = std::vector<std::vector<llm::TokenId>>;
  const Prompts prompts =
      is_chat ? Prompts(1, chat_prompt(request, model)) : prompts_of(request, model.tokenizer());
  refuse_what_is_missing(request);
  if (prompts.size() * static_cast<size_t>(count) > static_cast<size_t>(limits.choices))
    refuse("prompt", "a request may have " + std::to_string(limits.choices) + " answers");
  for (const std::vector<llm::TokenId>& prompt : prompts) {
    check_room(prompt, model.context());
    for (int64_t i = 0; i < count; ++i) {
      read.texts.push_back(text);
      read.texts.back().prompt = prompt;
      read.texts.back().options.sampling.seed += static_cast<uint64_t>(i);
    }
  }
  return read;
}

}  // namespace taper::serve
