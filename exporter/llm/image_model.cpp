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
  if (c.family == "clip")
    image_projection = std::make_unique<Linear>(weights["image_projection"], c.image.layers.hidden,
                                                c.text.projection);
  if (c.text.layers > 0) {
    const bool is_clip = c.family == "clip";
    const Weights projection = is_clip ? weights["text_projection"] : weights["text"]["pooling"];
    text = std::make_unique<TextTower>(c.text, weights["text"], projection);
    logit_scale = exp(weights.vector(is_clip ? Ints{} : Ints{1}, "logit_scale"));
    logit_bias = weights.vector_if({1}, "logit_bias");
  }
  set_names();
}

TowerResult ImageModel::embed_image(const Tensor& pixels) {
  TowerResult result = image(pixels);
  if (image_projection) result.embedding = (*image_projection)(result.embedding);
  if (text) result.embedding = of_length_one(result.embedding);
  return result;
}

TowerResult ImageModel::embed_text(const Tensor& ids) {
  TowerResult result = (*text)(ids);
  result.embedding = of_length_one(result.embedding);
  return result;
}

Tensor ImageModel::match(const Tensor& images, const Tensor& texts) const {
  const Tensor fits = matmul(images, texts.t()) * logit_scale;
  return logit_bias.defined() ? fits + logit_bias : fits;
}

bool is_image_model(const std::string& path) {
  const std::string type = huggingface::model_type(path);
  return type == "clip" || type == "clip_vision_model" || type == "siglip";
}

std::unique_ptr<ImageModel> load_image_model(const std::string& path, const std::string& lora) {
  const huggingface::Folder folder(path);
  return naming(path, [&] {
    Checkpoint checkpoint(folder, lora);
    auto model =
        std::make_unique<ImageModel>(read_image_config(folder.config()), Weights(checkpoint));
    checkpoint.require_all_read();
    return model;
  });
}

}  // namespace taper::llm
