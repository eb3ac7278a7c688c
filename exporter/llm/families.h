// The families of language models, one file each in families/. A family is its names in files, the
// kind of its norms, and a function that makes a layer.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "taper/exporter/llm/config.h"

namespace taper::llm {

class DecoderLayer;
class Weights;

struct Family {
  std::vector<std::string> names;  ///< `model_type` in config.json
  enum class FinalNorm : uint8_t { rms, rms_plus_one, layer } norm;
  /// `weights` are those of the layer.
  std::unique_ptr<DecoderLayer> (*make_layer)(const Config& config, const Weights& weights,
                                              int64_t layer);
};

extern const Family llama, gemma, olmo, cohere, phi, falcon, neox, bloom, glm, gpt2, stablelm, lfm2,
    mamba, mamba2, rwkv, rwkv6, rwkv7;

/// Of models that read a source. Only `load_seq2seq` makes them.
extern const Family t5_decoder, whisper_decoder;

/// Throws ExportError, which lists the families that there are.
const Family& family_named(const std::string& name);

/// For `Family::make_layer`.
template <class Layer>
std::unique_ptr<DecoderLayer> make(const Config& config, const Weights& weights, int64_t layer) {
  return std::make_unique<Layer>(config, weights, layer);
}

}  // namespace taper::llm
