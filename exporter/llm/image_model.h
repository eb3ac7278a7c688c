// Models that give embeddings of images, and of texts that describe images: CLIP, its vision model
// alone, and SigLIP.
#pragma once
#include <memory>
#include <string>

#include "taper/exporter/llm/image_tower.h"

namespace taper::llm {

struct ImageModelConfig {
  std::string family;
  ImageConfig image;
  Config text;  ///< without layers: the model has no texts
};

class ImageModel : public nn::Module {
 public:
  ImageModel(const ImageModelConfig& config, const Weights& weights);

  ImageModelConfig config;
  ImageTower image;
  std::unique_ptr<Linear> image_projection;  ///< of CLIP
  std::unique_ptr<TextTower> text;
  Tensor logit_scale, logit_bias;  ///< the bias may be missing
  TAPER_MODULE(image, image_projection, text, logit_scale, logit_bias)

  /// Embeddings of models with texts have length 1.
  TowerResult embed_image(const Tensor& pixels);
  TowerResult embed_text(const Tensor& ids);
  /// How well images (a, features) and texts (b, features) fit, as embeddings: logits (a, b). Only
  /// with texts.
  Tensor match(const Tensor& images, const Tensor& texts) const;
};

/// Whether a folder's config.json names such a model.
bool is_image_model(const std::string& path);
/// Loads a Hugging Face folder. `lora`: an adapter for it, a folder of PEFT; empty: none. Throws
/// ExportError, which names the folder.
std::unique_ptr<ImageModel> load_image_model(const std::string& path, const std::string& lora = "");

}  // namespace taper::llm
