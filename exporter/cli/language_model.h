// What commands do with language models: Hugging Face folders and .gguf files. Where Taper is built
// without them, these functions refuse (without_llm.cpp).
#pragma once
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "taper/exporter/export_options.h"

namespace taper::cli {

class Quantization;

bool is_language_model(const std::string& path);

/// Compares a model with golden results, in eager and then as a program, and prints a line for
/// each. Throws ExportError if one differs.
void check_language_model(const std::string& path, const std::string& golden, std::ostream& out);

struct LanguageModelExport {
  std::optional<int64_t> context;  ///< positions of the caches; none: those of the model
  int64_t chunk = 512;
  std::vector<std::string> lora;      ///< "PATH", or several "NAME=PATH"
  std::optional<int64_t> lora_slots;  ///< room for an adapter of this rank, which is given later
  std::string cache_dtype = "f32";
  bool all_logits = false;
  bool states = false;  ///< adds the method `states`, for embeddings
  /// Caches for so many texts, whose tokens one call computes; and for one more with `states`.
  std::optional<int64_t> parallel;
  Quantization* quantization = nullptr;  ///< how weights are quantized; nullptr: they are not
};
/// Writes the program, prints its report and what the caches take. Throws ExportError.
void export_language_model(const std::string& path, const std::string& output,
                           const LanguageModelExport& choice, const ExportOptions& options,
                           std::ostream& out);

}  // namespace taper::cli
