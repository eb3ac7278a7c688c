#include "taper/exporter/llm/text_assets.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "taper/exporter/importers/gguf/gguf.h"
#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/io/file.h"
#include "taper/schema/vocabulary_generated.h"

namespace taper::llm {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What language_model.json says.
struct Settings {
  std::optional<std::string> bos_token, eos_token;
  std::set<int32_t> ends;
  json sampling;  ///< an object; null: the model's authors recommend nothing
};

bool remembers_only_caches(const Config& config) {
  return config.inner == 0 &&
         std::ranges::find(config.convolutional, true) == config.convolutional.end();
}

io::Asset settings_asset(const Settings& settings, const Config& config) {
  json object = {{"context", config.capacity},
                 {"rewinds", remembers_only_caches(config)},
                 {"ends", settings.ends}};
  if (!config.adapters.empty()) object["adapters"] = config.adapters;
  if (settings.bos_token) object["bos_token"] = *settings.bos_token;
  if (settings.eos_token) object["eos_token"] = *settings.eos_token;
  if (!settings.sampling.is_null()) object["sampling"] = settings.sampling;
  // a damaged file may have text that is not UTF-8
  return io::text_asset("language_model.json", "application/json",
                        object.dump(1, ' ', false, json::error_handler_t::replace));
}

io::Asset template_asset(const std::string& text) {
  return io::text_asset("chat_template.jinja", "text/plain", text);
}

// ---- GGUF

/// The metadata of a file below `tokenizer.ggml.`.
class TokenizerKeys {
 public:
  explicit TokenizerKeys(const gguf::Content& content) : content_(content) {}

  std::string text(const char* key) const {
    return std::string(content_.text(name(key)).value_or(""));
  }
  std::optional<int32_t> id(const char* key) const {
    const std::optional<int64_t> value = content_.integer(name(key));
    if (!value) return std::nullopt;
    return in_range<int32_t>(static_cast<double>(*value), key);
  }
  std::optional<bool> flag(const char* key) const { return content_.flag(name(key)); }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> all;
    if (const gguf::List* list = content_.list(name(key)))
      for (const std::string_view t : list->texts()) all.emplace_back(t);
    return all;
  }
  template <class T>
  std::vector<T> numbers(const char* key) const {
    std::vector<T> all;
    if (const gguf::List* list = content_.list(name(key)))
      for (const double n : list->numbers()) all.push_back(in_range<T>(n, key));
    return all;
  }

 private:
  template <class T>
  static T in_range(double number, const char* key) {
    if (!(number >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
          number <= static_cast<double>(std::numeric_limits<T>::max())))
      throw ExportError(name(key) + ": the number " + std::to_string(number) + " is out of range");
    return static_cast<T>(number);
  }
  static std::string name(const char* key) { return std::string("tokenizer.ggml.") + key; }
  const gguf::Content& content_;
};

GgufVocabulary vocabulary_of(const TokenizerKeys& keys) {
  GgufVocabulary v;
  v.model = keys.text("model"), v.pre = keys.text("pre");
  v.tokens = keys.texts("tokens"), v.merges = keys.texts("merges");
  v.scores = keys.numbers<float>("scores"), v.token_type = keys.numbers<int32_t>("token_type");
  for (const int byte : keys.numbers<int>("precompiled_charsmap"))
    v.precompiled_charsmap.push_back(static_cast<char>(byte));
  v.bos_token_id = keys.id("bos_token_id"), v.eos_token_id = keys.id("eos_token_id");
  v.unknown_token_id = keys.id("unknown_token_id");
  v.separator_token_id = keys.id("seperator_token_id");  // as the format spells it
  v.cls_token_id = keys.id("cls_token_id");
  v.add_bos_token = keys.flag("add_bos_token"), v.add_eos_token = keys.flag("add_eos_token");
  v.add_space_prefix = keys.flag("add_space_prefix");
  v.remove_extra_whitespaces = keys.flag("remove_extra_whitespaces");
  return v;
}

io::Asset vocabulary_asset(const GgufVocabulary& v) {
  flatbuffers::FlatBufferBuilder b;
  const auto optional = []<class T>(const std::optional<T>& value) {
    return value ? flatbuffers::Optional<T>(*value) : flatbuffers::nullopt;
  };
  const auto model = b.CreateString(v.model), pre = b.CreateString(v.pre);
  const auto tokens = b.CreateVectorOfStrings(v.tokens), merges = b.CreateVectorOfStrings(v.merges);
  const auto scores = b.CreateVector(v.scores);
  const auto types = b.CreateVector(v.token_type);
  const auto map = b.CreateVector(reinterpret_cast<const uint8_t*>(v.precompiled_charsmap.data()),
                                  v.precompiled_charsmap.size());
  b.Finish(format::CreateVocabulary(b, model, pre, tokens, scores, types, merges,
                                    optional(v.bos_token_id), optional(v.eos_token_id),
                                    optional(v.unknown_token_id), optional(v.separator_token_id),
                                    optional(v.cls_token_id), optional(v.add_bos_token),
                                    optional(v.add_eos_token), optional(v.add_space_prefix),
                                    optional(v.remove_extra_whitespaces), map),
           format::VocabularyIdentifier());
  const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {"tokenizer.vocabulary", "application/octet-stream", {begin, begin + b.GetSize()}};
}

