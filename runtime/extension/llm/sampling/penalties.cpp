#include "taper/runtime/extension/llm/sampling/penalties.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>

namespace taper::llm {
namespace {

constexpr float removed = -std::numeric_limits<float>::infinity();

bool in_vocabulary(Span<float> logits, TokenId token) {
  return token >= 0 && token < logits.size();
}

std::unordered_map<TokenId, int> counts_of(Span<float> logits, Span<const TokenId> context) {
  std::unordered_map<TokenId, int> counts;
  for (const TokenId token : context) {
    if (in_vocabulary(logits, token)) ++counts[token];
  }
  return counts;
}

bool ends_with(Span<const TokenId> context, Span<const TokenId> tokens) {
  if (context.size() < tokens.size()) return false;
  return std::equal(tokens.begin(), tokens.end(), context.end() - tokens.size());
}

// z[i]: how many elements from i on equal those from the start on. The Z algorithm (Gusfield,
// 1997).
std::vector<size_t> z_function(const std::vector<TokenId>& row) {
  std::vector<size_t> z(row.size());
  size_t begin = 0, end = 0;  // the match that reaches furthest
  for (size_t i = 1; i < row.size(); ++i) {
    if (i < end) z[i] = std::min(end - i, z[i - begin]);
    while (i + z[i] < row.size() && row[z[i]] == row[i + z[i]]) ++z[i];
    if (i + z[i] > end) {
      begin = i;
      end = i + z[i];
    }
  }
  return z;
}

}  // namespace

void penalize_repetition(Span<float> logits, Span<const TokenId> context, float penalty) {
  if (!(penalty > 0) || penalty == 1) return;
  for (const auto& [token, count] : counts_of(logits, context)) {
    float& logit = logits[token];
    logit = logit < 0 ? logit * penalty : logit / penalty;
  }
}

void penalize_presence(Span<float> logits, Span<const TokenId> context, float presence,
                       float frequency) {
  if (presence == 0 && frequency == 0) return;
  for (const auto& [token, count] : counts_of(logits, context)) {
    logits[token] -= presence + frequency * static_cast<float>(count);
  }
}

void forbid_repeated_ngrams(Span<float> logits, Span<const TokenId> context, int size) {
  if (size < 1 || context.size() < size) return;
  const index_t before = size - 1;
  const Span<const TokenId> last = context.part(context.size() - before, before);
  for (index_t i = 0; i + size <= context.size(); ++i) {
    const Span<const TokenId> here = context.part(i, before);
    if (std::equal(here.begin(), here.end(), last.begin())) suppress(logits, context[i + before]);
  }
}

void add_bias(Span<float> logits, Span<const TokenId> context, Span<const SequenceBias> biases) {
  for (const SequenceBias& entry : biases) {
    if (entry.tokens.empty() || !in_vocabulary(logits, entry.tokens.back())) continue;
    const Span<const TokenId> before(entry.tokens.data(),
                                     static_cast<index_t>(entry.tokens.size()) - 1);
    if (ends_with(context, before)) logits[entry.tokens.back()] += entry.bias;
  }
}

void penalize_repeated_sequences(Span<float> logits, Span<const TokenId> context,
                                 const DryPenalty& dry) {
  if (!(dry.multiplier > 0) || !(dry.base >= 1) || context.size() < 2) return;
  // from the last token back to the first breaker, which no repetition reaches
  const std::vector<TokenId> backwards(std::make_reverse_iterator(context.end()),
                                       std::make_reverse_iterator(context.begin()));
  const auto breaker = std::find_first_of(backwards.begin(), backwards.end(), dry.breakers.begin(),
                                          dry.breakers.end());
  const auto most = static_cast<size_t>(breaker - backwards.begin());
  const std::vector<size_t> matches = z_function(backwards);
  std::unordered_map<TokenId, size_t> longest;
  for (size_t i = 1; i < backwards.size(); ++i) {
    size_t& length = longest[backwards[i - 1]];
    length = std::max(length, std::min(matches[i], most));
  }
  for (const auto& [token, length] : longest) {
    const int beyond = static_cast<int>(length) - std::max(dry.allowed_length, 1);
    if (beyond < 0 || !in_vocabulary(logits, token)) continue;
    logits[token] -= dry.multiplier * std::pow(dry.base, static_cast<float>(beyond));
  }
}

void suppress(Span<float> logits, TokenId token) {
  if (in_vocabulary(logits, token)) logits[token] = removed;
}

void force(Span<float> logits, TokenId token) {
  if (!in_vocabulary(logits, token)) return;
  std::fill(logits.begin(), logits.end(), removed);
  logits[token] = 0;
}

void favor(Span<float> logits, TokenId token, float factor, int steps) {
  if (!in_vocabulary(logits, token) || steps <= 0 || !std::isfinite(logits[token])) return;
  logits[token] += std::abs(logits[token]) * (std::pow(factor, static_cast<float>(steps)) - 1);
}

}  // namespace taper::llm
