/// Lets a language model write, token by token.
///
///   taper::llm::Generation answer(sequence, prompt, options);
///   while (answer.step()) std::cout << answer.piece() << std::flush;
///   if (answer.error() != taper::Error::ok) return fail(answer.message());
///
/// Several answers at once are quicker together: `step_each`.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "taper/runtime/extension/llm/grammar.h"
#include "taper/runtime/extension/llm/language_model.h"

namespace taper::llm {

class Draft;  // draft.h

struct GenerateOptions {
  SamplingOptions sampling;
  std::vector<std::string> stop;  ///< texts that end the answer, and are not part of it
  int64_t max_tokens = 512;       ///< the most tokens of the answer
  /// What the answer may be; null: any text. It begins anew, and belongs to one answer at a time.
  std::shared_ptr<GrammarMatcher> grammar;
  /// Guesses tokens, which the model reads at once; null: none. The answer has the same tokens. Has
  /// no effect on a model without `has_all_logits`, or one that cannot rewind.
  std::shared_ptr<Draft> draft;
  /// The most tokens of the prompt that a step reads; 0: `Sequence::chunk`. Fewer make a step
  /// shorter, and all steps together longer.
  int64_t prompt_piece = 0;
  /// Special tokens are a part of the text, such as those around calls of tools.
  bool shows_special_tokens = false;
  /// Another thread ends the answer by setting it. It outlives the generation.
  const std::atomic<bool>* cancel = nullptr;
  /// Called before each token is chosen, with the model's logits and all tokens so far. It may
  /// change the logits: -infinity removes a token.
  std::function<void(Span<float> logits, Span<const TokenId> tokens)> before_token;
  /// Called with each token that was chosen, the one that ends the answer, too.
  std::function<void(TokenId)> after_token;
};

/// Why an answer ended.
enum class Finish : uint8_t {
  none,          ///< it goes on
  end,           ///< the model or the grammar ended it, or no token was allowed
  stop,          ///< a stop string came
  max_tokens,    ///< of GenerateOptions
  context_full,  ///< nothing more fits behind the text
  cancelled,
  failed,  ///< see `error` and `message`
};

struct GenerationStatistics {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  ///< of the prompt, which were not read again
  int64_t answer_tokens = 0;  ///< with the one that ended the answer
  int64_t answer_steps = 0;   ///< how often the model computed for them
  double prompt_seconds = 0;  ///< until the prompt was read
  double answer_seconds = 0;  ///< since then
};

/// One answer. The sequence belongs to it until it ends.
class Generation {
 public:
  /// Keeps what the sequence has read of the prompt already.
  Generation(Sequence& sequence, std::vector<TokenId> prompt, GenerateOptions options = {});
  Generation(Generation&&) noexcept;
  Generation& operator=(Generation&&) noexcept;
  ~Generation();

  /// Reads a chunk of the prompt, or writes a token: the model computes once. False if the answer
  /// has ended before.
  bool step();
  /// Whether the next step reads a piece of the prompt. Else it is that of a single token.
  bool reads_prompt() const;
  /// Takes over what another sequence of the model has read of the prompt, if that is more. Between
  /// two steps, and before the answer begins.
  void share_prompt(Sequence& from);
  /// The text that the last step added, in whole characters. Often empty: a step may read the
  /// prompt, or its text may wait for the rest of a character or of a stop string.
  std::string_view piece() const;

  Finish finish() const;
  const std::string& text() const;          ///< all pieces
  const std::vector<TokenId>& ids() const;  ///< of the answer, with the one that ended it
  const GenerationStatistics& statistics() const;
  Error error() const;
  const std::string& message() const;

 private:
  friend void step_each(Span<Generation* const> answers);
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Does a step of each of these answers, with the same results as `step`. Those that read a single
/// token do it in one call of the model, if they share a session (`LanguageModel::rows`). Answers
/// come and go between two calls. What a step throws, such as std::bad_alloc or the exception of a
/// hook, ends its answer with an error.
void step_each(Span<Generation* const> answers);

}  // namespace taper::llm
