/// Turns texts into vectors whose products compare them.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "taper/runtime/extension/llm/language_model.h"

namespace taper::llm {

/// Which of the last states of a text's tokens are its embedding.
enum class Pooling : uint8_t { mean, first, last };

/// Pools states that come row by row.
class StatePool {
 public:
  StatePool(Pooling pooling, int64_t width)
      : pooling_(pooling), sum_(static_cast<size_t>(width), 0.0) {}

  /// `rows`: (n, width), the states of the next tokens.
  void add(Span<const float> rows);
  /// The pooled state, of length 1. Zeros stay zeros.
  std::vector<float> result() const;

 private:
  const Pooling pooling_;
  std::vector<double> sum_;
  bool is_empty_ = true;
};

/// One thread at a time.
class Embedder {
 public:
  virtual ~Embedder() = default;
  virtual const Tokenizer& tokenizer() const = 0;
  /// The most tokens of a text.
  virtual int64_t longest() const = 0;
  /// The tokens of a text, with those around it. A text that is too long is cut, but for its last
  /// token.
  std::vector<TokenId> tokens(std::string_view text) const;
  /// The vector of a text, of length 1. `message` gets the reason of an error. Errors:
  /// invalid_argument (no tokens, too many, or one that the vocabulary lacks).
  virtual Result<std::vector<float>> embed(Span<const TokenId> ids,
                                           std::string* message = nullptr) = 0;
};

/// Embeddings out of a language model that `has_states`. It has a sequence of its own, which is
/// made when the first text comes.
class LanguageModelEmbedder : public Embedder {
 public:
  LanguageModelEmbedder(LanguageModel model, Pooling pooling)
      : model_(std::move(model)), pooling_(pooling) {}

  const Tokenizer& tokenizer() const override { return model_.tokenizer(); }
  int64_t longest() const override { return model_.context(); }
  Result<std::vector<float>> embed(Span<const TokenId> ids, std::string* message) override;

 private:
  const LanguageModel model_;
  const Pooling pooling_;
  std::optional<Sequence> sequence_;
};

}  // namespace taper::llm
