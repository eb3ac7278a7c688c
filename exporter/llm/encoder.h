// Text encoders: models that read a whole text at once, such as BERT, ModernBERT, and the sentence
// embeddings made of them. J. Devlin and others, "BERT", arXiv:1810.04805.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/llm/full_attention.h"
#include "taper/exporter/llm/step.h"

namespace taper::llm {

/// What all layers of one call share.
struct EncoderStep {
  Tensor seen;  ///< bool (batch, 1, 1, n): the tokens that are no padding
  Tensor near;  ///< bool (batch, 1, n, n): those in the window of each token; or undefined
  Rotation rotation, local_rotation;  ///< may be undefined
};

class EncoderLayer : public nn::Module {
 public:
  /// x (batch, n, hidden) -> the same
  virtual Tensor forward(const Tensor& x, const EncoderStep& step) = 0;
};

/// A layer of the family that the configuration names.
std::unique_ptr<EncoderLayer> make_encoder_layer(const Config& config, const Weights& weights,
                                                 int64_t layer);
std::unique_ptr<EncoderLayer> make_modernbert_layer(const Config& config, const Weights& weights,
                                                    int64_t layer);

class Encoder : public nn::Module {
 public:
  Encoder(const Config& config, const Weights& weights);

  Config config;
  Embedding words;
  std::unique_ptr<Embedding> positions, token_types;
  Norm embedding_norm;
  std::vector<std::unique_ptr<EncoderLayer>> layers;
  std::unique_ptr<Norm> norm;
  std::unique_ptr<Linear> pooler;  ///< absent in many checkpoints for embeddings
  TAPER_MODULE(words, positions, token_types, embedding_norm, layers, norm, pooler)

  struct Result {
    Tensor last;                 ///< (batch, n, hidden)
    std::vector<Tensor> hidden;  ///< what goes into layer 0, and what each layer gives
  };
  /// `ids`, `mask`, `types`: i64 (batch, n). The mask is 0 for padding. Undefined types are zeros.
  Result forward(const Tensor& ids, const Tensor& mask, const Tensor& types = {});
  /// tanh of a projection of the first token: (batch, hidden). Only with a pooler.
  Tensor pooled(const Tensor& last);

 private:
  Tensor embed(const Tensor& ids, const Tensor& positions, const Tensor& types);
  EncoderStep step(const Tensor& positions, const Tensor& mask) const;

  RotaryTable rotary_, local_rotary_;
};

/// The mean over the tokens that the mask shows, of length 1: (batch, hidden). N. Reimers, I.
/// Gurevych, "Sentence-BERT", arXiv:1908.10084.
Tensor mean_embedding(const Tensor& last, const Tensor& mask);

/// Whether a folder's config.json names an encoder.
bool is_encoder(const std::string& path);
/// Loads a Hugging Face folder. `lora`: an adapter for it, a folder of PEFT; empty: none. Throws
/// ExportError, which names the folder.
std::unique_ptr<Encoder> load_encoder(const std::string& path, const std::string& lora = "");

}  // namespace taper::llm
