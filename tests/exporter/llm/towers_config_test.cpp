// Configurations of models with several parts: what published files leave out, and what is refused.
#include <gmock/gmock.h>

#include "taper/exporter/base/error.h"
#include "taper/exporter/importers/huggingface/folder.h"
#include "taper/exporter/llm/image_model.h"
#include "taper/exporter/llm/read_config.h"
#include "taper/exporter/llm/seq2seq.h"
#include "taper/exporter/llm/vision_language.h"
#include "taper/tests/support/data.h"
#include "taper/tests/support/throw_message.h"

namespace taper::llm {
namespace {

using nlohmann::json;

json config_of(const std::filesystem::path& folder) {
  return huggingface::read_json_object(folder / "config.json");
}
json with(json config, const char* pointer, const json& value) {
  config[json::json_pointer(pointer)] = value;
  return config;
}

TEST(t5_config, refuses_what_is_not_supported) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/t5");
  const json t5 = config_of(folder);
  const auto read = [&](const char* key, const json& value) {
    return read_seq2seq_config(with(t5, key, value));
  };
  EXPECT_EXPORT_ERROR(read("/is_encoder_decoder", false), "is_encoder_decoder is false");
  EXPECT_EXPORT_ERROR(read("/is_decoder", true), "is_decoder is true");
  EXPECT_EXPORT_ERROR(read("/feed_forward_proj", "mish"), "\"mish\" is unknown");
  EXPECT_EXPORT_ERROR(read("/relative_attention_num_buckets", 7),
                      "relative_attention_num_buckets must be even");
  EXPECT_EXPORT_ERROR(read("/relative_attention_max_distance", 4),
                      "relative_attention_max_distance must be above");
  EXPECT_EXPORT_ERROR(read("/num_heads", 0), "num_heads must be positive");
  EXPECT_EXPORT_ERROR(read("/d_kv", "x"), "d_kv must be an integer");
}

TEST(t5_config, reads_the_gate_and_the_scale_of_version_1_1) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/t5");
  json t5 = with(config_of(folder), "/feed_forward_proj", "gated-gelu");
  t5.erase("scale_decoder_outputs"), t5["tie_word_embeddings"] = false;
  const Seq2SeqConfig c = read_seq2seq_config(t5);
  EXPECT_EQ(c.decoder.activation, "gelu_tanh");
  EXPECT_EQ(c.decoder.logit_scale, 1);
  t5["tie_word_embeddings"] = true;
  EXPECT_EQ(read_seq2seq_config(t5).decoder.logit_scale, 0.125);
}

TEST(whisper_config, refuses_what_is_not_supported) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/whisper");
  const json whisper = config_of(folder);
  EXPECT_EXPORT_ERROR(read_seq2seq_config(with(whisper, "/scale_embedding", true)),
                      "scale_embedding is true");
  EXPECT_EXPORT_ERROR(read_seq2seq_config(with(whisper, "/encoder_attention_heads", 5)),
                      "encoder_attention_heads must divide d_model");
  json missing = whisper;
  missing.erase("max_source_positions");
  EXPECT_EXPORT_ERROR(read_seq2seq_config(missing), "max_source_positions is missing");
}

TEST(image_config, fills_what_published_files_leave_out) {
  const ImageModelConfig c = read_image_config({{"model_type", "siglip"},
                                                {"text_config", json::object()},
                                                {"vision_config", json::object()}});
  EXPECT_EQ(c.image.patches(), 196);
  EXPECT_EQ(c.image.layers.layers, 12);
  EXPECT_EQ(c.text.context, 64);
  EXPECT_EQ(c.text.projection, 768);
}

TEST(image_config, refuses_what_is_not_supported) {
  TAPER_GOLDEN_DATA_OR_SKIP(folder, "hf_tiny/siglip");
  const json siglip = config_of(folder);
  EXPECT_EXPORT_ERROR(read_image_config(with(siglip, "/vision_config/vision_use_head", false)),
                      "vision_use_head is false");
  EXPECT_EXPORT_ERROR(read_image_config(with(siglip, "/text_config/projection_size", 32)),
                      "projection_size differs");
  EXPECT_EXPORT_ERROR(read_image_config(with(siglip, "/vision_config/patch_size", 0)),
                      "patch_size");
  EXPECT_EXPORT_ERROR(read_image_config(with(siglip, "/vision_config", 3)),
                      "vision_config must be an object");
}

TEST(vision_language_config, refuses_what_is_not_supported) {
  TAPER_GOLDEN_DATA_OR_SKIP(llava_folder, "hf_tiny/llava");
  TAPER_GOLDEN_DATA_OR_SKIP(smolvlm_folder, "hf_tiny/smolvlm");
  const json llava = config_of(llava_folder), smolvlm = config_of(smolvlm_folder);
  const auto read = [](const json& file, const char* key, const json& value) {
    return read_vision_language_config(with(file, key, value));
  };
  EXPECT_EXPORT_ERROR(read(llava, "/vision_feature_layer", {1, 2}), "a list of layers");
  EXPECT_EXPORT_ERROR(read(llava, "/vision_feature_layer", 9), "vision_feature_layer 9");
  EXPECT_EXPORT_ERROR(read(llava, "/vision_feature_select_strategy", "some"), "\"some\"");
  EXPECT_EXPORT_ERROR(read(llava, "/image_token_index", 200), "image token 200");
  EXPECT_EXPORT_ERROR(read(llava, "/vision_config/model_type", "resnet"), "\"resnet\"");
  EXPECT_EXPORT_ERROR(read(smolvlm, "/scale_factor", 3), "scale_factor 3 does not divide");
  EXPECT_EQ(read_vision_language_config(llava).layer, 2);
}

}  // namespace
}  // namespace taper::llm
