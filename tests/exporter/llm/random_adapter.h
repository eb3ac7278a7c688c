// LoRA adapters of random numbers, and models that they are merged into.
#pragma once
#include <string>

#include "taper/tests/exporter/llm/formula_model.h"

namespace taper::tests {

struct RandomAdapter {
  std::string name;
  int64_t rank = 2;
  double alpha = 3;
  std::string of = "_proj.weight";  ///< ends of the names of the matrices that it changes
};

/// (out, rank) or (rank, in)
inline io::Array matrix_of(const RandomAdapter& a, const std::string& part, int64_t rows,
                           int64_t columns) {
  return values_of({a.name + part, {rows, columns}, {0}, 0.4}, 5);
}

/// Writes a folder as PEFT would, beside the model; returns it.
inline std::string peft_folder(const std::filesystem::path& model, const RandomAdapter& a) {
  const std::filesystem::path folder = model / ("adapter_" + a.name);
  std::filesystem::create_directories(folder);
  io::SafeTensors file;
  for (const auto& [name, array] : io::read_safetensors(model / "model.safetensors").tensors) {
    if (!name.ends_with(a.of) || array.sizes.size() != 2) continue;
    const std::string module = "base_model.model." + name.substr(0, name.size() - 7);
    file.tensors[module + ".lora_A.weight"] = matrix_of(a, name + "A", a.rank, array.sizes[1]);
    file.tensors[module + ".lora_B.weight"] = matrix_of(a, name + "B", array.sizes[0], a.rank);
  }
  io::write_safetensors(folder / "adapter_model.safetensors", file);
  const nlohmann::json config = {
      {"peft_type", "LORA"}, {"r", a.rank}, {"lora_alpha", a.alpha}, {"bias", "none"}};
  std::ofstream(folder / "adapter_config.json") << config;
  return folder.string();
}

/// A copy of the model whose weights have the adapter's change: weight + alpha / rank B A.
inline std::string merged_model(const std::filesystem::path& model, const RandomAdapter& a) {
  const std::filesystem::path folder = model / ("merged_" + a.name);
  std::filesystem::create_directories(folder);
  for (const char* file : {"config.json", "tokenizer.json"})
    if (std::filesystem::exists(model / file))
      std::filesystem::copy_file(model / file, folder / file,
                                 std::filesystem::copy_options::overwrite_existing);
  io::SafeTensors weights = io::read_safetensors(model / "model.safetensors");
  for (auto& [name, array] : weights.tensors) {
    if (!name.ends_with(a.of) || array.sizes.size() != 2) continue;
    const int64_t rows = array.sizes[0], columns = array.sizes[1];
    io::Array down = matrix_of(a, name + "A", a.rank, columns),
              up = matrix_of(a, name + "B", rows, a.rank);
    const auto at = [](io::Array& m, int64_t i, int64_t j) -> float& {
      return m.values<float>()[static_cast<size_t>(i * m.sizes[1] + j)];
    };
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (int64_t r = 0; r < a.rank; ++r)
          sum += static_cast<double>(at(up, i, r)) * static_cast<double>(at(down, r, j));
        at(array, i, j) += static_cast<float>(a.alpha / static_cast<double>(a.rank) * sum);
      }
  }
  io::write_safetensors(folder / "model.safetensors", weights);
  return folder.string();
}

}  // namespace taper::tests
