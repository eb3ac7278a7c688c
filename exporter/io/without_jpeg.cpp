// Stands in for jpeg.cpp where libjpeg-turbo is missing.
#include "taper/exporter/io/jpeg.h"

namespace taper::io {

Array parse_jpeg(std::span<const std::byte>, const std::string& name) {
  throw FileError(name +
                  ": this build of Taper has no JPEG support; install libjpeg-turbo "
                  "(libturbojpeg0-dev) and configure again");
}
Array read_jpeg(const std::filesystem::path& path) { return parse_jpeg({}, path.string()); }

}  // namespace taper::io
