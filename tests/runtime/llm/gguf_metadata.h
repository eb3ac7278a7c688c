// Reads the tokenizer of a GGUF file: its header, and none of its tensors.
#pragma once
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "json.h"
#include "taper/runtime/extension/llm/gguf_vocabulary.h"

namespace taper::tests {

class GgufMetadata {
 public:
  explicit GgufMetadata(const std::filesystem::path& path) : bytes_(read_text(path)) {
    EXPECT_EQ(bytes_.substr(0, 4), "GGUF") << path;
    at_ = 4;
    EXPECT_GE(number<uint32_t>(), 2u);
    number<uint64_t>();  // tensors
    const auto count = number<uint64_t>();
    for (uint64_t i = 0; i < count; ++i) {
      const std::string key = text();
      values_[key] = value(number<uint32_t>());
    }
  }

  std::string chat_template() const {
    std::string text;
    get("chat_template", text);
    return text;
  }

  llm::GgufVocabulary vocabulary() const {
    llm::GgufVocabulary made;
    get("model", made.model);
    get("pre", made.pre);
    get("tokens", made.tokens);
    get("scores", made.scores);
    get("token_type", made.token_type);
    get("merges", made.merges);
    get("bos_token_id", made.bos_token_id);
    get("eos_token_id", made.eos_token_id);
    get("unknown_token_id", made.unknown_token_id);
    get("seperator_token_id", made.separator_token_id);
    get("cls_token_id", made.cls_token_id);
    get("add_bos_token", made.add_bos_token);
    get("add_eos_token", made.add_eos_token);
    get("add_space_prefix", made.add_space_prefix);
    get("remove_extra_whitespaces", made.remove_extra_whitespaces);
    return made;
  }

 private:
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text() {
    const auto length = number<uint64_t>();
    at_ += length;
    return bytes_.substr(at_ - length, length);
  }
  Json value(uint32_t type) {
    switch (type) {
      case 0:
        return number<uint8_t>();
      case 1:
        return number<int8_t>();
      case 2:
        return number<uint16_t>();
      case 3:
        return number<int16_t>();
      case 4:
        return number<uint32_t>();
      case 5:
        return number<int32_t>();
      case 6:
        return number<float>();
      case 7:
        return number<uint8_t>() != 0;
      case 8:
        return text();
      case 10:
        return number<uint64_t>();
      case 11:
        return number<int64_t>();
      case 12:
        return number<double>();
      default:
        break;
    }
    EXPECT_EQ(type, 9u);
    const auto inner = number<uint32_t>();
    const auto count = number<uint64_t>();
    Json list = Json::array();
    for (uint64_t i = 0; i < count; ++i) list.push_back(value(inner));
    return list;
  }

  template <class T>
  void get(const std::string& name, T& out) const {
    const bool of_template = name == "chat_template";
    const auto found = values_.find((of_template ? "tokenizer." : "tokenizer.ggml.") + name);
    if (found != values_.end()) out = found->second.get<T>();
  }
  template <class T>
  void get(const std::string& name, std::optional<T>& out) const {
    const auto found = values_.find("tokenizer.ggml." + name);
    if (found != values_.end()) out = found->second.get<T>();
  }

  std::string bytes_;
  size_t at_ = 0;
  std::map<std::string, Json> values_;
};

}  // namespace taper::tests
