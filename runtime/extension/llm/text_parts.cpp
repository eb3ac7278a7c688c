#include "taper/runtime/extension/llm/text_parts.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "taper/runtime/extension/llm/failure.h"
#include "taper/runtime/extension/module/asset.h"
#include "taper/schema/vocabulary_generated.h"

namespace taper::llm {
namespace {

using Json = nlohmann::json;

std::string_view text_of(const Asset& asset) {
  return {reinterpret_cast<const char*>(asset.bytes.data()),
          static_cast<size_t>(asset.bytes.size())};
}

[[noreturn]] void refuse_asset(const char* name, const std::string& why) {
  throw Failure{Error::invalid_program, std::string(name) + ": " + why};
}

// ---- the vocabulary of a GGUF file

std::string text_of(const flatbuffers::String* text) { return text == nullptr ? "" : text->str(); }

std::vector<std::string> texts_of(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* list) {
  std::vector<std::string> texts;
  for (uint32_t i = 0; list != nullptr && i < list->size(); ++i)
    texts.push_back(list->Get(i)->str());
  return texts;
}

template <class T>
std::vector<T> numbers_of(const flatbuffers::Vector<T>* list) {
  return list == nullptr ? std::vector<T>() : std::vector<T>(list->begin(), list->end());
}

template <class T>
std::optional<T> optional_of(const flatbuffers::Optional<T>& value) {
  return value.has_value() ? std::optional<T>(*value) : std::nullopt;
}

GgufVocabulary vocabulary_of(const Asset& asset) {
  const auto* begin = reinterpret_cast<const uint8_t*>(asset.bytes.data());
  flatbuffers::Verifier verifier(begin, static_cast<size_t>(asset.bytes.size()));
  if (asset.bytes.size() < 16 || !format::VerifyVocabularyBuffer(verifier))
    refuse_asset(asset.name.data(), "it is damaged");
  const format::Vocabulary& from = *format::GetVocabulary(begin);
  GgufVocabulary v;
  v.model = text_of(from.model()), v.pre = text_of(from.pre());
  v.tokens = texts_of(from.tokens()), v.merges = texts_of(from.merges());
  v.scores = numbers_of(from.scores()), v.token_type = numbers_of(from.token_type());
  v.bos_token_id = optional_of(from.bos_token_id());
  v.eos_token_id = optional_of(from.eos_token_id());
  v.unknown_token_id = optional_of(from.unknown_token_id());
  v.separator_token_id = optional_of(from.separator_token_id());
  v.cls_token_id = optional_of(from.cls_token_id());
  v.add_bos_token = optional_of(from.add_bos_token());
  v.add_eos_token = optional_of(from.add_eos_token());
  v.add_space_prefix = optional_of(from.add_space_prefix());
  v.remove_extra_whitespaces = optional_of(from.remove_extra_whitespaces());
  if (const auto* map = from.precompiled_charsmap())
    v.precompiled_charsmap.assign(map->begin(), map->end());
  return v;
}

// ---- language_model.json

constexpr char settings_name[] = "language_model.json";

std::optional<std::string> text_at(const Json& settings, const char* key) {
  const auto found = settings.find(key);
  if (found == settings.end() || found->is_null()) return std::nullopt;
  if (!found->is_string()) refuse_asset(settings_name, std::string(key) + " is not a text");
  return found->get<std::string>();
}

double number_at(const Json& object, const char* key, double missing, double least, double most) {
  const auto found = object.find(key);
  if (found == object.end()) return missing;
  const double number = found->is_number() ? found->get<double>() : std::nan("");
  if (!(number >= least && number <= most))
    refuse_asset(settings_name, std::string(key) + " is not a number from " +
                                    std::to_string(least) + " to " + std::to_string(most));
  return number;
}

SamplingOptions sampling_of(const Json& settings) {
  SamplingOptions s;  // common values, if the model's authors recommend none
  s.temperature = 0.7f, s.top_k = 40, s.top_p = 0.95f;
  const auto found = settings.find("sampling");
  if (found == settings.end()) return s;
  if (!found->is_object()) refuse_asset(settings_name, "sampling is not an object");
  const auto number = [&](const char* key, double missing, double most) {
    return number_at(*found, key, missing, 0, most);
  };
  s.temperature = static_cast<float>(number("temperature", 1, 1e6));
  s.top_k = static_cast<int>(number("top_k", 0, 1 << 30));
  s.top_p = static_cast<float>(number("top_p", 1, 1));
  s.min_p = static_cast<float>(number("min_p", 0, 1));
  s.typical_p = static_cast<float>(number("typical_p", 1, 1));
  s.repetition_penalty = static_cast<float>(number("repetition_penalty", 1, 1e6));
  return s;
}

void read_settings(const Asset& asset, TextParts& parts) {
  const Json settings = Json::parse(text_of(asset), nullptr, /*allow_exceptions=*/false);
  if (settings.is_discarded() || !settings.is_object())
    refuse_asset(settings_name, "it is not a JSON object");
  constexpr double most_tokens = std::numeric_limits<TokenId>::max();
  parts.bos_token = text_at(settings, "bos_token");
  parts.eos_token = text_at(settings, "eos_token");
  parts.context = static_cast<int64_t>(number_at(settings, "context", 0, 1, most_tokens));
  parts.rewinds = settings.value("rewinds", Json(true)) == Json(true);
  parts.sampling = sampling_of(settings);
  const Json adapters = settings.value("adapters", Json::array());
  if (!adapters.is_array()) refuse_asset(settings_name, "adapters is not a list");
  for (const Json& name : adapters) {
    if (!name.is_string()) refuse_asset(settings_name, "adapters has an element that is no text");
    parts.adapters.push_back(name.get<std::string>());
  }
  const Json ends = settings.value("ends", Json::array());
  if (!ends.is_array()) refuse_asset(settings_name, "ends is not a list");
  for (const Json& id : ends) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > static_cast<uint64_t>(most_tokens))
      refuse_asset(settings_name, "ends has an element that is not a token");
    parts.ends.insert(id.get<TokenId>());
  }
  if (parts.eos_token)
    if (const TokenId id = parts.tokenizer.id_of(*parts.eos_token); id >= 0) parts.ends.insert(id);
}

