#include "taper/exporter/llm/names.h"

#include <map>

#include "taper/exporter/base/error.h"

namespace taper::llm {
namespace {

using Spellings = std::vector<std::string>;

/// Parts of the whole model.
const std::map<std::string, Spellings> model_parts = {
    {"embedding",
     {"model.embed_tokens", "transformer.wte", "transformer.word_embeddings", "gpt_neox.embed_in",
      "backbone.embeddings", "embeddings.word_embeddings", "bert.embeddings.word_embeddings",
      "token_embd"}},
    {"positions",
     {"transformer.wpe", "embeddings.position_embeddings", "bert.embeddings.position_embeddings",
      "position_embd"}},
    {"token_types",
     {"embeddings.token_type_embeddings", "bert.embeddings.token_type_embeddings", "token_types"}},
    {"embedding_norm",
     {"transformer.word_embeddings_layernorm", "embeddings.LayerNorm", "bert.embeddings.LayerNorm",
      "token_embd_norm"}},
    {"pooler", {"pooler.dense", "bert.pooler.dense"}},
    {"norm",
     {"model.norm", "model.final_layernorm", "model.embedding_norm", "transformer.ln_f",
      "gpt_neox.final_layer_norm", "backbone.norm_f", "output_norm"}},
    {"head", {"lm_head", "embed_out", "output"}},
    {"rotary_factors", {"rope_freqs"}},
};

const Spellings layer_prefixes = {"model.layers.",
                                  "transformer.h.",
                                  "gpt_neox.layers.",
                                  "backbone.layers.",
                                  "encoder.layer.",
                                  "bert.encoder.layer.",
                                  "blk."};

/// Parts of a layer. '#' stands for the number of an expert. The order counts: what other families
/// call post_attention_layernorm stands before the MLP in some, behind attention in others.
const std::map<std::string, Spellings> layer_parts = {
    {"attention_norm",
     {"input_layernorm", "ln_1", "ln_attn", "operator_norm", "norm", "attn_norm"}},
    {"attention_post_norm",
     {"post_attention_layernorm", "post_attention_norm", "attention.output.LayerNorm"}},
    {"mlp_norm",
     {"pre_feedforward_layernorm", "ln_2", "ln_mlp", "ffn_norm", "post_attention_layernorm"}},
    {"mlp_post_norm", {"post_feedforward_layernorm", "post_ffw_norm", "output.LayerNorm"}},
    {"attention.q", {"self_attn.q_proj", "attn_q", "attention.self.query"}},
    {"attention.k", {"self_attn.k_proj", "attn_k", "attention.self.key"}},
    {"attention.v", {"self_attn.v_proj", "attn_v", "attention.self.value"}},
    {"attention.qkv",
     {"self_attn.qkv_proj", "self_attention.query_key_value", "attention.query_key_value",
      "attn.c_attn", "attn_qkv"}},
    {"attention.out",
     {"self_attn.o_proj", "self_attn.out_proj", "self_attn.dense", "self_attention.dense",
      "attention.dense", "attn.c_proj", "attn_output", "attention.output.dense"}},
    {"attention.q_norm", {"self_attn.q_norm", "self_attn.q_layernorm", "attn_q_norm"}},
    {"attention.k_norm", {"self_attn.k_norm", "self_attn.k_layernorm", "attn_k_norm"}},
    {"mlp.gate", {"mlp.gate_proj", "feed_forward.w1", "ffn_gate"}},
    {"mlp.up",
     {"mlp.up_proj", "feed_forward.w3", "mlp.fc1", "mlp.dense_h_to_4h", "mlp.c_fc", "ffn_up",
      "intermediate.dense"}},
    {"mlp.gate_up", {"mlp.gate_up_proj", "ffn_up"}},
    {"mlp.down",
     {"mlp.down_proj", "feed_forward.w2", "mlp.fc2", "mlp.dense_4h_to_h", "mlp.c_proj", "ffn_down",
      "output.dense"}},
    {"router", {"mlp.gate", "block_sparse_moe.gate", "ffn_gate_inp"}},
    {"experts.gate", {"mlp.experts.#.gate_proj", "block_sparse_moe.experts.#.w1"}},
    {"experts.up", {"mlp.experts.#.up_proj", "block_sparse_moe.experts.#.w3"}},
    {"experts.down", {"mlp.experts.#.down_proj", "block_sparse_moe.experts.#.w2"}},
    {"convolution.in", {"conv.in_proj"}},
    {"convolution.filter", {"conv.conv"}},
    {"convolution.out", {"conv.out_proj"}},
    {"mixer.in", {"mixer.in_proj", "ssm_in"}},
    {"mixer.filter", {"mixer.conv1d", "ssm_conv1d"}},
    {"mixer.parameters", {"mixer.x_proj", "ssm_x"}},
    {"mixer.step", {"mixer.dt_proj", "ssm_dt"}},
    {"mixer.out", {"mixer.out_proj", "ssm_out"}},
};

const Spellings& find(const std::map<std::string, Spellings>& table, const std::string& part,
                      const std::string& name) {
  const auto at = table.find(part);
  if (at == table.end()) throw ExportError("no file has a name for the weight " + name);
  return at->second;
}

/// "layers.3.experts.up.5.weight": the number behind the part is that of the expert.
struct Parts {
  std::string layer, part, expert, suffix;
};
Parts parts_of(const std::string& name) {
  Parts p;
  std::string rest = name;
  if (rest.starts_with("layers.")) {
    const size_t end = rest.find('.', 7);
    p.layer = rest.substr(7, end - 7), rest = rest.substr(end + 1);
  }
  const size_t dot = rest.rfind('.');
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
  const Parts p = parts_of(name);
  std::vector<std::string> all;
  if (p.layer.empty()) {
    for (const std::string& part : find(model_parts, p.part, name)) all.push_back(part + p.suffix);
    return all;
  }
  // A_log and D of a mixer have no suffix
  if (p.part == "mixer") return {"backbone.layers." + p.layer + ".mixer" + p.suffix};
  for (std::string part : find(layer_parts, p.part, name)) {
    if (const size_t at = part.find('#'); at != std::string::npos) part.replace(at, 1, p.expert);
    for (const std::string& prefix : layer_prefixes)
      all.push_back(prefix + p.layer + "." + part + p.suffix);
  }
  return all;
}

}  // namespace taper::llm
