// Small models whose weights follow from a formula, so that the repository holds only their names
// and sizes: tests/data/hf_families/record.py and record_quantized.py tell the formula.
#pragma once
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "taper/exporter/io/safetensors.h"
#include "taper/kernels/float8.h"
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
  std::vector<double> centers;  ///< one for all elements, or one for each
  double scale = 0;
  std::string dtype = "f32";
};

/// Element i, from the random bits of its place.
template <class T>
T element_of(const FormulaWeight& w, size_t i, uint64_t bits) {
  const double center = w.centers[w.centers.size() == 1 ? 0 : i];
  if (std::is_same_v<T, int32_t> && w.scale != 0) return static_cast<T>(bits >> 32);
  if (std::is_same_v<T, int32_t>) return static_cast<T>(static_cast<int64_t>(center));
  return static_cast<T>(
      static_cast<float>(center + w.scale * (static_cast<double>(bits >> 40) / (1 << 23) - 1)));
}

template <class T>
io::Array values_of(const FormulaWeight& w, uint64_t seed, DType dtype) {
  io::Array array = io::Array::zeros(dtype, w.sizes);
  uint64_t place = fnv1a64(std::to_string(seed) + "/" + w.name);
  for (size_t i = 0; i < static_cast<size_t>(array.numel()); ++i) {
    const T x = element_of<T>(w, i, mixed(place += 0x9E3779B97F4A7C15u));
    std::memcpy(array.raw().data() + i * sizeof x, &x, sizeof x);
  }
  return array;
}

inline io::Array values_of(const FormulaWeight& w, uint64_t seed) {
  if (w.dtype == "f16") return values_of<Half>(w, seed, DType::f16);
  if (w.dtype == "bf16") return values_of<BFloat16>(w, seed, DType::bf16);
  if (w.dtype == "f8") return values_of<Float8E4M3>(w, seed, DType::f8_e4m3fn);
  if (w.dtype == "u8") return values_of<uint8_t>(w, seed, DType::u8);
  if (w.dtype == "i8") return values_of<int8_t>(w, seed, DType::i8);
  if (w.dtype == "i32") return values_of<int32_t>(w, seed, DType::i32);
  return values_of<float>(w, seed, DType::f32);
}

inline FormulaWeight formula_weight(const nlohmann::json& told) {
  FormulaWeight w{told[0], told[1], {}, told[3]};
  w.centers = told[2].is_array() ? told[2].get<std::vector<double>>()
                                 : std::vector<double>{told[2].get<double>()};
  if (told.size() > 4) w.dtype = told[4];
  return w;
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
    const FormulaWeight weight = formula_weight(w);
    file.tensors[weight.name] = values_of(weight, told["seed"].get<uint64_t>());
  }
  io::write_safetensors(folder / "model.safetensors", file);
  return folder;
}

inline io::SafeTensors formula_golden(const std::string& family) {
  return io::read_safetensors(test_data("hf_families") / family / "golden.safetensors");
}

}  // namespace taper::tests
