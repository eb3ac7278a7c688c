/// Chooses the next token from a model's logits.
///
///   taper::llm::SamplingOptions options;
///   options.temperature = 0.7f;
///   options.top_p = 0.9f;
///   options.seed = 42;
///   taper::llm::Sampler sampler(options);
///   int32_t next = sampler.sample(logits, tokens_so_far);
#pragma once
#include <cstdint>
#include <vector>

#include "taper/runtime/core/span.h"
#include "taper/runtime/extension/llm/sampling/penalties.h"

namespace taper::llm {

/// What is done to the logits, in this order. The defaults leave all of it out, and draw from the
/// probabilities of the model.
struct SamplingOptions {
  std::vector<SequenceBias> bias;  ///< added to the logits of tokens, or of last tokens
  float repetition_penalty = 1;    ///< 1: none
  float presence_penalty = 0;      ///< 0: none
  float frequency_penalty = 0;     ///< 0: none
  int penalty_range = 0;           ///< the last tokens that count for penalties; 0: all
  int no_repeat_ngram_size = 0;    ///< 0: none
  DryPenalty dry;                  ///< multiplier 0: none
  float temperature = 1;           ///< 0: the most likely token, and nothing below counts
  int top_k = 0;                   ///< 0: all
  float typical_p = 1;             ///< 1: all
  float top_p = 1;                 ///< 1: all
  float min_p = 0;                 ///< 0: all
  float top_h = 0;                 ///< 0: all
  int min_tokens_to_keep = 1;
  float mirostat_tau = 0;  ///< above 0: mirostat 2 instead of the filters, with this surprise
  float mirostat_eta = 0.1f;
  uint64_t seed = 0;  ///< equal seeds and logits give equal tokens
};

/// One sampler for one conversation: it counts its steps, and mirostat remembers.
class Sampler {
 public:
  explicit Sampler(SamplingOptions options);

  /// Chooses a token; -1 if all are removed. The logits are changed on the way.
  TokenId sample(Span<float> logits, Span<const TokenId> context);

  /// Applies all but the choice, so that the probabilities can be shown.
  void process(Span<float> logits, Span<const TokenId> context) const;

  /// Starts again from the first step.
  void reset();

 private:
  TokenId sample_mirostat(Span<float> logits);
  double draw();

  SamplingOptions options_;
  uint64_t step_ = 0;
  double mu_;  // of mirostat: the largest surprise that is let through
};

/// The index of the largest logit; of equal ones the first. -1 without any above -inf.
TokenId most_likely(Span<const float> logits);

}  // namespace taper::llm
