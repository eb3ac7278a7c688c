// What a language model is made of, whatever file says so: sizes, norms, rotary embedding, windows,
// experts. Made of a Hugging Face config.json or of the metadata of a GGUF file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

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

  // ---- experts ----
  int64_t experts = 0, experts_per_token = 0, expert_mlp = 0;
  bool normalizes_experts = false;  ///< the weights of a token's experts add up to 1
  std::vector<bool> sparse;         ///< by layer: experts instead of one MLP

  // ---- of single families ----
  bool parallel = false;             ///< attention and MLP read the same input
  bool qk_norm = false;              ///< queries and keys are normalised
  bool two_norms = false;            ///< a parallel block has a norm for each part (Falcon)
  bool residual_after_norm = false;  ///< the residual is the normalised input (Bloom)
  bool scales_by_layer = false;      ///< scores are divided by the layer's number (GPT-2)
  std::vector<bool> convolutional;   ///< by layer: a short convolution instead of attention (LFM2)
  int64_t token_types = 0;           ///< kinds of tokens with an embedding each (BERT)
  int64_t kernel = 0;                ///< of convolutions
  int64_t inner = 0, state = 0, step_rank = 0;  ///< of state-space blocks (Mamba)

  // ---- of models that read a source ----
  int64_t source_capacity = 0;   ///< positions of the caches of cross attention
  int64_t distance_buckets = 0;  ///< of relative positions (T5)
  int64_t bucket_distance = 0;   ///< farther ones share the last bucket

  // ---- of models with images ----
  int64_t projection = 0;    ///< features of an embedding (SigLIP's texts)
  int64_t image_token = -1;  ///< whose places features of images take

  // ---- what the caller asks for ----
  int64_t batch = 1;     ///< rows of the caches
  int64_t capacity = 0;  ///< positions of the caches

  bool is_windowed(int64_t layer) const {
    return window > 0 && windowed[static_cast<size_t>(layer)];
  }
  const Rotary& rotary_of(int64_t layer) const {
    return is_windowed(layer) && !local_rotary.frequencies.empty() ? local_rotary : rotary;
  }
};

}  // namespace taper::llm
