// Any bytes are a valid safetensors file or a FileError; what was read can be written and read
// again.
#include <cstdlib>

#include "taper/exporter/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace taper::io;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  SafeTensors content;
  try {
    content = parse_safetensors(file, "fuzzed");
  } catch (const FileError&) {
    return 0;
  }
  const SafeTensors again = parse_safetensors(format_safetensors(content), "written");
  if (again.tensors.size() != content.tensors.size() || again.metadata != content.metadata)
    std::abort();
  return 0;
}
