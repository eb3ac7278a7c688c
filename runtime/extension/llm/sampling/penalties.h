#pragma once
#include <cstdint>
#include <vector>

#include "taper/runtime/core/span.h"

namespace taper::llm {

using TokenId = int32_t;

// Each function changes the logits of one step, by the tokens so far (`context`). Tokens outside
// of the vocabulary are passed over.

/// Divides positive logits of the tokens in the context by `penalty`, and multiplies negative ones.
/// Keskar et al., 2019.
void penalize_repetition(Span<float> logits, Span<const TokenId> context, float penalty);

/// Subtracts `presence` from each token in the context, and `frequency` each time it occurs there.
void penalize_presence(Span<float> logits, Span<const TokenId> context, float presence,
                       float frequency);

/// Removes each token that would end a row of `size` tokens which the context has already.
void forbid_repeated_ngrams(Span<float> logits, Span<const TokenId> context, int size);

/// Adds `bias` to the last of `tokens` where the context ends with those before it. -inf forbids
/// the sequence.
struct SequenceBias {
  std::vector<TokenId> tokens;
  float bias;
};
void add_bias(Span<float> logits, Span<const TokenId> context, Span<const SequenceBias> biases);

/// "Don't repeat yourself": a token that would lengthen a repetition of `allowed_length` or more
/// tokens loses multiplier · base^(length - allowed_length). The rule is that of p-e-w (2024).
struct DryPenalty {
  float multiplier = 0;  ///< 0: off
  float base = 1.75f;
  int allowed_length = 2;
  std::vector<TokenId> breakers;  ///< a repetition does not reach across these
};
void penalize_repeated_sequences(Span<float> logits, Span<const TokenId> context,
                                 const DryPenalty& dry);

/// Removes `token`.
void suppress(Span<float> logits, TokenId token);
/// Removes all tokens but one, whose logit becomes 0.
void force(Span<float> logits, TokenId token);
/// Raises the logit of `token` by |logit| · (factor^steps - 1).
void favor(Span<float> logits, TokenId token, float factor, int steps);

}  // namespace taper::llm
