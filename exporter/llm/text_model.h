// A language model that reads and writes text, out of a Hugging Face folder, a .gguf file or a
// program.
#pragma once
#include <functional>
#include <string>

#include "taper/runtime/extension/llm/language_model.h"

namespace taper::llm {

struct TextModelOptions {
  bool exact = false;   ///< computes in f32 on de-quantized weights
  int64_t context = 0;  ///< positions of the caches; 0: 4096, or fewer if the model has fewer
  const Threads* threads = nullptr;
  std::function<void(const std::string&)> stage;  ///< told what begins: loading, tracing, …
};

/// Loads a program, or makes one of the model's file and loads that. A program has the context and
/// the exactness that it was exported with. Throws ExportError, which names the file.
LanguageModel load_text_model(const std::string& path, const TextModelOptions& options = {});

}  // namespace taper::llm