/// What `general.sampling.*` recommends.
json sampling_of(const gguf::Content& content) {
  json sampling;
  for (const auto& [key, name] :
       {std::pair("temp", "temperature"), std::pair("top_p", "top_p"), std::pair("min_p", "min_p")})
    if (const auto number = content.number(std::string("general.sampling.") + key))
      sampling[name] = *number;
  if (const auto number = content.integer("general.sampling.top_k")) sampling["top_k"] = *number;
  return sampling;
}

std::vector<io::Asset> assets_of_gguf(const std::string& path, const Config& config) {
  const gguf::File file(path);
  const TokenizerKeys keys(file.content());
  const GgufVocabulary vocabulary = vocabulary_of(keys);
  if (vocabulary.tokens.empty()) return {};
  const auto token = [&](const std::optional<int32_t>& id) -> std::optional<std::string> {
    if (!id || *id < 0 || static_cast<size_t>(*id) >= vocabulary.tokens.size()) return std::nullopt;
    return vocabulary.tokens[static_cast<size_t>(*id)];
  };
  Settings settings{token(vocabulary.bos_token_id),
                    token(vocabulary.eos_token_id),
                    {},
                    sampling_of(file.content())};
  for (const char* key : {"eos_token_id", "eot_token_id"})
    if (const std::optional<int32_t> id = keys.id(key); id && *id >= 0) settings.ends.insert(*id);
  std::vector<io::Asset> assets = {vocabulary_asset(vocabulary), settings_asset(settings, config)};
  if (const auto text = file.content().text("tokenizer.chat_template"))
    assets.push_back(template_asset(std::string(*text)));
  return assets;
}

// ---- Hugging Face

/// A special token is a text, or an object with its text as "content".
std::optional<std::string> special_token(const json& config, const char* key) {
  if (!config.contains(key)) return std::nullopt;
  const json& value = config[key];
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("content") && value["content"].is_string())
    return value["content"].get<std::string>();
  return std::nullopt;
}
std::string text_at(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return "";
  return object[key].get<std::string>();
}
/// A template is a text, or a list of named ones of which "default" counts.
std::string template_text(const json& config) {
  if (!config.contains("chat_template")) return "";
  const json& value = config["chat_template"];
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array())
    for (const json& named : value)
      if (text_at(named, "name") == "default") return text_at(named, "template");
  return "";
}
void add_ends(const json& config, std::set<int32_t>& ends) {
  if (!config.contains("eos_token_id")) return;
  const auto add = [&](const json& id) {
    const int64_t number = id.is_number_integer() ? id.get<int64_t>() : -1;
    if (number >= 0 && number <= std::numeric_limits<int32_t>::max())
      ends.insert(static_cast<int32_t>(number));
  };
  const json& value = config["eos_token_id"];
  if (value.is_array())
    for (const json& id : value) add(id);
  else
    add(value);
}
io::Asset file_asset(const fs::path& path, const char* media_type) {
  return {path.filename().string(), media_type, io::read_file(path.string())};
}

/// What generation_config.json recommends. Without `do_sample` it recommends nothing.
json recommended(const json& config) {
  json sampling;
  if (!config.contains("do_sample") || config["do_sample"] != true) return sampling;
  for (const char* key :
       {"temperature", "top_k", "top_p", "min_p", "typical_p", "repetition_penalty"})
    if (config.contains(key) && config[key].is_number()) sampling[key] = config[key];
  return sampling;
}

std::vector<io::Asset> assets_of_folder(const fs::path& path, const Config& config) {
  std::vector<io::Asset> assets;
  if (fs::exists(path / "tokenizer.json"))
    assets.push_back(file_asset(path / "tokenizer.json", "application/json"));
  else if (fs::exists(path / "tokenizer.model"))
    assets.push_back(file_asset(path / "tokenizer.model", "application/octet-stream"));
  else
    return {};
  Settings settings;
  for (const char* name : {"generation_config.json", "config.json"})
    if (settings.ends.empty() && fs::exists(path / name))
      add_ends(huggingface::read_json_object(path / name), settings.ends);
  if (fs::exists(path / "generation_config.json"))
    settings.sampling = recommended(huggingface::read_json_object(path / "generation_config.json"));
  std::string chat;
  if (fs::exists(path / "tokenizer_config.json")) {
    const json tokenizer = huggingface::read_json_object(path / "tokenizer_config.json");
    settings.bos_token = special_token(tokenizer, "bos_token");
    settings.eos_token = special_token(tokenizer, "eos_token");
    chat = template_text(tokenizer);
  }
  assets.push_back(settings_asset(settings, config));
  if (fs::exists(path / "chat_template.jinja"))
    assets.push_back(file_asset(path / "chat_template.jinja", "text/plain"));
  else if (!chat.empty())
    assets.push_back(template_asset(chat));
  return assets;
}

}  // namespace

GgufVocabulary gguf_vocabulary(const gguf::File& file) {
  return vocabulary_of(TokenizerKeys(file.content()));
}

std::vector<io::Asset> text_assets(const std::string& path, const Config& config) {
  return fs::is_directory(path) ? assets_of_folder(path, config) : assets_of_gguf(path, config);
}

}  // namespace taper::llm
