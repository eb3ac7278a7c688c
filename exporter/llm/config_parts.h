// Parts of the config.json of decoders and encoders.
#pragma once
#include "taper/exporter/llm/config.h"
#include "taper/exporter/llm/config_keys.h"

namespace taper::llm {

/// The vocabulary, the features, the layers and the heads.
void read_sizes(const Keys& keys, Config& config);

/// Of a rotary embedding: `rope` is `rope_parameters`, or a part of it; `keys` are those of the
/// file. The sizes must have been read.
RotaryScaling read_rotary_scaling(const nlohmann::json& rope, const Keys& keys,
                                  const Config& config);
/// The rotary embeddings of a decoder, in either spelling.
void read_rotary(const Keys& keys, Config& config);

/// What layers differ in: windows, positions, convolutions, experts.
void read_layers(const Keys& keys, Config& config);

}  // namespace taper::llm
