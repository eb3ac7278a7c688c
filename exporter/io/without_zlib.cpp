// Stands in for gzip.cpp where zlib is missing.
#include "taper/exporter/io/gzip.h"

namespace taper::io {

Bytes gunzip(std::span<const std::byte>, const std::string& name, size_t) {
  throw FileError(name +
                  ": this build of Taper cannot expand gzip files; install zlib (zlib1g-dev) and "
                  "configure again, or expand the file");
}

}  // namespace taper::io
