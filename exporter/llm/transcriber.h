// Writes down what is said in a sound, with Whisper: greedy, without time stamps.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "taper/exporter/llm/golden.h"

namespace taper::llm {

/// The tokens that steer Whisper. They stand in generation_config.json; what that lacks, in
/// config.json.
struct SpeechTokens {
  int64_t start = 0;
  std::map<std::string, int64_t> languages;  ///< "en"; empty: the model knows one language
  int64_t task = -1;                         ///< transcribe, not translate; -1: there is none
  int64_t no_times = -1;                     ///< -1: there is none
  std::set<int64_t> ends;
  std::vector<int64_t> never, never_first;
};

/// Throws ExportError for keys that are missing or of a wrong type.
SpeechTokens read_speech_tokens(const nlohmann::json& generation, const nlohmann::json& config);

class Transcriber {
 public:
  Transcriber(Seq2SeqRunner& runner, SpeechTokens tokens)
      : runner_(runner), tokens_(std::move(tokens)) {}

  struct Written {
    std::string language;      ///< empty if the model knows one language
    std::vector<int64_t> ids;  ///< of the text alone
  };
  /// `features` f32 (1, bands, frames). `language` "" lets the model find out. The text and what
  /// steers it have at most `most` tokens. Throws ExportError for a language that it lacks.
  Written write(const Tensor& features, const std::string& language, int64_t most);

 private:
  std::string heard_language();
  std::vector<int64_t> prompt(const std::string& language) const;
  int64_t best(const Tensor& logits, bool is_first) const;

  Seq2SeqRunner& runner_;
  SpeechTokens tokens_;
};

}  // namespace taper::llm
