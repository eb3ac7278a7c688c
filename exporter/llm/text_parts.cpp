#include "taper/exporter/llm/text_parts.h"

#include <filesystem>
#include <limits>

#include "taper/exporter/importers/gguf/gguf.h"
#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/io/file.h"

namespace taper::llm {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Tokenizer checked(Result<Tokenizer> tokenizer, const std::string& path, const std::string& why) {
  if (!tokenizer.ok()) throw ExportError(path + ": its tokenizer cannot be read: " + why);
  return std::move(tokenizer.value());
}
ChatTemplate template_of(std::string_view text, const std::string& path) {
  std::string why;
  Result<ChatTemplate> chat = ChatTemplate::parse(text, &why);
  if (!chat.ok()) throw ExportError(path + ": its chat template cannot be read: " + why);
  return std::move(chat.value());
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

TextParts parts_of_gguf(const std::string& path) {
  const gguf::File file(path);
  const TokenizerKeys keys(file.content());
  const GgufVocabulary vocabulary = vocabulary_of(keys);
  TextParts parts;
  if (vocabulary.tokens.empty()) return parts;
  std::string why;
  parts.tokenizer = checked(Tokenizer::from_gguf(vocabulary, &why), path, why);
  const auto token = [&](const std::optional<int32_t>& id) -> std::optional<std::string> {
    return id ? std::optional(std::string(parts.tokenizer->token(*id))) : std::nullopt;
  };
  parts.bos_token = token(vocabulary.bos_token_id);
  parts.eos_token = token(vocabulary.eos_token_id);
  for (const char* key : {"eos_token_id", "eot_token_id"})
    if (const std::optional<int32_t> id = keys.id(key)) parts.ends.insert(*id);
  if (const auto text = file.content().text("tokenizer.chat_template"))
    parts.chat = template_of(*text, path);
  return parts;
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
void add_ends(const json& config, std::set<TokenId>& ends) {
  if (!config.contains("eos_token_id")) return;
  const auto add = [&](const json& id) {
    const int64_t number = id.is_number_integer() ? id.get<int64_t>() : -1;
    if (number >= 0 && number <= std::numeric_limits<TokenId>::max())
      ends.insert(static_cast<TokenId>(number));
  };
  const json& value = config["eos_token_id"];
  if (value.is_array())
    for (const json& id : value) add(id);
  else
    add(value);
}
std::string text_of(const fs::path& path) {
  const io::Bytes bytes = io::read_file(path.string());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TextParts parts_of_folder(const fs::path& path) {
  TextParts parts;
  std::string why;
  if (fs::exists(path / "tokenizer.json") || fs::exists(path / "tokenizer.model"))
    parts.tokenizer = checked(Tokenizer::load(path.string(), &why), path.string(), why);
  for (const char* name : {"generation_config.json", "config.json"})
    if (parts.ends.empty() && fs::exists(path / name))
      add_ends(huggingface::read_json_object(path / name), parts.ends);
  std::string chat;
  if (fs::exists(path / "tokenizer_config.json")) {
    const json config = huggingface::read_json_object(path / "tokenizer_config.json");
    parts.bos_token = special_token(config, "bos_token");
    parts.eos_token = special_token(config, "eos_token");
    chat = template_text(config);
  }
  if (fs::exists(path / "chat_template.jinja")) chat = text_of(path / "chat_template.jinja");
  if (!chat.empty()) parts.chat = template_of(chat, path.string());
  if (parts.tokenizer && parts.eos_token)
    if (const TokenId id = parts.tokenizer->id_of(*parts.eos_token); id >= 0) parts.ends.insert(id);
  return parts;
}

}  // namespace

TextParts read_text_parts(const std::string& path) {
  return fs::is_directory(path) ? parts_of_folder(path) : parts_of_gguf(path);
}

}  // namespace taper::llm
