#include "taper/exporter/llm/named_adapter.h"

#include <filesystem>

#include "taper/exporter/base/error.h"

namespace taper::llm {
namespace {

void require_there(const std::string& option, const std::string& path) {
  std::error_code none;
  if (path.empty())
    throw ExportError("--lora " + option + ": behind the name an adapter is missing: NAME=ADAPTER");
  if (!std::filesystem::exists(path, none))
    throw ExportError("--lora " + option + ": there is no file or folder " + path);
}

}  // namespace

AdapterFiles adapter_files(const std::vector<std::string>& options) {
  AdapterFiles files;
  for (const std::string& text : options) {
    const size_t sign = text.find('=');
    std::error_code none;
    const bool has_name =
        sign != std::string::npos && sign != 0 && !std::filesystem::exists(text, none);
    const std::string path = has_name ? text.substr(sign + 1) : text;
    require_there(text, path);
    if (has_name)
      files.by_name.push_back({text.substr(0, sign), path});
    else
      files.always = path;
  }
  if (!files.always.empty() && options.size() > 1)
    throw ExportError("--lora: several adapters need names, such as --lora pirate=" + files.always);
  return files;
}

}  // namespace taper::llm