// ---- all of them

class Assets {
 public:
  explicit Assets(const Program& program) {
    Result<std::vector<Asset>> assets = assets_of(program);
    if (!assets.ok()) throw Failure{assets.error(), "its assets are damaged; export it again"};
    assets_ = std::move(assets.value());
  }
  const Asset* find(std::string_view name) const {
    for (const Asset& asset : assets_)
      if (asset.name == name) return &asset;
    return nullptr;
  }

 private:
  std::vector<Asset> assets_;
};

Tokenizer tokenizer_of(const Assets& assets) {
  std::string why;
  const auto checked = [&](Result<Tokenizer> tokenizer) {
    if (!tokenizer.ok()) throw Failure{tokenizer.error(), "its tokenizer cannot be read: " + why};
    return std::move(tokenizer.value());
  };
  if (const Asset* json = assets.find("tokenizer.json"))
    return checked(Tokenizer::from_json(text_of(*json), &why));
  if (const Asset* model = assets.find("tokenizer.model"))
    return checked(Tokenizer::from_sentencepiece(text_of(*model), &why));
  if (const Asset* vocabulary = assets.find("tokenizer.vocabulary"))
    return checked(Tokenizer::from_gguf(vocabulary_of(*vocabulary), &why));
  refuse("it has no tokenizer: export it from a folder or a .gguf file that has one");
}

TextParts parts_of(const Program& program) {
  const Assets assets(program);
  TextParts parts{tokenizer_of(assets), {}, {}, {}, {}, {}, {}, 0, true, {}};
  const Asset* settings = assets.find(settings_name);
  if (settings == nullptr) refuse(std::string("it has no ") + settings_name);
  read_settings(*settings, parts);
  if (const Asset* text = assets.find("chat_template.jinja")) {
    std::string why;
    Result<ChatTemplate> chat = ChatTemplate::parse(text_of(*text), &why);
    if (!chat.ok()) throw Failure{chat.error(), "its chat template cannot be read: " + why};
    parts.chat = std::move(chat.value());
    parts.tools = tool_support_of(*parts.chat);
  }
  return parts;
}

}  // namespace

Result<TextParts> read_text_parts(const Program& program, std::string* message) {
  return guarded<TextParts>(message, [&] { return parts_of(program); });
}

}  // namespace taper::llm
