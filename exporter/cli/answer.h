// How the commands `generate` and `chat` let a language model write.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "taper/exporter/cli/command_line.h"
#include "taper/exporter/llm/text_model.h"
#include "taper/runtime/extension/llm/sampler.h"

namespace taper::cli {

/// The options of both commands.
struct AnswerOptions {
  std::string model;
  int64_t context = 0, max_tokens = 512, seed = 0, top_k = 40;
  double temperature = 0.7, top_p = 0.95, min_p = 0, repetition_penalty = 1;
  std::vector<std::string> stop;
  bool greedy = false, exact = false;

  void add_to(Command& command);
  /// Loads the model. Shows the steps if the error stream is a terminal.
  llm::TextModel load() const;
  llm::SamplingOptions sampling() const;
};

struct Answer {
  std::vector<llm::TokenId> ids;  ///< with the one that ends it
  std::string text;
  double prompt_seconds = 0, answer_seconds = 0;
};

/// Lets the model write behind `prompt`, of which it has seen the tokens before its position.
/// `shows` gets the text as it comes; the answer ends when it returns false.
Answer write_answer(llm::TextModel& model, const std::vector<llm::TokenId>& prompt,
                    const AnswerOptions& options,
                    const std::function<bool(std::string_view)>& shows);

}  // namespace taper::cli
