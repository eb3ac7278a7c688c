#include "taper/exporter/llm/named_adapter.h"

#include <filesystem>

#include "taper/exporter/base/error.h"

namespace taper::llm {

AdapterFiles adapter_files(const std::vector<std::string>& options) {
  AdapterFiles files;
  for (const std::string& text : options) {
    const size_t sign = text.find('=');
    std::error_code none;
    if (sign == std::string::npos || sign == 0 || std::filesystem::exists(text, none))
      files.always = text;
    else
      files.by_name.push_back({text.substr(0, sign), text.substr(sign + 1)});
  }
  if (!files.always.empty() && options.size() > 1)
    throw ExportError("--lora: several adapters need names, such as --lora pirate=" + files.always);
  return files;
}

}  // namespace taper::llm
