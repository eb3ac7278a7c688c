#include "taper/exporter/llm/names.h"

#include <algorithm>
#include <map>

#include "taper/exporter/base/error.h"

namespace taper::llm {
namespace {

using Spellings = std::vector<std::string>;

/// Models of several parts: the names of one part begin with its name, such as "encoder.".
const std::map<std::string, Spellings> towers = {
    {"encoder", {"encoder.", "model.encoder."}},
    {"decoder", {"", "decoder.", "model.decoder."}},
    {"vision",
     {"", "vision_model.", "vision_tower.", "vision_tower.vision_model.", "model.vision_tower.",
      "model.vision_tower.vision_model.", "model.vision_model."}},
    {"text", {"text_model."}},
    {"language", {"language_model.", "model.text_model.", "model.language_model.", "model.", ""}},
};

/// Parts of the whole model.
const std::map<std::string, Spellings> model_parts = {
    {"embedding",
     {"model.embed_tokens", "transformer.wte", "transformer.word_embeddings", "gpt_neox.embed_in",
      "model.decoder.embed_tokens", "rwkv.embeddings", "backbone.embeddings", "shared",
      "embed_tokens", "embeddings.token_embedding", "embeddings.word_embeddings",
      "embeddings.tok_embeddings", "model.embeddings.tok_embeddings",
      "bert.embeddings.word_embeddings", "token_embd"}},
    {"shared_embedding", {"embed_tokens"}},
    {"positions",
     {"transformer.wpe", "model.decoder.embed_positions", "embed_positions",
      "embeddings.position_embedding", "embeddings.position_embeddings",
      "bert.embeddings.position_embeddings", "position_embd"}},
    {"token_types",
     {"embeddings.token_type_embeddings", "bert.embeddings.token_type_embeddings", "token_types"}},
    {"embedding_norm",
     {"transformer.word_embeddings_layernorm", "embeddings.LayerNorm", "bert.embeddings.LayerNorm",
      "embeddings.norm", "model.embeddings.norm", "token_embd_norm"}},
    {"pooler", {"pooler.dense", "bert.pooler.dense"}},
    {"norm",
     {"model.norm", "model.final_norm", "final_norm", "model.final_layernorm",
      "model.embedding_norm", "transformer.ln_f", "gpt_neox.final_layer_norm",
      "model.decoder.final_layer_norm", "rwkv.ln_out", "backbone.norm_f", "final_layer_norm",
      "layer_norm", "post_layernorm", "norm", "output_norm"}},
    {"head", {"lm_head", "proj_out", "embed_out", "output", "head"}},
    {"rotary_factors", {"rope_freqs"}},
    {"projector.first", {"multi_modal_projector.linear_1"}},
    {"projector.second", {"multi_modal_projector.linear_2"}},
    {"projector.joint", {"connector.modality_projection.proj"}},
    {"convolution_1", {"conv1"}},
    {"convolution_2", {"conv2"}},
    {"patches", {"embeddings.patch_embedding"}},
    {"image_tokens", {"embeddings"}},
    {"first_norm", {"pre_layrnorm", "pre_layernorm"}},
    {"text_projection", {"text_projection"}},
    {"image_projection", {"visual_projection"}},
    {"pooling", {"head"}},
    {"pooling.attention", {"head.attention"}},
    {"pooling.attention.out", {"head.attention.out_proj"}},
    {"pooling.norm", {"head.layernorm"}},
    {"pooling.mlp.gate", {"head.mlp.gate_proj"}},
    {"pooling.mlp.up", {"head.mlp.fc1"}},
    {"pooling.mlp.down", {"head.mlp.fc2"}},
};

const Spellings layer_prefixes = {
    "model.layers.",   "transformer.h.",        "gpt_neox.layers.", "backbone.layers.",
    "encoder.layer.",  "bert.encoder.layer.",   "layers.",          "block.",
    "encoder.layers.", "model.decoder.layers.", "rwkv.blocks.",     "blk."};

/// Parts of a layer. '#' stands for the number of an expert. The order counts: what other families
/// call post_attention_layernorm stands before the MLP in some, behind attention in others.
const std::map<std::string, Spellings> layer_parts = {
    {"attention_norm",
     {"input_layernorm", "ln_1", "ln1", "ln_attn", "operator_norm", "self_attn_layer_norm",
      "layer_norm1", "layer.0.layer_norm", "norm", "attn_norm"}},
    {"attention_post_norm",
     {"post_self_attn_layernorm", "post_attention_layernorm", "post_attention_norm",
      "attention.output.LayerNorm"}},
    {"mlp_norm",
     {"pre_feedforward_layernorm", "ln_2", "ln2", "ln_mlp", "ffn_norm", "post_attention_layernorm",
      "mlp_norm", "layer_norm2", "final_layer_norm", "layer.2.layer_norm", "layer.1.layer_norm",
      "post_attention_norm", "attn_norm_2"}},
    {"mlp_post_norm",
     {"post_feedforward_layernorm", "post_mlp_layernorm", "post_ffw_norm", "output.LayerNorm"}},
    {"attention", {"self_attn"}},
    {"attention.q",
     {"self_attn.q_proj", "attn_q", "attention.self.query", "layer.0.SelfAttention.q"}},
    {"attention.k",
     {"self_attn.k_proj", "attn_k", "attention.self.key", "layer.0.SelfAttention.k"}},
    {"attention.v",
     {"self_attn.v_proj", "attn_v", "attention.self.value", "layer.0.SelfAttention.v"}},
    {"attention.qkv",
     {"self_attn.qkv_proj", "self_attention.query_key_value", "attention.query_key_value",
      "attn.c_attn", "attn.Wqkv", "attn_qkv"}},
    {"attention.out",
     {"self_attn.o_proj", "self_attn.out_proj", "self_attn.dense", "self_attention.dense",
      "attention.dense", "attn.c_proj", "attn.Wo", "attn_output", "attention.output.dense",
      "layer.0.SelfAttention.o"}},
    {"attention.relative_bias", {"layer.0.SelfAttention.relative_attention_bias"}},
    {"cross_norm", {"encoder_attn_layer_norm", "layer.1.layer_norm"}},
    {"cross.q", {"encoder_attn.q_proj", "layer.1.EncDecAttention.q"}},
    {"cross.k", {"encoder_attn.k_proj", "layer.1.EncDecAttention.k"}},
    {"cross.v", {"encoder_attn.v_proj", "layer.1.EncDecAttention.v"}},
    {"cross.out", {"encoder_attn.out_proj", "layer.1.EncDecAttention.o"}},
    {"attention.sinks", {"attn_sinks"}},
    {"attention.q_norm", {"self_attn.q_norm", "self_attn.q_layernorm", "attn_q_norm"}},
    {"attention.k_norm", {"self_attn.k_norm", "self_attn.k_layernorm", "attn_k_norm"}},
    {"mlp.gate",
     {"mlp.gate_proj", "feed_forward.gate_proj", "feed_forward.w1", "ffn_gate",
      "layer.1.DenseReluDense.wi_0", "layer.2.DenseReluDense.wi_0"}},
    {"mlp.up",
     {"mlp.up_proj", "feed_forward.up_proj", "feed_forward.w3", "mlp.fc1", "mlp.dense_h_to_4h",
      "mlp.c_fc", "ffn_up", "intermediate.dense", "fc1", "layer.1.DenseReluDense.wi",
      "layer.2.DenseReluDense.wi", "layer.1.DenseReluDense.wi_1", "layer.2.DenseReluDense.wi_1"}},
    {"mlp.gate_up", {"mlp.gate_up_proj", "mlp.Wi", "ffn_up"}},
    {"mlp.down",
     {"mlp.down_proj", "feed_forward.down_proj", "feed_forward.w2", "mlp.fc2", "mlp.dense_4h_to_h",
      "mlp.c_proj", "mlp.Wo", "ffn_down", "output.dense", "fc2", "layer.1.DenseReluDense.wo",
      "layer.2.DenseReluDense.wo"}},
    {"router",
     {"mlp.gate", "mlp.router", "feed_forward.router", "block_sparse_moe.gate", "ffn_gate_inp"}},
    {"experts", {"mlp.experts", "feed_forward.experts"}},
    {"experts.gate", {"mlp.experts.#.gate_proj", "block_sparse_moe.experts.#.w1", "ffn_gate_exps"}},
    {"experts.up", {"mlp.experts.#.up_proj", "block_sparse_moe.experts.#.w3", "ffn_up_exps"}},
    {"experts.down", {"mlp.experts.#.down_proj", "block_sparse_moe.experts.#.w2", "ffn_down_exps"}},
    {"shared.gate",
     {"mlp.shared_expert.gate_proj", "feed_forward.shared_expert.gate_proj", "ffn_gate_shexp"}},
    {"shared.up",
     {"mlp.shared_expert.up_proj", "feed_forward.shared_expert.up_proj", "ffn_up_shexp"}},
    {"shared.down",
     {"mlp.shared_expert.down_proj", "feed_forward.shared_expert.down_proj", "ffn_down_shexp"}},
    {"shared_gate", {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"}},
    {"convolution.in", {"conv.in_proj"}},
    {"convolution.filter", {"conv.conv"}},
    {"convolution.out", {"conv.out_proj"}},
    {"mixer.norm", {"mixer.norm", "ssm_norm"}},
    {"mixer.in", {"mixer.in_proj", "ssm_in"}},
    {"mixer.filter", {"mixer.conv1d", "ssm_conv1d"}},
    {"mixer.parameters", {"mixer.x_proj", "ssm_x"}},
    {"mixer.step", {"mixer.dt_proj", "ssm_dt"}},
    {"mixer.out", {"mixer.out_proj", "ssm_out"}},
    {"first_norm", {"pre_ln"}},
    {"time_mix", {"attention"}},
    {"time_mix.key", {"attention.key", "time_mix_key"}},
    {"time_mix.value", {"attention.value", "time_mix_value"}},
    {"time_mix.gate", {"attention.receptance"}},
    {"time_mix.receptance", {"time_mix_receptance"}},
    {"time_mix.out", {"attention.output", "time_mix_output"}},
    {"time_mix.out_gate", {"time_mix_gate"}},
    {"time_mix.out_norm", {"time_mix_ln"}},
    {"time_mix.first", {"time_mix_first"}},
    {"time_mix.decay", {"time_mix_decay", "time_mix_w0"}},
    {"time_mix.decay_1", {"time_mix_decay_w1", "time_mix_w1"}},
    {"time_mix.decay_2", {"time_mix_decay_w2", "time_mix_w2"}},
    {"time_mix.share", {"time_mix_lerp_fused"}},
    {"time_mix.share_x", {"time_mix_lerp_x"}},
    {"time_mix.share_w", {"time_mix_lerp_w"}},
    {"time_mix.share_k", {"time_mix_lerp_k"}},
    {"time_mix.share_v", {"time_mix_lerp_v"}},
    {"time_mix.share_r", {"time_mix_lerp_r"}},
    {"time_mix.share_g", {"time_mix_lerp_g"}},
    {"time_mix.share_1", {"time_mix_w1"}},
    {"time_mix.share_2", {"time_mix_w2"}},
    {"time_mix.rate", {"time_mix_a0"}},
    {"time_mix.rate_1", {"time_mix_a1"}},
    {"time_mix.rate_2", {"time_mix_a2"}},
    {"time_mix.first_value", {"time_mix_v0"}},
    {"time_mix.first_value_1", {"time_mix_v1"}},
    {"time_mix.first_value_2", {"time_mix_v2"}},
    {"time_mix.out_gate_1", {"time_mix_g1"}},
    {"time_mix.out_gate_2", {"time_mix_g2"}},
    {"time_mix.removed_key", {"time_mix_k_k"}},
    {"time_mix.added_key", {"time_mix_k_a"}},
    {"time_mix.own", {"time_mix_r_k"}},
    {"channel_mix", {"feed_forward"}},
    {"channel_mix.key", {"feed_forward.key", "channel_mix_key"}},
    {"channel_mix.value", {"feed_forward.value", "channel_mix_value"}},
    {"channel_mix.gate", {"feed_forward.receptance", "channel_mix_receptance"}},
    {"channel_mix.key_share", {"channel_mix_lerp_k"}},
    {"channel_mix.gate_share", {"channel_mix_lerp_r"}},
};

const Spellings& find(const std::map<std::string, Spellings>& table, const std::string& part,
                      const std::string& name) {
  const auto at = table.find(part);
  if (at == table.end()) throw ExportError("no file has a name for the weight " + name);
  return at->second;
}

/// "decoder.layers.3.experts.up.5.weight": the number behind the part is that of the expert.
struct Parts {
  std::string tower, layer, part, expert, suffix;
};
Parts parts_of(const std::string& name) {
  Parts p;
  std::string rest = name;
  if (const std::string first = name.substr(0, name.find('.')); towers.contains(first))
    p.tower = first, rest = name.substr(first.size() + 1);
  if (rest.starts_with("layers.")) {
    const size_t end = rest.find('.', 7);
    p.layer = rest.substr(7, end - 7), rest = rest.substr(end + 1);
  }
  const size_t dot = std::min(rest.rfind('.'), rest.size());
  p.suffix = rest.substr(dot), rest = rest.substr(0, dot);
  const size_t number = rest.rfind('.');
  if (number != std::string::npos &&
      rest.find_first_not_of("0123456789", number + 1) == std::string::npos)
    p.expert = rest.substr(number + 1), rest = rest.substr(0, number);
  p.part = rest;
  return p;
}

}  // namespace

std::vector<std::string> spellings(const std::string& name) {
  static const Spellings none = {""};
  const Parts p = parts_of(name);
  if (p.suffix.empty()) return {p.part};  // a number that belongs to no part
  // A_log and D of a mixer have no suffix
  if (p.part == "mixer") return {"backbone.layers." + p.layer + ".mixer" + p.suffix};
  Spellings parts = find(p.layer.empty() ? model_parts : layer_parts, p.part, name);
  for (std::string& part : parts)
    if (const size_t at = part.find('#'); at != std::string::npos) part.replace(at, 1, p.expert);
  std::vector<std::string> all;
  for (const std::string& tower : p.tower.empty() ? none : towers.at(p.tower))
    for (const std::string& part : parts)
      for (const std::string& prefix : p.layer.empty() ? none : layer_prefixes)
        all.push_back(tower + (p.layer.empty() ? "" : prefix + p.layer + ".") + part + p.suffix);
  return all;
}

}  // namespace taper::llm
