#include "taper/exporter/llm/image_model.h"

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/naming.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {

using namespace eager;

namespace {

Tensor of_length_one(const Tensor& x) { return x / sqrt(sum(x * x, {-1}, true)); }

}  // namespace

ImageModel::ImageModel(const ImageModelConfig& c, const Weights& weights)
    : config(c), image(c.image, weights["vision"]) {
  if (c.text.layers > 0) {
    text = std::make_unique<TextTower>(c.text, weights["text"]);
    logit_scale = exp(weights.vector({1}, "logit_scale"));
    logit_bias = weights.vector({1}, "logit_bias");
  }
  set_names();
}

TowerResult ImageModel::embed_image(const Tensor& pixels) {
  TowerResult result = image(pixels);
  if (text) result.embedding = of_length_one(result.embedding);
  return result;
}

TowerResult ImageModel::embed_text(const Tensor& ids) {
  TowerResult result = (*text)(ids);
  result.embedding = of_length_one(result.embedding);
  return result;
}

Tensor ImageModel::match(const Tensor& images, const Tensor& texts) const {
  return matmul(images, texts.t()) * logit_scale + logit_bias;
}

bool is_image_model(const std::string& path) {
  const std::string type = huggingface::model_type(path);
  return type == "clip_vision_model" || type == "siglip";
}

std::unique_ptr<ImageModel> load_image_model(const std::string& path) {
  const huggingface::Folder folder(path);
  return naming(path, [&] {
    Checkpoint checkpoint(folder);
    auto model =
        std::make_unique<ImageModel>(read_image_config(folder.config()), Weights(checkpoint));
    checkpoint.require_all_read();
    return model;
  });
}

}  // namespace taper::llm
