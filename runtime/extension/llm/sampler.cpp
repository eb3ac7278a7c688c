#include "taper/runtime/extension/llm/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "taper/kernels/portable/philox.h"
#include "taper/runtime/extension/llm/sampling/filters.h"

namespace taper::llm {
namespace {

constexpr float removed = -std::numeric_limits<float>::infinity();

// The token below which `share` of the probability lies; share in [0, 1).
TokenId token_at(Span<const float> logits, double share) {
  const TokenId likely = most_likely(logits);
  if (likely < 0) return likely;
  const double peak = logits[likely];
  double total = 0;
  for (const float logit : logits) {
    if (logit != removed) total += std::exp(logit - peak);
  }
  double left = share * total;
  TokenId last = likely;
  for (index_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > removed)) continue;
    last = static_cast<TokenId>(i);
    left -= std::exp(logits[i] - peak);
    if (left < 0) break;
  }
  return last;
}

}  // namespace

TokenId most_likely(Span<const float> logits) {
  TokenId best = -1;
  float peak = removed;
  for (index_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > peak) best = static_cast<TokenId>(i), peak = logits[i];
  }
  return best;
}

Sampler::Sampler(SamplingOptions options)
    : options_(std::move(options)), mu_(2.0 * options_.mirostat_tau) {}

void Sampler::reset() {
  step_ = 0;
  mu_ = 2.0 * options_.mirostat_tau;
}

void Sampler::process(Span<float> logits, Span<const TokenId> context) const {
  const SamplingOptions& o = options_;
  Span<const TokenId> recent = context;
  if (o.penalty_range > 0 && context.size() > o.penalty_range) {
    recent = context.part(context.size() - o.penalty_range, o.penalty_range);
  }
  add_bias(logits, context, o.bias);
  penalize_repetition(logits, recent, o.repetition_penalty);
  penalize_presence(logits, recent, o.presence_penalty, o.frequency_penalty);
  forbid_repeated_ngrams(logits, context, o.no_repeat_ngram_size);
  penalize_repeated_sequences(logits, recent, o.dry);
  if (o.temperature <= 0) return;
  apply_temperature(logits, o.temperature);
  if (o.mirostat_tau > 0) return;
  keep_top_k(logits, o.top_k, o.min_tokens_to_keep);
  keep_typical(logits, o.typical_p, o.min_tokens_to_keep);
  keep_top_p(logits, o.top_p, o.min_tokens_to_keep);
  keep_min_p(logits, o.min_p, o.min_tokens_to_keep);
  keep_top_h(logits, o.top_h);
}

TokenId Sampler::sample(Span<float> logits, Span<const TokenId> context) {
  process(logits, context);
  if (options_.temperature <= 0) return most_likely(logits);
  if (options_.mirostat_tau > 0) return sample_mirostat(logits);
  return token_at(logits, draw());
}

// Philox is a function of the seed and the step, so a step can be repeated alone.
double Sampler::draw() {
  const uint64_t step = step_++;
  const portable::PhiloxWords words = portable::philox(
      {{static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), 0, 0}},
      static_cast<uint32_t>(options_.seed), static_cast<uint32_t>(options_.seed >> 32));
  return portable::uniform53(words.word[0], words.word[1]);
}

// Mirostat 2 (Basu et al., 2021): tokens whose surprise is above mu are cut off, and mu follows the
// difference between the surprise that came and the one that is wanted.
TokenId Sampler::sample_mirostat(Span<float> logits) {
  const TokenId likely = most_likely(logits);
  if (likely < 0) return likely;
  log_softmax(logits);
  const double bits = 1 / std::log(2.0);
  const float kept = logits[likely];
  for (float& logit : logits) {
    if (-logit * bits > mu_) logit = removed;
  }
  logits[likely] = kept;
  log_softmax(logits);
  const TokenId chosen = token_at(logits, draw());
  const double surprise = -logits[chosen] * bits;
  mu_ -= options_.mirostat_eta * (surprise - options_.mirostat_tau);
  return chosen;
}

}  // namespace taper::llm
