// Configurations of models that read a source and write a text.
#include <cmath>

#include "taper/exporter/llm/config_keys.h"
#include "taper/exporter/llm/read_config.h"
#include "taper/exporter/llm/seq2seq.h"

namespace taper::llm {
namespace {

/// "relu", or "gated-gelu" for an MLP with a gate, which the weights show, too.
std::string activation_of_t5(const Keys& keys) {
  const std::string projection = keys.text({"feed_forward_proj"}, "relu");
  if (projection == "gated-gelu") return "gelu_tanh";
  return activation_named(projection.starts_with("gated-") ? projection.substr(6) : projection);
}

Config common_of_t5(const Keys& keys) {
  Config c;
  c.family = "t5";
  c.vocabulary = keys.integer({"vocab_size"});
  c.hidden = keys.integer({"d_model"});
  c.layers = keys.integer({"num_layers"});
  c.mlp = keys.integer({"d_ff"});
  c.heads = c.kv_heads = keys.integer({"num_heads"});
  c.head_dim = keys.integer({"d_kv"});
  c.context = c.capacity = keys.integer({"n_positions"}, 512);
  c.norm_eps = keys.number({"layer_norm_epsilon"}, 1e-6);
  c.activation = activation_of_t5(keys);
  c.attention_scale = 1;
  c.distance_buckets = keys.integer({"relative_attention_num_buckets"}, 32);
  c.bucket_distance = keys.integer({"relative_attention_max_distance"}, 128);
  if (c.heads < 1) throw ExportError("config: num_heads must be positive");
  if (c.distance_buckets < 4 || c.distance_buckets > 1 << 16 || c.distance_buckets % 2 != 0)
    throw ExportError("config: relative_attention_num_buckets must be even, and in [4, 65536]");
  if (c.bucket_distance <= c.distance_buckets / 2 || c.bucket_distance > 1 << 20)
    throw ExportError(
        "config: relative_attention_max_distance must be above half of the buckets, and at most "
        "2^20");
  return c;
}

Seq2SeqConfig read_t5(const Keys& keys) {
  keys.refuse({"is_decoder"}, "a decoder without an encoder");
  if (!keys.flag({"is_encoder_decoder"}, true))
    throw ExportError("config: is_encoder_decoder is false, and a T5 of one part is not supported");
  Seq2SeqConfig c;
  c.encoder = c.decoder = common_of_t5(keys);
  c.decoder.layers = keys.integer({"num_decoder_layers"}, c.encoder.layers);
  c.decoder.tied = true;
  // what version 1.1 calls untied is a head of its own, whose inputs are not scaled
  const bool scales = keys.flag({"scale_decoder_outputs", "tie_word_embeddings"}, true);
  if (scales) c.decoder.logit_scale = 1 / std::sqrt(static_cast<double>(c.decoder.hidden));
  return c;
}

Config part_of_whisper(const Keys& keys, const std::string& part) {
  const auto size = [&](const char* what) { return keys.integer({(part + what).c_str()}); };
  Config c;
  c.family = "whisper";
  c.vocabulary = keys.integer({"vocab_size"});
  c.hidden = keys.integer({"d_model"});
  c.layers = size("_layers");
  c.mlp = size("_ffn_dim");
  c.heads = c.kv_heads = size("_attention_heads");
  if (c.heads < 1 || c.hidden % c.heads != 0)
    throw ExportError("config: " + part + "_attention_heads must divide d_model");
  c.head_dim = c.hidden / c.heads;
  c.attention_scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  c.activation = activation_named(keys.text({"activation_function"}, "gelu"));
  c.context = c.capacity =
      keys.integer({part == "encoder" ? "max_source_positions" : "max_target_positions"});
  return c;
}

Seq2SeqConfig read_whisper(const Keys& keys) {
  keys.refuse({"scale_embedding"}, "a scale of the embedding");
  Seq2SeqConfig c;
  c.encoder = part_of_whisper(keys, "encoder");
  c.decoder = part_of_whisper(keys, "decoder");
  c.decoder.tied = keys.flag({"tie_word_embeddings"}, true);
  c.features = keys.integer({"num_mel_bins"}, 80);
  if (c.features < 1 || c.features > 1 << 16)
    throw ExportError("config: num_mel_bins is out of range");
  return c;
}

}  // namespace

Seq2SeqConfig read_seq2seq_config(const nlohmann::json& file) {
  const Keys keys(file);
  const bool hears = keys.text({"model_type"}, "") == "whisper";
  Seq2SeqConfig c = hears ? read_whisper(keys) : read_t5(keys);
  check(c.encoder), check(c.decoder);
  return c;
}

}  // namespace taper::llm
