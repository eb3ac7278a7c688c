#include "taper/exporter/base/error.h"
#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/golden_values.h"
#include "taper/exporter/llm/image_runner.h"

namespace taper::llm {
namespace {

class Comparison {
 public:
  Comparison(ImageRunner& runner, const io::SafeTensors& golden)
      : runner_(runner), golden_(golden) {}

  std::vector<Compared> run() {
    if (!golden_.has("pixel_values"))
      throw ExportError("the file of golden results has nothing to compare with");
    const TowerResult image = runner_.embed_image(golden_.tensor("pixel_values"));
    for (size_t i = 0; i < image.hidden.size(); ++i)
      states(i == 0 ? "hidden.embed" : "hidden.layer_" + std::to_string(i - 1), image.hidden[i]);
    states("last_hidden_state", image.last);
    states("pooler_output", image.embedding);
    states("vision_last_hidden_state", image.last);
    states("image_embeds", image.embedding);
    if (golden_.has("text_embeds")) texts(image.embedding);
    return results_;
  }

 private:
  void texts(const Tensor& images) {
    const TowerResult text = runner_.embed_text(golden_.tensor("input_ids"));
    states("text_last_hidden_state", text.last);
    states("text_embeds", text.embedding);
    if (golden_.has("logits_per_image"))
      results_.push_back(golden_.logits("logits_per_image", runner_.match(images, text.embedding)));
  }
  void states(const std::string& name, const Tensor& got) {
    if (golden_.has(name)) results_.push_back(golden_.states(name, got));
  }

  ImageRunner& runner_;
  const GoldenValues golden_;
  std::vector<Compared> results_;
};

}  // namespace

TowerResult EagerImageRunner::embed_image(const Tensor& pixels) {
  const eager::NoGrad guard;
  return model_.embed_image(pixels);
}
TowerResult EagerImageRunner::embed_text(const Tensor& ids) {
  const eager::NoGrad guard;
  return model_.embed_text(ids);
}
Tensor EagerImageRunner::match(const Tensor& images, const Tensor& texts) {
  const eager::NoGrad guard;
  return model_.match(images, texts);
}

std::vector<Compared> compare_with_golden(ImageRunner& runner, const io::SafeTensors& golden) {
  return Comparison(runner, golden).run();
}

}  // namespace taper::llm
