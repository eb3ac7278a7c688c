// Compares a model of images with recorded results of another implementation.
#pragma once
#include "taper/exporter/llm/golden.h"
#include "taper/exporter/llm/image_model.h"

namespace taper::llm {

/// A model of images, in eager or as a program. See ImageModel.
class ImageRunner {
 public:
  virtual ~ImageRunner() = default;
  /// Without `hidden`, if the model does not tell them.
  virtual TowerResult embed_image(const Tensor& pixels) = 0;
  virtual TowerResult embed_text(const Tensor& ids) = 0;
  virtual Tensor match(const Tensor& images, const Tensor& texts) = 0;
};

class EagerImageRunner : public ImageRunner {
 public:
  explicit EagerImageRunner(ImageModel& model) : model_(model) {}
  TowerResult embed_image(const Tensor& pixels) override;
  TowerResult embed_text(const Tensor& ids) override;
  Tensor match(const Tensor& images, const Tensor& texts) override;

 private:
  ImageModel& model_;
};

/// Names in a file of golden results:
///   pixel_values, hidden.embed, hidden.layer_N, last_hidden_state, pooler_output   of CLIP
///   pixel_values, vision_last_hidden_state, image_embeds,
///   input_ids, text_last_hidden_state, text_embeds, logits_per_image               of SigLIP
/// Tolerances as for other models: 1e-4 of the largest value, 2e-4 for logits.
std::vector<Compared> compare_with_golden(ImageRunner& runner, const io::SafeTensors& golden);

}  // namespace taper::llm
