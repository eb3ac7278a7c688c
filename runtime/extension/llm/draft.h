/// Guesses of what a language model writes next, which it then reads all at once. Its answer stays
/// the same. Y. Leviathan and others, "Fast Inference from Transformers via Speculative Decoding",
/// arXiv:2211.17192.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/language_model.h"

namespace taper::llm {

/// What guesses. One answer at a time.
class Draft {
 public:
  virtual ~Draft() = default;
  /// At most `most` tokens that may follow the text; none if it has no guess. `cancel` may become
  /// true meanwhile, from another thread: then the guess ends soon. nullptr: nobody cancels.
  virtual std::vector<TokenId> guess(const std::vector<TokenId>& text, int64_t most,
                                     const std::atomic<bool>* cancel) = 0;
};

/// Guesses what followed where the last tokens stood before. Three tokens count, or two.
std::shared_ptr<Draft> lookup_draft();

/// Guesses what a smaller model would write, up to the first token that it doubts. Errors:
/// invalid_argument if the tokens of both models differ, not_supported if `small` cannot rewind,
/// and those of `Sequence::create`.
Result<std::shared_ptr<Draft>> model_draft(const LanguageModel& small, const LanguageModel& model,
                                           std::string* message = nullptr);

}  // namespace taper::llm
