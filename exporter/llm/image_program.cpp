// Models of images as programs.
#include "taper/exporter/llm/program.h"

namespace taper::llm {

void add_methods(Exporter& exporter, ImageModel& model, int64_t batch) {
  const ImageConfig& image = model.config.image;
  const auto parts = [](const TowerResult& r) { return std::vector<Tensor>{r.embedding, r.last}; };
  const Dim rows = Dim::symbol("batch", 1, batch);
  exporter.method(
      "embed_image", [&](const Tensor& pixels) { return parts(model.embed_image(pixels)); },
      {input("pixels", {rows, image.channels, image.image, image.image})}, {"embedding", "last"});
  if (!model.text) return;
  const Dim n = Dim::symbol("n", 1, model.config.text.context);
  exporter.method("embed_text", [&](const Tensor& ids) { return parts(model.embed_text(ids)); },
                  {input("ids", {rows, n}, DType::i64)}, {"embedding", "last"});
  const Dim images = Dim::symbol("images", 1, batch), texts = Dim::symbol("texts", 1, batch),
            features = model.config.text.projection;
  exporter.method("match", [&](const Tensor& a, const Tensor& b) { return model.match(a, b); },
                  {input("images", {images, features}), input("texts", {texts, features})},
                  {"logits"});
}

TowerResult ProgramImageRunner::embed_image(const Tensor& pixels) {
  const std::vector<Tensor> results = program_.execute("embed_image", {pixels});
  return {results[0], results[1], {}};
}

TowerResult ProgramImageRunner::embed_text(const Tensor& ids) {
  const std::vector<Tensor> results = program_.execute("embed_text", {ids});
  return {results[0], results[1], {}};
}

Tensor ProgramImageRunner::match(const Tensor& images, const Tensor& texts) {
  return program_.execute("match", {images, texts})[0];
}

}  // namespace taper::llm
