// Writes LoRA adapters, on a device that trained one too.
//
//   a folder of PEFT   adapter_config.json and adapter_model.safetensors:
//                      base_model.model.NAME.lora_A.weight (rank, in), ….lora_B.weight (out, rank)
//   a .gguf file       as llama.cpp reads it: NAME.weight.lora_a, NAME.weight.lora_b
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "taper/runtime/extension/module/module.h"

namespace taper::llm {

/// The two small matrices beside one of the model.
struct AdapterMatrix {
  std::string name;  ///< of the module in the model's file: "model.layers.0.self_attn.q_proj"
  int64_t rank = 0, in = 0, out = 0;
  const float* down = nullptr;  ///< (rank, in)
  const float* up = nullptr;    ///< (out, rank), without the scale alpha / rank
};

struct AdapterFile {
  double alpha = 0;
  std::string architecture;  ///< general.architecture of a .gguf model; empty: one in a folder
  std::vector<AdapterMatrix> matrices;  ///< all of one rank
};

/// Writes a .gguf file if the path ends so, else a folder, which is made if it is not there.
/// Returns why it could not, or "". A file is written completely or not at all. Refused are the
/// other kind of files than the model's, matrices of several ranks, and numbers that are not
/// finite.
std::string write_adapter(const std::string& path, const AdapterFile& adapter);

/// Begins to write an adapter and ends at once, so that a training does not run in vain. Returns
/// why `write_adapter` would fail, or "". `of_gguf`: the model is a .gguf file.
std::string why_adapter_not_writable(const std::string& path, bool of_gguf);

/// The asset of a program that trains an adapter, a text: "16 llama", which are `alpha` and
/// `architecture`. A model in a folder has no architecture.
inline constexpr const char* trained_adapter_asset = "lora_adapter.txt";
std::string trained_adapter_text(const AdapterFile& adapter);

/// Writes the adapter that a program trains: its states NAME.lora_A.weight and NAME.lora_B.weight,
/// as they are in this module. Returns as `write_adapter`.
std::string write_trained_adapter(const std::string& path, Module& module);
/// `why_adapter_not_writable` for the adapter that a program trains.
std::string why_adapter_not_writable(const std::string& path, const Module& module);

}  // namespace taper::llm
