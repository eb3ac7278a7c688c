#include <algorithm>

#include "taper/exporter/eager/eager.h"
#include "taper/exporter/llm/golden_values.h"
#include "taper/exporter/llm/vision_language_runner.h"

namespace taper::llm {
namespace {

using Ids = std::vector<int64_t>;

DecoderOptions options_of(bool all, bool keep_hidden, const Tensor& features) {
  DecoderOptions options;
  options.all_logits = all, options.keep_hidden = keep_hidden, options.features = features;
  return options;
}

/// Some processors give several images for each row: (rows, images, channels, size, size).
Tensor images_of(const Tensor& pixels) {
  return pixels.rank() == 5 ? eager::flatten(pixels, 0, 1) : pixels;
}

}  // namespace

const Tensor& VisionRunner::see(const Tensor& pixels) {
  features_ = embed_image(pixels);
  return features_;
}

Tensor VisionRunner::features_for(const Ids& ids) const {
  return std::ranges::find(ids, image_token_) == ids.end() ? Tensor() : features_;
}

Tensor VisionRunner::logits(const Ids& ids, int64_t start, bool all) {
  return logits_with(ids, start, all, features_for(ids));
}

Tensor EagerVisionRunner::embed_image(const Tensor& pixels) {
  const eager::NoGrad guard;
  return model_.embed_image(pixels);
}

Tensor EagerVisionRunner::logits_with(const Ids& ids, int64_t start, bool all,
                                      const Tensor& features) {
  const eager::NoGrad guard;
  const DecoderOptions options = options_of(all, false, features);
  return (*model_.decoder)(row_of(ids), row_of({start})[0], options).logits[0];
}

std::vector<Tensor> EagerVisionRunner::hidden(const Ids& ids) {
  const eager::NoGrad guard;
  const DecoderOptions options = options_of(true, true, features_for(ids));
  return (*model_.decoder)(row_of(ids), row_of({0})[0], options).hidden;
}

std::vector<Compared> compare_with_golden(VisionRunner& runner, const io::SafeTensors& golden) {
  const GoldenValues values(golden);
  const Tensor features = runner.see(images_of(values.tensor("pixel_values")));
  std::vector<Compared> results = compare_with_golden(static_cast<Runner&>(runner), golden);
  results.insert(results.begin(), values.states("image_features", features));
  return results;
}

}  // namespace taper::llm
