// Towers of models that compare images and texts. An image is cut into patches, which are the
// tokens of an encoder. A. Dosovitskiy and others, "An image is worth 16x16 words",
// arXiv:2010.11929; A. Radford and others, "Learning transferable visual models", arXiv:2103.00020
// (CLIP); X. Zhai and others, "Sigmoid loss for language image pre-training", arXiv:2303.15343
// (SigLIP).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/llm/full_attention.h"

namespace taper::llm {

struct ImageConfig {
  Config layers;
  int64_t image = 0, patch = 0, channels = 0;  ///< images and patches are squares

  int64_t patches() const { return (image / patch) * (image / patch); }
};

/// What a tower gives.
struct TowerResult {
  Tensor embedding;            ///< (batch, features); undefined if the tower has no pooling
  Tensor last;                 ///< (batch, m, hidden)
  std::vector<Tensor> hidden;  ///< what goes into layer 0, and what each layer gives
};

/// SigLIP's pooling: a learned query attends to all patches, then an MLP.
class AttentionPooling : public nn::Module {
 public:
  AttentionPooling(const Config& config, const Weights& weights);
  Tensor query;  ///< (1, 1, hidden)
  FullAttention attention;
  Norm norm;
  PlainMlp mlp;
  TAPER_LAYER(query, attention, norm, mlp)
  /// (batch, m, hidden) -> (batch, hidden)
  Tensor forward(const Tensor& x);
};

class ImageTower : public nn::Module {
 public:
  ImageTower(const ImageConfig& config, const Weights& weights);

  ImageConfig config;
  Tensor patch_weight, patch_bias;  ///< of a convolution whose stride is its size
  Tensor class_token;               ///< (hidden): one token that is no patch (CLIP)
  Tensor positions;                 ///< (tokens, hidden)
  std::unique_ptr<Norm> first_norm;
  FullLayers layers;
  Norm norm;
  std::unique_ptr<AttentionPooling> pooling;
  TAPER_MODULE(patch_weight, patch_bias, class_token, positions, first_norm, layers, norm, pooling)

  /// pixels f32 (batch, channels, image, image). Where there is a class token, `last` is in front
  /// of the norm, and the embedding is the norm of that token.
  TowerResult forward(const Tensor& pixels);

 private:
  Tensor embed(const Tensor& pixels);
};

/// SigLIP's and CLIP's tower for texts. SigLIP's are padded to one length, and the last token is
/// the embedding; CLIP's is the token that ends a text.
class TextTower : public nn::Module {
 public:
  TextTower(const Config& config, const Weights& weights, const Weights& projection);

  Config config;
  Embedding words;
  Tensor positions;  ///< (context, hidden)
  FullLayers layers;
  Norm norm;
  Linear projection;
  TAPER_MODULE(words, positions, layers, norm, projection)

  /// ids i64 (batch, n)
  TowerResult forward(const Tensor& ids);

 private:
  Tensor mask(const Tensor& ids) const;
  Tensor pooled(const Tensor& last, const Tensor& ids) const;
};

}  // namespace taper::llm
