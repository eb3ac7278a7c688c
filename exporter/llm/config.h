// What a language model is made of, whatever file says so: sizes, norms, rotary embedding, windows,
// experts. Made of a Hugging Face config.json or of the metadata of a GGUF file.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "taper/exporter/llm/cache_type.h"
#include "taper/exporter/llm/rotary_config.h"

namespace taper::llm {

struct Config {
  std::string family;  ///< "llama", "gemma2": the name in config.json, or GGUF's architecture
  bool is_gguf = false;

  int64_t vocabulary = 0, hidden = 0, layers = 0, mlp = 0;
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  int64_t context = 0;  ///< positions that the model was trained for
  double norm_eps = 1e-5;
  std::string activation;  ///< "silu", "gelu", "gelu_tanh", "relu", "quick_gelu"
  bool tied = false;       ///< the head is the embedding

  // ---- scales ----
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1;
  double logit_softcap = 0, attention_softcap = 0;  ///< 0: none
  double attention_scale = 0;                       ///< of scores

  // ---- positions ----
  Rotary rotary;        ///< of layers that see everything, and of all if there is no other one
  Rotary local_rotary;  ///< of windowed layers; without frequencies: as the others
  int64_t window = 0;   ///< positions that a windowed layer sees
  std::vector<bool> windowed;  ///< by layer
  bool window_jumps = false;   ///< a windowed layer sees the multiple of `window` before, and later
  std::vector<bool> turned;    ///< by layer: with the rotary embedding; empty: all
  int64_t position_offset = 0;  ///< rows in front of the table of learned positions
  /// Layers that are not turned scale a query at position p by
  /// 1 + scale log(1 + floor((p + 1) / floor)); scale 0: they do not.
  double temperature_scale = 0, temperature_floor = 1;

  // ---- experts ----
  int64_t experts = 0, experts_per_token = 0, expert_mlp = 0;
  bool normalizes_experts = false;   ///< the weights of a token's experts add up to 1
  bool scales_expert_input = false;  ///< a token goes in times the sigmoid of its score (Llama 4)
  int64_t shared_mlp = 0;            ///< of the expert of all tokens; 0: there is none
  double gate_limit = 0, gate_slope = 1;  ///< of gpt-oss: see Experts; limit 0: as elsewhere
  std::vector<bool> sparse;               ///< by layer: experts instead of one MLP

  // ---- of single families ----
  bool parallel = false;             ///< attention and MLP read the same input
  bool qk_norm = false;              ///< queries and keys are normalised
  bool qkv_by_group = false;         ///< of a joint projection: see Projections (GPT-BigCode)
  bool two_norms = false;            ///< a parallel block has a norm for each part (Falcon)
  bool residual_after_norm = false;  ///< the residual is the normalised input (Bloom)
  bool scales_by_layer = false;      ///< scores are divided by the layer's number (GPT-2)
  bool unit_heads = false;           ///< turned queries and keys have a mean square of 1 (Llama 4)
  std::vector<bool> convolutional;   ///< by layer: a short convolution instead of attention (LFM2)
  int64_t token_types = 0;           ///< kinds of tokens with an embedding each (BERT)
  int64_t kernel = 0;                ///< of convolutions
  int64_t inner = 0, state = 0, step_rank = 0;  ///< of state-space blocks (Mamba, RWKV)
  int64_t groups = 0;                           ///< of heads that share B and C (Mamba 2)
  double least_step = 0, most_step = 0;         ///< bounds of time steps (Mamba 2)

  // ---- of RWKV 6 and 7 ----
  /// Features between the two small products that compute how much of the token before goes in, how
  /// far a state decays, how much of it is replaced, how much of the first layer's values goes in,
  /// and the gate of the result.
  int64_t mix_rank = 0, decay_rank = 0, rate_rank = 0, value_rank = 0, gate_rank = 0;
  int64_t halved_every = 0;  ///< layers after which the states are divided by 2; 0: none

  // ---- of models that read a source ----
  int64_t source_capacity = 0;              ///< positions of the caches of cross attention
  CacheType source_cache = CacheType::f32;  ///< what cross attention keeps
  int64_t distance_buckets = 0;             ///< of relative positions (T5)
  int64_t bucket_distance = 0;              ///< farther ones share the last bucket

  // ---- of models with images ----
  int64_t projection = 0;    ///< features of an embedding
  bool causal = false;       ///< tokens of a text see no later ones (CLIP)
  int64_t end_token = -1;    ///< whose state is the embedding of a text; -1: that of the last token
  int64_t image_token = -1;  ///< whose places features of images take

  // ---- what the caller asks for ----
  int64_t batch = 1;                  ///< rows of the caches
  std::vector<std::string> adapters;  ///< the names of those among which texts choose
  int64_t capacity = 0;               ///< positions of the caches
  CacheType cache = CacheType::f32;   ///< what self attention keeps

  /// Whether this is one of the families.
  bool is(std::initializer_list<const char*> families) const {
    return std::ranges::any_of(families, [&](const char* f) { return family == f; });
  }
  bool is_windowed(int64_t layer) const {
    return window > 0 && windowed[static_cast<size_t>(layer)];
  }
  bool is_turned(int64_t layer) const {
    return turned.empty() || turned[static_cast<size_t>(layer)];
  }
};

}  // namespace taper::llm
