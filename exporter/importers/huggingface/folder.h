// A model's folder as Hugging Face's save_pretrained writes it: config.json,
// generation_config.json, and model.safetensors or its shards. Tensors are mapped, not read.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "taper/exporter/io/safetensors_index.h"
#include "taper/exporter/io/source_file.h"

namespace taper::huggingface {

/// A tensor and the mapping that holds it.
struct Tensor : io::MappedTensor {
  std::shared_ptr<const void> owner;
  const std::byte* readable_end = nullptr;  ///< the bytes up to here may be read
};

/// Whether this is a folder with a config.json.
bool is_model_folder(const std::filesystem::path& path);

/// What the folder's config.json calls `model_type`; "" if there is none.
std::string model_type(const std::filesystem::path& path);

class Folder {
 public:
  /// Maps the weights and checks them completely: every shard that the index names, and that each
  /// tensor lies in the shard where the index says. `config`: another file than config.json.
  /// Throws io::FileError.
  explicit Folder(const std::filesystem::path& path, const std::string& config = "config.json");

  const std::filesystem::path& path() const { return path_; }
  const nlohmann::json& config() const { return config_; }
  /// An empty object if there is no generation_config.json.
  const nlohmann::json& generation_config() const { return generation_config_; }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  /// The files of the weights.
  const std::vector<io::SourceFile>& files() const { return files_; }

 private:
  void map(const std::filesystem::path& file);
  void map_shards(const nlohmann::json& index);

  std::filesystem::path path_;
  nlohmann::json config_, generation_config_;
  std::map<std::string, Tensor> tensors_;
  std::vector<io::SourceFile> files_;
  std::map<std::string, std::string> shard_of_;
};

/// Reads a JSON object. Throws io::FileError for other text, and for values that are nested deeper
/// than configurations are.
nlohmann::json read_json_object(const std::filesystem::path& file);

}  // namespace taper::huggingface
