// Embeddings of texts: a Hugging Face folder with an encoder and its tokenizer.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "taper/runtime/extension/llm/tokenizer.h"

namespace taper {
struct Threads;
}

namespace taper::llm {

struct TextEncoderOptions {
  const Threads* threads = nullptr;
  std::function<void(const std::string&)> stage;  ///< told what begins: loading, tracing, …
};

/// Errors are ExportErrors, which name the folder.
class TextEncoder {
 public:
  explicit TextEncoder(const std::string& path, const TextEncoderOptions& options = {});
  ~TextEncoder();

  int64_t width() const;
  /// The tokens of a text, with those around it. A text that is too long for the model is cut.
  std::vector<TokenId> tokens(const std::string& text) const;
  /// The mean over all tokens of the last states, of length 1.
  std::vector<float> embed(const std::string& text);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace taper::llm
