// Small models whose weights follow from a formula, so that the repository holds only their names
// and sizes: tests/data/hf_families/record.py tells the formula.
#pragma once
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "taper/exporter/io/safetensors.h"
#include "taper/tests/support/data.h"

namespace taper::tests {

inline uint64_t fnv1a64(const std::string& text) {
  uint64_t h = 0xCBF29CE484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return h;
}

inline uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

struct FormulaWeight {
  std::string name;
  std::vector<int64_t> sizes;
  double center = 0, scale = 0;
};

inline io::Array values_of(const FormulaWeight& w, uint64_t seed) {
  io::Array array = io::Array::zeros(DType::f32, w.sizes);
  uint64_t place = fnv1a64(std::to_string(seed) + "/" + w.name);
  for (float& x : array.values<float>()) {
    place += 0x9E3779B97F4A7C15u;
    x = static_cast<float>(w.center +
                           w.scale * (static_cast<double>(mixed(place) >> 40) / (1 << 23) - 1));
  }
  return array;
}

/// Writes the model of a family as save_pretrained would; returns its folder.
inline std::filesystem::path formula_model(const std::string& family) {
  const std::filesystem::path recorded = test_data("hf_families") / family;
  const std::filesystem::path folder = scratch_file("config.json").parent_path();
  std::filesystem::copy_file(recorded / "config.json", folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  const auto told = nlohmann::json::parse(std::ifstream(recorded / "weights.json"));
  io::SafeTensors file;
  for (const auto& w : told["weights"]) {
    const FormulaWeight weight{w[0], w[1], w[2], w[3]};
    file.tensors[weight.name] = values_of(weight, told["seed"].get<uint64_t>());
  }
  io::write_safetensors(folder / "model.safetensors", file);
  return folder;
}

inline io::SafeTensors formula_golden(const std::string& family) {
  return io::read_safetensors(test_data("hf_families") / family / "golden.safetensors");
}

}  // namespace taper::tests
