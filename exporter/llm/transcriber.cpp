#include "taper/exporter/llm/transcriber.h"

#include <algorithm>
#include <cmath>

#include "taper/exporter/llm/config_keys.h"

namespace taper::llm {
namespace {

using nlohmann::json;

/// Ids by names such as "<|en|>".
std::map<std::string, int64_t> ids_by_name(const Keys& keys, const char* key) {
  std::map<std::string, int64_t> ids;
  const json* object = keys.find({key});
  if (object == nullptr) return ids;
  if (!object->is_object()) throw ExportError(std::string("config: ") + key + " must be an object");
  for (const auto& [name, id] : object->items()) {
    if (!id.is_number_integer())
      throw ExportError(std::string("config: ") + key + " must have integers");
    const bool has_marks = name.size() > 4 && name.starts_with("<|") && name.ends_with("|>");
    ids[has_marks ? name.substr(2, name.size() - 4) : name] = id.get<int64_t>();
  }
  return ids;
}

std::set<int64_t> ends_of(const Keys& keys) {
  const json* value = keys.find({"eos_token_id"});
  if (value != nullptr && value->is_array()) {
    const std::vector<int64_t> list = keys.list<int64_t>({"eos_token_id"});
    return {list.begin(), list.end()};
  }
  return {keys.integer({"eos_token_id"})};
}

}  // namespace

SpeechTokens read_speech_tokens(const json& generation, const json& config) {
  json both = config;
  both.update(generation);
  const Keys keys(both);
  SpeechTokens t;
  t.start = keys.integer({"decoder_start_token_id"});
  t.languages = ids_by_name(keys, "lang_to_id");
  const auto tasks = ids_by_name(keys, "task_to_id");
  if (const auto at = tasks.find("transcribe"); at != tasks.end()) t.task = at->second;
  t.no_times = keys.integer({"no_timestamps_token_id"}, -1);
  t.ends = ends_of(keys);
  t.never = keys.list<int64_t>({"suppress_tokens"});
  t.never_first = keys.list<int64_t>({"begin_suppress_tokens"});
  return t;
}

/// The likeliest language behind the token that starts a text.
std::string Transcriber::heard_language() {
  const std::vector<float> logits = runner_.logits({tokens_.start}, 0, false).to_vector<float>();
  std::string heard;
  float most = -INFINITY;
  for (const auto& [name, id] : tokens_.languages) {
    if (id < 0 || id >= static_cast<int64_t>(logits.size()))
      throw ExportError("the token of the language " + name + " is outside of the vocabulary");
    if (logits[static_cast<size_t>(id)] > most)
      most = logits[static_cast<size_t>(id)], heard = name;
  }
  return heard;
}

std::vector<int64_t> Transcriber::prompt(const std::string& language) const {
  std::vector<int64_t> ids = {tokens_.start};
  if (!language.empty()) ids.push_back(tokens_.languages.at(language));
  if (!language.empty() && tokens_.task >= 0) ids.push_back(tokens_.task);
  if (tokens_.no_times >= 0) ids.push_back(tokens_.no_times);
  return ids;
}

int64_t Transcriber::best(const Tensor& logits, bool is_first) const {
  std::vector<float> values = logits.to_vector<float>();
  const auto hide = [&](const std::vector<int64_t>& ids) {
    for (const int64_t id : ids)
      if (id >= 0 && id < static_cast<int64_t>(values.size()))
        values[static_cast<size_t>(id)] = -INFINITY;
  };
  hide(tokens_.never);
  if (is_first) hide(tokens_.never_first);
  return std::ranges::max_element(values) - values.begin();
}

Transcriber::Written Transcriber::write(const Tensor& features, const std::string& language,
                                        int64_t most) {
  if (!language.empty() && !tokens_.languages.contains(language))
    throw ExportError("the model has no language \"" + language + "\"");
  (void)runner_.encode(features);
  Written written;
  written.language = language.empty() ? heard_language() : language;
  std::vector<int64_t> next = prompt(written.language);
  int64_t position = 0;
  while (position + static_cast<int64_t>(next.size()) <= most) {
    const Tensor logits = runner_.logits(next, position, false);
    position += static_cast<int64_t>(next.size());
    next = {best(logits, written.ids.empty())};
    if (tokens_.ends.contains(next[0])) break;
    written.ids.push_back(next[0]);
  }
  return written;
}

}  // namespace taper::llm
