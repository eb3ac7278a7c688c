// LoRA adapters: small matrices that a training put beside those of a model. E. Hu and others,
// "LoRA: Low-Rank Adaptation of Large Language Models", arXiv:2106.09685. Two kinds of files:
//
//   a folder of PEFT   adapter_config.json (r, lora_alpha, use_rslora) and
//   adapter_model.safetensors
//                      base_model.model.NAME.lora_A.weight (r, in), ….lora_B.weight (out, r)
//   a .gguf file       general.type "adapter", adapter.type "lora", adapter.lora.alpha
//                      NAME.weight.lora_a (r, in), NAME.weight.lora_b (out, r)
//
// NAME.weight is the name of the matrix in the model's file.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "taper/exporter/eager/eager.h"

namespace taper::llm {

/// What an adapter adds to x weightᵀ: (x downᵀ) upᵀ. Both undefined: nothing.
struct LowRank {
  eager::Tensor down;  ///< (r, in), f32
  eager::Tensor up;    ///< (out, r), f32, times the adapter's scale
  /// i64 (batch), if each row of x chooses an adapter: `down` is (adapters, r, in) and `up`
  /// (adapters, out, r) then. nullptr: there is one adapter.
  std::shared_ptr<const eager::Tensor> chosen;
  double scale = 1;  ///< of what is added; while an adapter is trained it is not a part of `up`
};

class Adapter {
 public:
  /// Throws io::FileError, or ExportError for what is not supported: DoRA, biases, and weights that
  /// are trained whole.
  explicit Adapter(const std::filesystem::path& path);

  /// Throws ExportError if it is of the other kind of files.
  void require_kind(bool is_gguf) const;
  /// What belongs to the matrix of this name in the model's file. Throws ExportError if it does not
  /// fit (out, in).
  LowRank of(const std::string& name, int64_t out, int64_t in);
  /// The first matrix of the adapter that nobody asked for; "": there is none.
  std::string unused() const;
  /// Throws ExportError if there is an unused matrix.
  void require_all_used() const;

 private:
  struct Pair {
    eager::Tensor down, up;
  };
  void read_folder();
  void read_gguf();
  void add(const std::string& name, const std::string& matrix, bool is_up,
           const eager::Tensor& value);
  void scale(double alpha, bool by_root);

  const std::filesystem::path path_;
  bool is_gguf_ = false;
  std::map<std::string, Pair> pairs_;  ///< by the names of matrices
  std::set<std::string> used_;
};

}  // namespace taper::llm
