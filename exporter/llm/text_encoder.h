// Embeddings of texts: a Hugging Face folder with an encoder and its tokenizer.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/embedder.h"

namespace taper {
struct Threads;
}

namespace taper::llm {

struct TextEncoderOptions {
  /// None: as the folder says in the files of sentence-transformers, otherwise the mean.
  std::optional<Pooling> pooling;
  std::string lora;  ///< an adapter, a folder of PEFT; empty: none
  const Threads* threads = nullptr;
  std::function<void(const std::string&)> stage;  ///< told what begins: loading, tracing, …
};

/// Makes vectors of texts. The constructor throws ExportErrors, which name the folder.
class TextEncoder : public Embedder {
 public:
  explicit TextEncoder(const std::string& path, const TextEncoderOptions& options = {});
  ~TextEncoder() override;

  const Tokenizer& tokenizer() const override;
  int64_t longest() const override;
  Result<std::vector<float>> embed(Span<const TokenId> ids, std::string* message) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::llm
