#include "taper/exporter/serve/members.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace taper::serve {
namespace {

constexpr int most_depth = 64;         // of a request's JSON
constexpr size_t most_members = 1024;  // of an object: finding one of them takes as many steps

[[noreturn]] void unsupported(const std::string& name) {
  throw ApiError(400, "this server does not support `" + name.substr(0, 100) + "`",
                 name.substr(0, 100), "unsupported_parameter");
}

std::string text(double number) {
  const std::string text = json(number).dump();
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

std::vector<llm::TokenId> ids_of(const json& list, const std::string& name,
                                 const llm::Tokenizer& tokenizer) {
  std::vector<llm::TokenId> ids;
  for (const json& id : list) {
    if (!id.is_number_unsigned() ||
        id.get<uint64_t>() >= static_cast<uint64_t>(tokenizer.vocabulary_size()))
      refuse(name,
             "a token must be an integer below " + std::to_string(tokenizer.vocabulary_size()));
    ids.push_back(id.get<llm::TokenId>());
  }
  return ids;
}

}  // namespace

void refuse(const std::string& parameter, const std::string& why) {
  throw ApiError(400, parameter + ": " + why, parameter, "invalid_value");
}

const json* Members::find(const std::string& name) {
  known_.insert(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

double Members::number(const std::string& name, double missing, double least, double most) {
  const json* value = find(name);
  if (value == nullptr) return missing;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= least && number <= most))
    refuse(name, "it must be a number from " + text(least) + " to " + text(most));
  return number;
}

int64_t Members::integer(const std::string& name, int64_t missing, int64_t least, int64_t most) {
  const json* value = find(name);
  if (value == nullptr) return missing;
  const bool is_large =
      value->is_number_unsigned() &&
      value->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value->is_number_integer() || is_large || value->get<int64_t>() < least ||
      value->get<int64_t>() > most)
    refuse(name,
           "it must be an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return value->get<int64_t>();
}

bool Members::flag(const std::string& name, bool missing) {
  const json* value = find(name);
  if (value == nullptr) return missing;
  if (!value->is_boolean()) refuse(name, "it must be true or false");
  return value->get<bool>();
}

std::string Members::text_or(const std::string& name, const std::string& missing) {
  const json* value = find(name);
  if (value == nullptr) return missing;
  if (!value->is_string()) refuse(name, "it must be a text");
  return value->get<std::string>();
}

void Members::ignore(std::initializer_list<const char*> names) {
  for (const char* name : names) known_.insert(name);
}

void Members::only(const std::string& name, const json& neutral) {
  const json* value = find(name);
  if (value != nullptr && *value != neutral) unsupported(name);
}

void Members::refuse_others() const {
  for (const auto& [name, value] : object_.items())
    if (!value.is_null() && !known_.contains(name)) unsupported(name);
}

json parse_request(const std::string& body) {
  std::vector<size_t> members;  // of the objects that are open
  const auto limit = [&](int depth, json::parse_event_t event, json&) {
    if (depth > most_depth) throw ApiError(400, "the request is nested too deeply");
    if (event == json::parse_event_t::object_start) members.push_back(0);
    if (event == json::parse_event_t::object_end) members.pop_back();
    if (event == json::parse_event_t::key && ++members.back() > most_members)
      throw ApiError(400, "an object of the request has more than " + std::to_string(most_members) +
                              " members");
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

std::string check_model(Members& request, const std::string& model_id,
                        const std::vector<std::string>& adapters) {
  const std::string wanted = request.text_or("model", model_id);
  if (wanted == model_id) return "";
  if (std::ranges::find(adapters, wanted) != adapters.end()) return wanted;
  std::string all = "`" + model_id + "`";
  for (const std::string& adapter : adapters) all += ", `" + adapter + "`";
  throw ApiError(404, "there is no model `" + wanted.substr(0, 100) + "`; this server has " + all,
                 "model", "model_not_found");
}

std::vector<std::vector<llm::TokenId>> token_lists(Members& request, const std::string& name,
                                                   const llm::Tokenizer& tokenizer) {
  constexpr char forms[] = "it must be a text, a list of tokens, or a list of these";
  const json* given = request.find(name);
  if (given == nullptr) refuse(name, forms);
  if (given->is_string()) return {tokenizer.encode(given->get<std::string>())};
  if (!given->is_array()) refuse(name, forms);
  if (given->empty()) refuse(name, "it is empty");
  if (given->front().is_number()) return {ids_of(*given, name, tokenizer)};
  std::vector<std::vector<llm::TokenId>> lists;
  for (const json& one : *given) {
    if (one.is_string())
      lists.push_back(tokenizer.encode(one.get<std::string>()));
    else if (one.is_array())
      lists.push_back(ids_of(one, name, tokenizer));
    else
      refuse(name, forms);
  }
  return lists;
}

}  // namespace taper::serve
