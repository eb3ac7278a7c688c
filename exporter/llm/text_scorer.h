// How likely a language model finds texts.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/llm/cache_type.h"
#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper {
struct Threads;
}

namespace taper::llm {

struct TextScorerOptions {
  bool exact = false;    ///< computes in f32 on de-quantized weights
  int64_t window = 512;  ///< the most tokens of a text
  CacheType cache_type = CacheType::f32;
  std::string lora;  ///< an adapter; empty: none
  const Threads* threads = nullptr;
  std::function<void(const std::string&)> stage;  ///< told what begins: loading, tracing, …
};

/// Errors are ExportErrors, which name the file.
class TextScorer {
 public:
  /// Of a Hugging Face folder, a .gguf file, or a program (.taper). A program computes as it was
  /// exported, so it takes no `exact` and no `cache_type`. It takes a `lora` if it has slots for
  /// one (adapter_slots.h). Without its method `forward_all` it reads token by token.
  explicit TextScorer(const std::string& path, const TextScorerOptions& options = {});
  ~TextScorer();

  const Tokenizer& tokenizer() const;
  int64_t window() const;  ///< that of the options, or fewer if the model has fewer positions
  /// The natural logarithm of the probability of each token behind the first, after those before
  /// it. One fewer than tokens.
  std::vector<double> log_probabilities(const std::vector<TokenId>& ids);

  struct Parts;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::llm
