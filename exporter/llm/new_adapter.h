// A LoRA adapter that is trained. The weights of the model stay as they are, in blocks of a few
// bits too:
//
//   const auto adapter = std::make_shared<llm::NewAdapter>(llm::NewAdapterOptions{.rank = 16});
//   const llm::Model model = llm::load("SmolLM2-135M.Q4_1.gguf", {.trained = adapter});
//   optim::AdamW optimizer(adapter->parameters(), {.lr = 2e-4});
//   …                                        // text_loss.h
//   adapter->write("pirate.gguf");           // taper chat MODEL --lora pirate.gguf
#pragma once
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "taper/exporter/io/asset.h"
#include "taper/exporter/llm/adapter.h"

namespace taper::llm {

struct NewAdapterOptions {
  int64_t rank = 8;
  double alpha = 16;  ///< what the adapter adds is multiplied by alpha / rank
  /// Parts of layers whose products are changed, as Taper or the model's file calls them: "q",
  /// "q_proj", "attn_q". Empty: all products with a matrix in layers, experts left out.
  std::vector<std::string> targets;
  uint64_t seed = 0;  ///< of the first values
};

class NewAdapter {
 public:
  /// Throws ExportError for a rank below 1 or an alpha that is not finite.
  explicit NewAdapter(NewAdapterOptions options = {});

  /// What belongs to a matrix (out, in): the model's loader asks. `name` is Taper's
  /// ("layers.0.attention.q.weight"), `in_file` that of the file. As in PEFT, `down` begins as
  /// Kaiming's uniform numbers for a = √5, and `up` as zeros: the model begins as it was.
  LowRank of(const std::string& name, const std::string& in_file, int64_t out, int64_t in);
  /// Throws ExportError if a target names no part, and lists the parts that there are.
  void require_all_used() const;

  /// All that is trained, two tensors for each matrix. Their names, and so those of a program's
  /// states, are NAME.lora_A.weight and NAME.lora_B.weight, where NAME.weight is the matrix in the
  /// model's file.
  std::vector<eager::Tensor> parameters() const;
  const NewAdapterOptions& options() const { return options_; }
  /// `general.architecture` of a .gguf model: its adapters say the same.
  void set_architecture(std::string name) { architecture_ = std::move(name); }
  const std::string& architecture() const { return architecture_; }

  /// For a program that trains the adapter: with this asset, `write_trained_adapter`
  /// (runtime/extension/llm/adapter_file.h) writes what a device trained.
  io::Asset asset() const;

  /// Writes a folder of PEFT; or, if the path ends with .gguf, a file of llama.cpp. A model in a
  /// folder needs the one, a .gguf model the other. Throws io::FileError.
  void write(const std::filesystem::path& path) const;

 private:
  struct Pair {
    std::string name;  ///< of the module in the file
    eager::Tensor down, up;
  };
  NewAdapterOptions options_;
  std::string architecture_;
  std::vector<Pair> pairs_;
  std::set<std::string> parts_, used_;
};

}  // namespace taper::llm
