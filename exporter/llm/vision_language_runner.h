// Compares a model that sees images and writes a text with recorded results of another
// implementation.
#pragma once
#include "taper/exporter/llm/golden.h"
#include "taper/exporter/llm/vision_language.h"

namespace taper::llm {

/// Once an image was seen, its features take the places of image tokens.
class VisionRunner : public Runner {
 public:
  explicit VisionRunner(int64_t image_token) : image_token_(image_token) {}
  /// The features (m, hidden).
  const Tensor& see(const Tensor& pixels);
  Tensor logits(const std::vector<int64_t>& ids, int64_t start, bool all) override;

 protected:
  virtual Tensor embed_image(const Tensor& pixels) = 0;
  /// Undefined features: there is no image token among ids.
  virtual Tensor logits_with(const std::vector<int64_t>& ids, int64_t start, bool all,
                             const Tensor& features) = 0;
  /// Undefined if there is no image token among ids.
  Tensor features_for(const std::vector<int64_t>& ids) const;

 private:
  int64_t image_token_;
  Tensor features_;
};

class EagerVisionRunner : public VisionRunner {
 public:
  explicit EagerVisionRunner(VisionLanguage& model)
      : VisionRunner(model.config.text.image_token), model_(model) {}
  std::vector<Tensor> hidden(const std::vector<int64_t>& ids) override;

 protected:
  Tensor embed_image(const Tensor& pixels) override;
  Tensor logits_with(const std::vector<int64_t>& ids, int64_t start, bool all,
                     const Tensor& features) override;

 private:
  VisionLanguage& model_;
};

/// As for a decoder; and before it
///   pixel_values, image_features
std::vector<Compared> compare_with_golden(VisionRunner& runner, const io::SafeTensors& golden);

}  // namespace taper::llm
