// Configurations of towers for images and for texts about them.
#include <cmath>

#include "taper/exporter/llm/config_keys.h"
#include "taper/exporter/llm/image_model.h"
#include "taper/exporter/llm/read_config.h"

namespace taper::llm {
namespace {

using nlohmann::json;

/// What published files leave out.
struct Defaults {
  const char* activation;
  double norm_eps;
  int64_t hidden, mlp, heads, patch;
};
constexpr Defaults of_clip = {"quick_gelu", 1e-5, 768, 3072, 12, 32},
                   of_clip_texts = {"quick_gelu", 1e-5, 512, 2048, 8, 1},
                   of_siglip = {"gelu_pytorch_tanh", 1e-6, 768, 3072, 12, 16},
                   of_smolvlm = {"gelu_pytorch_tanh", 1e-6, 1152, 3072, 16, 32};

Config read_layers(const Keys& keys, const Defaults& defaults) {
  Config c;
  c.hidden = keys.integer({"hidden_size"}, defaults.hidden);
  c.layers = keys.integer({"num_hidden_layers"}, 12);
  c.mlp = keys.integer({"intermediate_size"}, defaults.mlp);
  c.heads = c.kv_heads = keys.integer({"num_attention_heads"}, defaults.heads);
  if (c.heads < 1 || c.hidden % c.heads != 0)
    throw ExportError("config: " + std::to_string(c.heads) + " heads do not divide hidden_size");
  c.head_dim = c.hidden / c.heads;
  c.attention_scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  c.norm_eps = keys.number({"layer_norm_eps"}, defaults.norm_eps);
  c.activation = activation_named(keys.text({"hidden_act"}, defaults.activation));
  c.vocabulary = c.context = 1;  // of a tower without texts
  return c;
}

ImageConfig read_image(const Keys& keys, const Defaults& defaults) {
  ImageConfig c;
  c.layers = read_layers(keys, defaults);
  c.image = keys.integer({"image_size"}, 224);
  c.patch = keys.integer({"patch_size"}, defaults.patch);
  c.channels = keys.integer({"num_channels"}, 3);
  constexpr int64_t most = 1 << 16;
  if (c.patch < 1 || c.image < c.patch || c.image > most || c.channels < 1 || c.channels > most)
    throw ExportError("config: image_size, patch_size or num_channels is out of range");
  check(c.layers);
  return c;
}

Config read_clip_text(const Keys& keys, int64_t projection) {
  Config c = read_layers(keys, of_clip_texts);
  c.vocabulary = keys.integer({"vocab_size"}, 49408);
  c.context = keys.integer({"max_position_embeddings"}, 77);
  c.end_token = keys.integer({"eos_token_id"}, 49407);
  c.causal = true, c.projection = projection;
  check(c);
  return c;
}

ImageModelConfig read_clip(const json& file) {
  ImageModelConfig c;
  c.family = "clip";
  c.image = read_image(Keys(json_part(file, "vision_config")), of_clip);
  c.text = read_clip_text(Keys(json_part(file, "text_config")),
                          Keys(file).positive({"projection_dim"}, 512));
  return c;
}

Config read_text(const Keys& keys) {
  Config c = read_layers(keys, of_siglip);
  c.vocabulary = keys.integer({"vocab_size"}, 32000);
  c.context = keys.integer({"max_position_embeddings"}, 64);
  c.projection = keys.integer({"projection_size"}, c.hidden);
  check(c);
  if (c.projection < 1) throw ExportError("config: projection_size must be positive");
  return c;
}

const Defaults& defaults_of(const std::string& type) {
  if (type == "clip_vision_model") return of_clip;
  if (type == "siglip_vision_model") return of_siglip;
  if (type == "smolvlm_vision") return of_smolvlm;
  throw ExportError("config: towers of the type \"" + type +
                    "\" are not supported; these are: clip_vision_model, siglip_vision_model, "
                    "smolvlm_vision");
}

}  // namespace

const json& json_part(const json& file, const char* name) {
  const json* found = Keys(file).find({name});
  if (found == nullptr || !found->is_object())
    throw ExportError(std::string("config: ") + name + " must be an object");
  return *found;
}

ImageConfig read_image_tower_config(const json& file) {
  const Keys keys(file);
  return read_image(keys, defaults_of(keys.text({"model_type"}, "")));
}

ImageModelConfig read_image_config(const json& file) {
  ImageModelConfig c;
  c.family = Keys(file).text({"model_type"}, "");
  if (c.family == "clip") return read_clip(file);
  if (c.family != "siglip") {
    c.image = read_image_tower_config(file);
    return c;
  }
  const json& vision = json_part(file, "vision_config");
  c.image = read_image(Keys(vision), of_siglip);
  if (!Keys(vision).flag({"vision_use_head"}, true))
    throw ExportError("config: vision_use_head is false, and a model without it is not supported");
  c.text = read_text(Keys(json_part(file, "text_config")));
  if (c.text.projection != c.image.layers.hidden)
    throw ExportError("config: projection_size differs from the hidden_size of images");
  return c;
}

}  // namespace taper::llm
