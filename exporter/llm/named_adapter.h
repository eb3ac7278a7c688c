#pragma once
#include <string>
#include <vector>

namespace taper::llm {

/// A LoRA adapter that texts choose by its name.
struct NamedAdapter {
  std::string name, path;
};

/// What `--lora` gives: one adapter for all texts, or several to choose among.
struct AdapterFiles {
  std::string always;
  std::vector<NamedAdapter> by_name;
};
/// Reads "PATH", or any number of "NAME=PATH". Throws ExportError.
AdapterFiles adapter_files(const std::vector<std::string>& options);

}  // namespace taper::llm
