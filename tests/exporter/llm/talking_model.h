// A small model with golden results that reads and writes text.
#pragma once
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "taper/exporter/io/safetensors.h"
#include "taper/runtime/extension/llm/tokenizer.h"
#include "taper/tests/support/data.h"

namespace taper::llm {

using Ids = std::vector<TokenId>;

/// "t3 t7"
inline std::string words(const Ids& ids) {
  std::string text;
  for (const TokenId id : ids) text += (text.empty() ? "t" : " t") + std::to_string(id);
  return text;
}

/// The golden model `smollm`, which has no tokenizer of its own, with one whose token 7 is the word
/// "t7". Its template writes the contents of messages behind each other.
struct TalkingModel {
  std::string folder;
  Ids prompt, answer;  ///< what greedy decoding continues, and with what

  std::string question() const { return words(prompt); }
};

inline nlohmann::json word_tokenizer(int words) {
  nlohmann::json vocabulary;
  for (int i = 0; i < words; ++i) vocabulary["t" + std::to_string(i)] = i;
  return {{"added_tokens", nlohmann::json::array()},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
          {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "t0"}}}};
}

/// Token 65 is the byte "A".
inline nlohmann::json byte_tokenizer() {
  nlohmann::json vocabulary;
  const auto add = [&](int byte, int character) {
    const std::string text = character < 0x80
                                 ? std::string(1, static_cast<char>(character))
                                 : std::string{static_cast<char>(0xC0 | character >> 6),
                                               static_cast<char>(0x80 | (character & 0x3F))};
    vocabulary[text] = byte;
  };
  // GPT-2 writes bytes that cannot be seen as the characters from U+0100 on
  int hidden = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_seen = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    add(byte, is_seen ? byte : 0x100 + hidden++);
  }
  return {{"added_tokens", nlohmann::json::array()},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", nlohmann::json::array()}}}};
}

/// `source` is the folder hf_tiny/smollm. `settings` are more keys of generation_config.json.
inline TalkingModel talking_model(const std::filesystem::path& source,
                                  const nlohmann::json& settings = nlohmann::json::object()) {
  const std::filesystem::path folder = tests::scratch_file("talking");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::filesystem::copy(source / "model.safetensors", folder / "model.safetensors");
  nlohmann::json config = nlohmann::json::parse(std::ifstream(source / "config.json"));
  config.erase("eos_token_id");  // the golden answer goes on behind it
  std::ofstream(folder / "config.json") << config;
  std::ofstream(folder / "generation_config.json") << settings;
  std::ofstream(folder / "tokenizer.json") << word_tokenizer(256);
  std::ofstream(folder / "chat_template.jinja")
      << "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('no tools') }}"
         "{% endif %}{{ m.content }} {% endfor %}";
  const io::SafeTensors golden = io::read_safetensors(source / "golden.safetensors");
  const auto ids = [&](const char* name) {
    const auto values = golden.tensors.at(name).values<int64_t>();
    return Ids(values.begin(), values.end());
  };
  return {folder.string(), ids("greedy.prompt"), ids("greedy.tokens")};
}

}  // namespace taper::llm
