// Configurations of models that see images and write a text.
#include "taper/exporter/llm/config_keys.h"
#include "taper/exporter/llm/read_config.h"
#include "taper/exporter/llm/vision_language.h"

namespace taper::llm {
namespace {

using nlohmann::json;

/// Published LLaVA files leave out what Llama 2 has.
json text_config(const json& file) {
  json text = {{"model_type", "llama"},      {"hidden_size", 4096},       {"num_hidden_layers", 32},
               {"intermediate_size", 11008}, {"num_attention_heads", 32}, {"vocab_size", 32000}};
  text.update(json_part(file, "text_config"));
  if (const json* tied = Keys(file).find({"tie_word_embeddings"}))
    text["tie_word_embeddings"] = *tied;
  return text;
}

/// -2 is the last layer but one. What goes into the first layer counts as a layer, too.
int64_t layer_of(const Keys& keys, int64_t layers) {
  const json* given = keys.find({"vision_feature_layer"});
  if (given != nullptr && given->is_array())
    throw ExportError("config: a list of layers as vision_feature_layer is not supported");
  const int64_t layer = keys.integer({"vision_feature_layer"}, -2);
  if (layer < -layers - 1 || layer > layers)
    throw ExportError("config: vision_feature_layer " + std::to_string(layer) +
                      " is none of the tower's");
  return layer < 0 ? layer + layers + 1 : layer;
}

void read_llava(const Keys& keys, VisionLanguageConfig& c) {
  c.layer = layer_of(keys, c.image.layers.layers);
  const std::string kind = keys.text({"vision_feature_select_strategy"}, "default");
  if (kind != "default" && kind != "full")
    throw ExportError("config: vision_feature_select_strategy \"" + kind + "\" is not supported");
  c.class_token = kind == "full";
  c.activation = activation_named(keys.text({"projector_hidden_act"}, "gelu"));
}

void read_smolvlm(const Keys& keys, VisionLanguageConfig& c) {
  c.shuffle = keys.integer({"scale_factor"}, 2);
  const int64_t side = c.image.image / c.image.patch;
  if (c.shuffle < 1 || side % c.shuffle != 0)
    throw ExportError("config: scale_factor " + std::to_string(c.shuffle) +
                      " does not divide the " + std::to_string(side) + " patches of a side");
}

}  // namespace

VisionLanguageConfig read_vision_language_config(const json& file) {
  const Keys keys(file);
  VisionLanguageConfig c;
  c.family = keys.text({"model_type"}, "");
  c.image = read_image_tower_config(json_part(file, "vision_config"));
  c.text = read_config(text_config(file));
  c.text.image_token = keys.integer({"image_token_index", "image_token_id"});
  if (c.text.image_token < 0 || c.text.image_token >= c.text.vocabulary)
    throw ExportError("config: the image token " + std::to_string(c.text.image_token) +
                      " is outside of the vocabulary");
  c.family == "llava" ? read_llava(keys, c) : read_smolvlm(keys, c);
  return c;
}

}  // namespace taper::llm
