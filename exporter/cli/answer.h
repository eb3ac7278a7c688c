// How the commands `generate` and `chat` let a language model write.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/cli/command_line.h"
#include "taper/runtime/extension/llm/draft.h"
#include "taper/runtime/extension/llm/generation.h"

namespace taper::cli {

std::string text_of_file(const std::string& path);

/// Which model, and how it computes.
struct ModelChoice {
  std::string model;
  std::string quantize;           ///< "int8", "int4", or a recipe; "": weights stay as they are
  std::vector<std::string> lora;  ///< "PATH", or several "NAME=PATH"
  std::string cache_dtype = "f32";
  std::string draft;  ///< "lookup", a smaller model, or empty
  int64_t context = 0;
  int threads = 0;  ///< 0: one for each core
  bool exact = false;
  bool states = false;  ///< the program gives the states of tokens, for embeddings
  int64_t rows = 1;     ///< texts that the caches hold; a program has those it was exported with
  bool no_cache = false;

  void add_to(Command& command);
  static void add_no_cache(Command& command, bool& given);
  /// `--lora ADAPTER` of the commands that use one adapter for all texts.
  static void add_one_lora(Command& command, std::string& given);
  /// Throws ExportError if the adapter has a name, or is not there.
  static std::vector<std::string> one_lora(const std::string& given);
  /// Loads the model. Shows the steps if the error stream is a terminal.
  llm::LanguageModel load() const;
  /// What guesses for the model that was loaded; null: nothing.
  std::shared_ptr<llm::Draft> draft_for(const llm::LanguageModel& loaded) const;
};

/// The options of both commands.
struct AnswerOptions {
  ModelChoice model;
  std::string grammar, json_schema;
  std::string adapter;  ///< the name of the one that answers; "": none
  int64_t max_tokens = 512, seed = 0;
  // none: what the model's authors recommend
  std::optional<int64_t> top_k;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::vector<std::string> stop;
  bool greedy = false;

  void add_to(Command& command);
  /// Throws for a number that makes no sense, and for a grammar that cannot be read.
  void check() const;
  /// What answers may be; null: any text.
  std::shared_ptr<llm::GrammarMatcher> matcher(const llm::LanguageModel& model) const;
  llm::SamplingOptions sampling(const llm::LanguageModel& model) const;

 private:
  std::optional<llm::Grammar> language() const;
};

}  // namespace taper::cli
