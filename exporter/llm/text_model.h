// A language model that reads and writes text, out of a Hugging Face folder or a .gguf file.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/llm/text_parts.h"
#include "taper/runtime/core/span.h"

namespace taper {
struct Threads;
}

namespace taper::llm {

struct TextModelOptions {
  bool exact = false;   ///< computes in f32 on de-quantized weights
  int64_t context = 0;  ///< positions of the caches; 0: 4096, or fewer if the model has fewer
  const Threads* threads = nullptr;
  std::function<void(const std::string&)> stage;  ///< told what begins: loading, tracing, …
};

/// One conversation. Errors are ExportErrors, which name the file.
class TextModel {
 public:
  explicit TextModel(const std::string& path, const TextModelOptions& options = {});
  ~TextModel();

  const Tokenizer& tokenizer() const;
  int64_t context() const;
  /// The prompt of a conversation: a JSON list of objects with `role` and `content`. Throws if the
  /// model has no chat template.
  std::vector<TokenId> prompt(const std::string& messages) const;
  /// Whether the model ends its answer with this token.
  bool ends(TokenId id) const;

  /// Takes tokens that follow those of earlier calls. Returns the logits behind the last of them,
  /// until the next call. Throws if the context is full.
  Span<float> append(const std::vector<TokenId>& ids);
  int64_t position() const;
  /// Forgets all tokens from `position` on. Models that remember more than a cache, such as LFM2
  /// and Mamba, forget all: look at `position()` afterwards.
  void rewind(int64_t position);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::llm
