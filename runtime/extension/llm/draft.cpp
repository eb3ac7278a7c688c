#include "taper/runtime/extension/llm/draft.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "taper/runtime/extension/llm/failure.h"

namespace taper::llm {
namespace {

class LookupDraft final : public Draft {
 public:
  std::vector<TokenId> guess(const std::vector<TokenId>& text, int64_t most,
                             const std::atomic<bool>*) override {
    for (const std::ptrdiff_t length : {3, 2}) {
      if (most <= 0 || static_cast<std::ptrdiff_t>(text.size()) <= length) continue;
      const auto last = text.end() - length;
      // the latest place before
      const auto found = std::find_end(text.begin(), text.end() - 1, last, text.end());
      if (found == text.end() - 1) continue;
      const auto behind = found + length;
      const auto count = std::min<std::ptrdiff_t>(text.end() - behind, most);
      return {behind, behind + count};
    }
    return {};
  }
};

class ModelDraft final : public Draft {
 public:
  ModelDraft(Sequence sequence, TokenId vocabulary)
      : sequence_(std::move(sequence)), vocabulary_(vocabulary) {}

  std::vector<TokenId> guess(const std::vector<TokenId>& text, int64_t most,
                             const std::atomic<bool>* cancel) override {
    most = std::min(most, sequence_.model().context() - static_cast<int64_t>(text.size()));
    if (most <= 0 || text.empty()) return {};
    const Span<const TokenId> all{text.data(), static_cast<index_t>(text.size())};
    const auto known = static_cast<index_t>(sequence_.keep_prefix(all));
    Span<const TokenId> next = all.part(known, all.size() - known);
    std::vector<TokenId> guesses;
    guesses.reserve(static_cast<size_t>(most));  // `next` points at the last one
    while (static_cast<int64_t>(guesses.size()) < most) {
      const Result<Span<float>> logits = sequence_.append(next, cancel);
      if (!logits.ok()) break;
      const TokenId id = likely(logits.value());
      if (id < 0 || id >= vocabulary_ || sequence_.model().ends(id)) break;
      guesses.push_back(id);
      next = {&guesses.back(), 1};
    }
    return guesses;
  }

 private:
  /// The token that is more likely than all others together, or -1.
  static TokenId likely(Span<float> logits) {
    const float* best = std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - *best);
    return sum < 2 ? static_cast<TokenId>(best - logits.begin()) : -1;
  }

  Sequence sequence_;
  TokenId vocabulary_;
};

// A model may have more rows of logits than its tokenizer has tokens, and another one fewer.
void require_equal_tokens(const Tokenizer& small, const Tokenizer& large) {
  const TokenId count = std::min(small.vocabulary_size(), large.vocabulary_size());
  for (TokenId id = 0; id < count; ++id)
    if (small.token(id) != large.token(id))
      refuse("a draft needs a model with the same tokens: token " + std::to_string(id) + " is '" +
             std::string(small.token(id)) + "', not '" + std::string(large.token(id)) + "'");
}

}  // namespace

std::shared_ptr<Draft> lookup_draft() { return std::make_shared<LookupDraft>(); }

Result<std::shared_ptr<Draft>> model_draft(const LanguageModel& small, const LanguageModel& model,
                                           std::string* message) {
  return guarded<std::shared_ptr<Draft>>(message, [&]() -> std::shared_ptr<Draft> {
    require_equal_tokens(small.tokenizer(), model.tokenizer());
    if (!small.text().rewinds) leave_out("a draft needs a model that can forget its last tokens");
    std::string why;
    Result<Sequence> sequence = Sequence::create(small, &why);
    if (!sequence.ok()) throw Failure{sequence.error(), why};
    return std::make_shared<ModelDraft>(std::move(sequence.value()),
                                        model.tokenizer().vocabulary_size());
  });
}

}  // namespace taper::llm
