// Stands in for safetensors.cpp where the JSON library is missing.
#include "taper/exporter/io/safetensors.h"

namespace taper::io {
namespace {

[[noreturn]] void refuse(const std::string& name) {
  throw FileError(name +
                  ": this build of Taper has no safetensors support; install nlohmann-json "
                  "(nlohmann-json3-dev) and configure again");
}

}  // namespace

const Array& SafeTensors::at(const std::string& name) const { refuse(name); }
SafeTensors read_safetensors(const std::filesystem::path& path) { refuse(path.string()); }
SafeTensors parse_safetensors(std::span<const std::byte>, const std::string& name) { refuse(name); }
void write_safetensors(const std::filesystem::path& path, const SafeTensors&) {
  refuse(path.string());
}
Bytes format_safetensors(const SafeTensors&) { refuse("safetensors"); }

}  // namespace taper::io
