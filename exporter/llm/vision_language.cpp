#include "taper/exporter/llm/vision_language.h"

#include <algorithm>

#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/naming.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {

using namespace eager;

namespace {

/// LLaVA: an MLP over the patches that an inner layer gives.
class MlpProjector : public Projector {
 public:
  MlpProjector(const VisionLanguageConfig& c, const Weights& weights)
      : first(weights["projector.first"], c.image.layers.hidden, c.text.hidden),
        second(weights["projector.second"], c.text.hidden, c.text.hidden),
        activation_(c.activation),
        layer_(static_cast<size_t>(c.layer)),
        class_token_(c.class_token) {
    set_names();
  }
  Linear first, second;
  TAPER_LAYER(first, second)

  Tensor forward(const TowerResult& image) override {
    const Tensor& states = image.hidden[layer_];
    const Tensor patches = class_token_ ? states : narrow(states, 1, 1, states.size(1) - 1);
    return second(activate(activation_, first(patches)));
  }

 private:
  std::string activation_;
  size_t layer_;
  bool class_token_;
};

/// SmolVLM: squares of patches become one feature each.
class ShuffleProjector : public Projector {
 public:
  ShuffleProjector(const VisionLanguageConfig& c, const Weights& weights)
      : projection(weights["projector.joint"], c.image.layers.hidden * c.shuffle * c.shuffle,
                   c.text.hidden),
        side_(c.image.image / c.image.patch),
        square_(c.shuffle) {
    set_names();
  }
  Linear projection;
  TAPER_LAYER(projection)

  Tensor forward(const TowerResult& image) override {
    const Dim images = image.last.size(0);
    const int64_t hidden = image.last.size(2).value(), squares = side_ / square_;
    const Tensor x = image.last.reshape({images, squares, square_, squares, square_, hidden});
    return projection(x.permute({0, 1, 3, 2, 4, 5})
                          .reshape({images, squares * squares, square_ * square_ * hidden}));
  }

 private:
  int64_t side_, square_;
};

std::unique_ptr<Projector> make_projector(const VisionLanguageConfig& c, const Weights& weights) {
  if (c.family == "llava") return std::make_unique<MlpProjector>(c, weights);
  return std::make_unique<ShuffleProjector>(c, weights);
}

}  // namespace

VisionLanguage::VisionLanguage(const VisionLanguageConfig& c, const Weights& weights)
    : config(c),
      tower(c.image, weights["vision"]),
      projector(make_projector(c, weights["language"])),
      decoder(std::make_unique<Decoder>(c.text, weights["language"])) {
  set_names();
}

Tensor VisionLanguage::embed_image(const Tensor& pixels) {
  const TowerResult image = tower(pixels);
  ModuleScope scope(projector->name());
  return flatten(projector->forward(image), 0, 1);
}

bool is_vision_language(const std::string& path) {
  const std::string type = huggingface::model_type(path);
  return type == "llava" || type == "smolvlm";
}

std::unique_ptr<VisionLanguage> load_vision_language(const std::string& path,
                                                     const LoadOptions& options) {
  const huggingface::Folder folder(path, options.config);
  return naming(path, [&] {
    VisionLanguageConfig config = read_vision_language_config(folder.config());
    apply(options, config.text);
    refuse_named_adapters(options);
    Checkpoint checkpoint(folder, options.lora);
    auto model = std::make_unique<VisionLanguage>(config, Weights(checkpoint));
    checkpoint.require_all_read();
    return model;
  });
}

}  // namespace taper::llm
