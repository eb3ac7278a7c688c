// How the commands `generate` and `chat` let a language model write.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/cli/command_line.h"
#include "taper/runtime/extension/llm/generation.h"

namespace taper::cli {

/// Which model, and how it computes.
struct ModelChoice {
  std::string model;
  std::string quantize;  ///< "int8", "int4", or a recipe; "": weights stay as they are
  int64_t context = 0;
  bool exact = false;

  void add_to(Command& command);
  /// Loads the model. Shows the steps if the error stream is a terminal.
  llm::LanguageModel load() const;
};

/// The options of both commands.
struct AnswerOptions {
  ModelChoice model;
  int64_t max_tokens = 512, seed = 0;
  // none: what the model's authors recommend
  std::optional<int64_t> top_k;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::vector<std::string> stop;
  bool greedy = false;

  void add_to(Command& command);
  /// Throws UsageError for a number that makes no sense.
  void check() const;
  llm::SamplingOptions sampling(const llm::LanguageModel& model) const;
};

}  // namespace taper::cli
