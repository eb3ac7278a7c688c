// Any bytes are a valid .npy file or a FileError; what was read can be written and read again.
#include <cstdlib>

#include "taper/exporter/io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace taper::io;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const Array array = parse_npy(file, "fuzzed");
    const Array again = parse_npy(format_npy(array), "written");
    if (again.dtype != array.dtype || again.sizes != array.sizes) std::abort();
  } catch (const FileError&) {
  }
  return 0;
}
