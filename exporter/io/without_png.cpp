// Stands in for png.cpp where libpng is missing.
#include "taper/exporter/io/png.h"

namespace taper::io {
namespace {

[[noreturn]] void refuse(const std::string& name) {
  throw FileError(
      name +
      ": this build of Taper has no PNG support; install libpng (libpng-dev) and configure again");
}

}  // namespace

bool has_png() { return false; }
Array read_png(const std::filesystem::path& path) { refuse(path.string()); }
Array parse_png(std::span<const std::byte>, const std::string& name) { refuse(name); }
void write_png(const std::filesystem::path& path, const Array&) { refuse(path.string()); }

}  // namespace taper::io
