// Text encoders: models that read a whole text at once, such as BERT and the sentence embeddings
// made of it. J. Devlin and others, "BERT", arXiv:1810.04805.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/llm/full_attention.h"

namespace taper::llm {

/// Attention in both directions, with a norm behind the residual sum; then a plain MLP, the same.
class EncoderLayer : public nn::Module {
 public:
  EncoderLayer(const Config& config, const Weights& weights);
  FullAttention attention;
  Norm attention_norm;
  PlainMlp mlp;
  Norm mlp_norm;
  TAPER_LAYER(attention, attention_norm, mlp, mlp_norm)
  /// x (batch, n, hidden); `seen`: bool (batch, 1, 1, n), the tokens that are no padding.
  Tensor forward(const Tensor& x, const Tensor& seen);
};

class Encoder : public nn::Module {
 public:
  Encoder(const Config& config, const Weights& weights);

  Config config;
  Embedding words, positions, token_types;
  Norm embedding_norm;
  std::vector<std::unique_ptr<EncoderLayer>> layers;
  std::unique_ptr<Linear> pooler;  ///< absent in many checkpoints for embeddings
  TAPER_MODULE(words, positions, token_types, embedding_norm, layers, pooler)

  struct Result {
    Tensor last;                 ///< (batch, n, hidden)
    std::vector<Tensor> hidden;  ///< what goes into layer 0, and what each layer gives
  };
  /// `ids`, `mask`, `types`: i64 (batch, n). The mask is 0 for padding. Undefined types are zeros.
  Result forward(const Tensor& ids, const Tensor& mask, const Tensor& types = {});
  /// tanh of a projection of the first token: (batch, hidden). Only with a pooler.
  Tensor pooled(const Tensor& last);

 private:
  Tensor embed(const Tensor& ids, const Tensor& types);
};

/// The mean over the tokens that the mask shows, of length 1: (batch, hidden). N. Reimers, I.
/// Gurevych, "Sentence-BERT", arXiv:1908.10084.
Tensor mean_embedding(const Tensor& last, const Tensor& mask);

/// Whether a folder's config.json names an encoder.
bool is_encoder(const std::string& path);
/// Loads a Hugging Face folder. Throws ExportError, which names it.
std::unique_ptr<Encoder> load_encoder(const std::string& path);

}  // namespace taper::llm
