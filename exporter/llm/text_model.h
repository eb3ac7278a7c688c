// A language model that reads and writes text, out of a Hugging Face folder, a .gguf file or a
// program.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "taper/exporter/llm/cache_type.h"
#include "taper/runtime/extension/llm/language_model.h"

namespace taper::ir {
class Graph;
}

namespace taper::llm {

struct TextModelOptions {
  bool exact = false;   ///< computes in f32 on de-quantized weights
  int64_t context = 0;  ///< positions of the caches; 0: 4096, or fewer if the model has fewer
  bool draft = false;   ///< for GenerateOptions::draft: the program gives the logits of guesses
  bool states = false;  ///< for embeddings: the program gives the states of tokens
  std::vector<std::string> lora;          ///< "PATH", or several "NAME=PATH" (named_adapter.h)
  CacheType cache_type = CacheType::f32;  ///< LoadOptions::cache
  /// Texts that the caches hold, which the program takes together: see LanguageModel::rows.
  int64_t rows = 1;
  const Threads* threads = nullptr;
  /// Edits the graphs before they become a program (ExportOptions::before_passes).
  std::function<void(const std::vector<ir::Graph*>&)> before_passes;
  /// Says what `before_passes` does, so that its results can be kept. Empty: they are not kept.
  std::string edit;
  /// The folder that keeps programs for the next start (ProgramCache). Empty: none.
  std::filesystem::path cache;
  std::function<void(const std::string&)> stage;  ///< told what begins: loading, tracing, …
  std::function<void(const std::string&)> note;   ///< told what is kept where, or why nothing is
};

/// Loads a program, or makes one of the model's files and loads that. Weights stay in these files
/// unless `before_passes` changes them. If the cache has a program of this model and these options,
/// that one is loaded. A program has the context, the rows and the exactness that it was exported
/// with, and takes no `cache_type` and no `before_passes`. It takes a `lora` if it has room for one
/// (adapter_slots.h). Throws ExportError, which names the file.
LanguageModel load_text_model(const std::string& path, const TextModelOptions& options = {});

}  // namespace taper::llm
