// Models that see images and write a text: LLaVA, SmolVLM. A tower reads an image, a projection
// turns its patches into features, and these take the places of image tokens in the text. H. Liu
// and others, "Visual instruction tuning", arXiv:2304.08485; A. Marafioti and others, "SmolVLM",
// arXiv:2504.05299.
#pragma once
#include <memory>
#include <string>

#include "taper/exporter/llm/decoder.h"
#include "taper/exporter/llm/image_tower.h"

namespace taper::llm {

struct VisionLanguageConfig {
  std::string family;
  ImageConfig image;
  Config text;
  std::string activation;    ///< LLaVA: between the two projections
  int64_t layer = 0;         ///< LLaVA: the layer of the tower that gives the patches
  bool class_token = false;  ///< LLaVA: it counts as a patch
  int64_t shuffle = 1;       ///< SmolVLM: the side of the square of patches that become one feature
};

/// What turns patches into features: (images, patches, …) -> (images, tokens, hidden).
class Projector : public nn::Module {
 public:
  virtual Tensor forward(const TowerResult& image) = 0;
};

class VisionLanguage : public nn::Module {
 public:
  VisionLanguage(const VisionLanguageConfig& config, const Weights& weights);

  VisionLanguageConfig config;
  ImageTower tower;
  std::unique_ptr<Projector> projector;
  std::unique_ptr<Decoder> decoder;
  TAPER_MODULE(tower, projector, decoder)

  /// pixels f32 (images, channels, size, size) -> (images · tokens, hidden)
  Tensor embed_image(const Tensor& pixels);
};

/// Whether a folder's config.json names such a model.
bool is_vision_language(const std::string& path);
/// Loads a Hugging Face folder. Throws ExportError, which names it.
std::unique_ptr<VisionLanguage> load_vision_language(const std::string& path,
                                                     const LoadOptions& options = {});

}  // namespace taper::llm
