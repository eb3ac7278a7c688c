// How well a language model predicts texts, as a value that has a gradient.
#pragma once
#include "taper/exporter/llm/decoder.h"

namespace taper::llm {

struct TextLossOptions {
  /// Backward computes each layer once more, and the logits too. So a training keeps one tensor
  /// (batch, n, hidden) for each layer, and the values inside one layer.
  bool checkpoints = true;
  int64_t tokens_at_once = 64;  ///< of whose logits there are those of a whole vocabulary
};

/// The mean of -log(probability of the next token), a 0-dim tensor. `ids` and `next`, i64 (batch,
/// n), are texts and the same texts one token later; a `next` of -100 does not count. exp of the
/// mean is the perplexity.
Tensor text_loss(Decoder& model, const Tensor& ids, const Tensor& next,
                 const TextLossOptions& options = {});

}  // namespace taper::llm
